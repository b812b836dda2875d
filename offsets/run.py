"""`offsets run`: the suites against several backends side by side, then the matrix of exactly this run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from backends import registry
from backends.registry import Backend
from conformance.results import new_run_id
from offsets import report
from offsets.exits import CommandFailed, Exit
from offsets.listing import SUITES
from offsets.progress import Progress


def perform(names: Sequence[str], bootstraps: Sequence[str], scenarios: Sequence[str], out: str, jobs: int) -> Exit:
    columns = [backend.column for backend in chosen(names, bootstraps) or registry.embedded_defaults()]
    run_id = new_run_id()
    results = Path(out) / "results"
    arguments = [
        *(f"--backend={column}" for column in columns if column not in map(external_column, bootstraps)),
        *(f"--bootstrap={address}" for address in bootstraps),
        *(f"--scenario={scenario}" for scenario in scenarios),
        # Each backend is one group, told by one worker: its broker is started once.
        *(("-n", str(min(jobs, len(columns))), "--dist", "loadgroup") if min(jobs, len(columns)) > 1 else ()),
    ]
    log = Path(out) / "logs" / f"{run_id}.log"
    print(f"Run {run_id}: {', '.join(columns)}", file=sys.stderr)
    code = run_suites(arguments, run_id, results, log, Progress(sys.stderr, columns))
    files = sorted(str(path) for path in results.glob(f"{run_id}.*.ndjson"))
    if code is pytest.ExitCode.INTERRUPTED:
        raise CommandFailed(f"interrupted; `offsets report {' '.join(files)}` shows what was asked until then")
    if not files:
        raise CommandFailed(f"nothing was asked: {_last_line(log)}; the whole story is in {log}")
    return report.perform(files, out, "local[*]")


def chosen(names: Sequence[str], bootstraps: Sequence[str]) -> list[Backend]:
    try:
        return [registry.choose(name) for name in names] + [registry.external(address) for address in bootstraps]
    except registry.UnknownBackend as error:
        raise CommandFailed(str(error), Exit.USAGE) from error


def external_column(bootstrap: str) -> str:
    return registry.external(bootstrap).column


def run_suites(arguments: Sequence[str], run_id: str, results: Path, log: Path, plugin: object) -> int:
    """Run pytest in this process, so that whatever ends this process ends the run; its own words go to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    fixed = ["-q", "--tb=short", "--no-header", "-p", "no:cacheprovider", f"--run-id={run_id}", f"--results={results}"]
    with log.open("w", encoding="utf-8") as words, contextlib.redirect_stdout(words):
        return pytest.main([str(SUITES), *fixed, *arguments], plugins=[plugin])


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "pytest said nothing"
