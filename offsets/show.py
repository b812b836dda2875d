"""`offsets show`: one cell of the matrix with everything that is known about it, down to the wire."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conformance.explain import explain, printable
from conformance.results import oracle_line, read_checks
from conformance.stored import NoSuchRun, find_run
from offsets.exits import CommandFailed, Exit


def perform(run: str, id: str, backend: str, results: str) -> Exit:
    directory = Path(results)
    try:
        run_id = find_run(directory, run)
    except NoSuchRun as error:
        raise CommandFailed(str(error)) from error
    lines = [
        line
        for line in read_checks(sorted(directory.glob(f"{run_id}.*.ndjson")))
        if line["backend"] == backend and id in (line["check"], line["scenario"])
    ]
    if not lines:
        raise CommandFailed(_what_there_is(directory, run_id, id, backend))
    print("\n\n".join(_cell(line, oracle_line(directory, run_id, line["check"])) for line in lines))
    return Exit.AS_EXPECTED


def _what_there_is(directory: Path, run_id: str, id: str, backend: str) -> str:
    lines = list(read_checks(sorted(directory.glob(f"{run_id}.*.ndjson"))))
    backends = sorted({line["backend"] for line in lines})
    if backend not in backends:
        return f"run {run_id} has no checks of {backend!r}; it has {', '.join(backends) or 'no checks at all'}"
    return f"run {run_id} did not ask {id!r} of {backend}; `offsets list scenarios` has the ids"


def _cell(line: Mapping[str, Any], oracle: Mapping[str, Any] | None) -> str:
    exchanges = [
        f"  {exchange['api']} v{exchange['version']} to {exchange['node']}, {exchange['ms']:.1f} ms\n"
        f"    > {exchange['request']}\n"
        f"    < {exchange['response']}"
        for exchange in line["evidence"]
    ]
    wire = ["on the wire, the question last:", *exchanges] if exchanges else []
    return "\n".join([explain(line, oracle), *map(_printable_lines, wire)])


def _printable_lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.split("\n"))
