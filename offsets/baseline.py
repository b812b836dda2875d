"""`offsets baseline write` and `lint`: propose a baseline from a run, or check one that is written."""

from __future__ import annotations

import os
from pathlib import Path

from backends import registry
from conformance import baselines
from offsets.check import read_baseline, stored_run
from offsets.exits import CommandFailed, Exit


def write(run: str, backend: str, file: str, results: str) -> Exit:
    stored = stored_run(results, run)
    if backend not in stored.columns or not stored.columns[backend].checks:
        known = ", ".join(name for name, column in stored.columns.items() if column.checks)
        raise CommandFailed(f"run {stored.run_id} has no checks of {backend!r}; it has {known or 'none at all'}")
    old = read_baseline(file) if Path(file).exists() else None
    if old and not old.is_for(backend):
        raise CommandFailed(f"{file} is about {old.backend}, not {backend}: name another file", Exit.USAGE)
    known_family = registry.families().get(baselines.family(backend))
    new = baselines.propose(stored.columns[backend], known_family.issues if known_family else "", old)
    half = Path(f"{file}.{os.getpid()}.tmp")
    half.parent.mkdir(parents=True, exist_ok=True)
    half.write_text(baselines.render(new), encoding="utf-8")
    half.replace(file)
    kept = len(old.known) if old else 0
    print(f"{file}: {len(new.known)} entries, {kept} before. Read each: a reason that nobody wrote explains nothing.")
    return Exit.AS_EXPECTED


def lint(files: list[str]) -> Exit:
    code = Exit.AS_EXPECTED
    for file in files:
        problems = baselines.lint(read_baseline(file))
        for problem in problems:
            print(f"{file}: {problem}")
        if problems:
            code = Exit.USAGE
        else:
            print(f"{file}: in order")
    return code
