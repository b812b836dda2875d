"""A stored run read back: what ran, and the verdict on every check, from result files that anybody may have written.

For: comparing runs and holding one against a baseline, in a tenth of a second and without Spark. A line that is
not valid against the published schema counts for nothing and is counted. Left to others: history and the matrix
(`reports`), which account for every line with Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.answers import Verdict
from conformance.results import is_valid, runs_in


class NoSuchRun(Exception):
    """A run that is not there, or a name that fits several. Says which there are."""


@dataclass(frozen=True)
class Inputs:
    """What went into a run besides the scenarios; a header each may be lost, and then its values are empty."""

    version: str = ""
    build: str = ""
    clients: str = ""
    suite: str = ""
    host: str = ""


@dataclass(frozen=True)
class StoredCheck:
    """One check as a run left it. `verdicts` are those of all attempts, the last of which counts."""

    id: str
    scenario: str
    revision: int
    level: str
    verdicts: tuple[Verdict, ...]
    reason: str
    impact: str

    @property
    def verdict(self) -> Verdict:
        return self.verdicts[-1]

    @property
    def flaky(self) -> bool:
        """The same question got different verdicts within the run."""
        return len(set(self.verdicts)) > 1


@dataclass(frozen=True)
class StoredColumn:
    """One backend in one run."""

    run_id: str
    backend: str
    inputs: Inputs
    checks: Mapping[str, StoredCheck]
    not_run: tuple[str, ...]
    complete: bool

    @property
    def scenarios(self) -> frozenset[str]:
        return frozenset(check.scenario for check in self.checks.values())


@dataclass(frozen=True)
class StoredRun:
    """All backends of one run, and how many lines could not be read."""

    run_id: str
    columns: Mapping[str, StoredColumn]
    malformed: int


def find_run(directory: Path, name: str) -> str:
    """The id of the run that `name` means: an id, the beginning of one, `last`, or `last~1` for the one before."""
    runs = runs_in(directory)
    word, _, back = name.partition("~")
    if word == "last" and (back.isdecimal() or not back):
        place = len(runs) - 1 - int(back or 0)
        matching = runs[place : place + 1] if place >= 0 else []
    else:
        matching = [name] if name in runs else [each for each in runs if each.startswith(name)]
    if len(matching) != 1:
        known = f"there are {', '.join(runs[-5:])}" if runs else "there is none: run the suites first"
        which = "more than one run begins" if matching else "no run begins"
        raise NoSuchRun(f"{which} with {name!r} in {directory}; {known}")
    return matching[0]


def read_run(directory: Path, run_id: str) -> StoredRun:
    """Everything that the result files of a run say about verdicts and inputs."""
    building: dict[str, _Building] = {}
    malformed = 0
    for path in sorted(directory.glob(f"{run_id}.*.ndjson")):
        kinds: dict[str, set[str]] = {}
        for line in _lines(path):
            if line is None or line["run_id"] != run_id:
                malformed += 1
                continue
            building.setdefault(line["backend"], _Building()).add(line)
            kinds.setdefault(line["backend"], set()).add(line["kind"])
        for backend, seen in kinds.items():
            # A broker that would not start has nothing to finish; every other file ends with a footer.
            building[backend].torn |= not {"header", "footer"} <= seen and not (
                "not-run" in seen and "check" not in seen
            )
    columns = {backend: parts.column(run_id, backend) for backend, parts in sorted(building.items())}
    return StoredRun(run_id, columns, malformed)


@dataclass
class _Building:
    inputs: Inputs = Inputs()
    attempts: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    not_run: list[str] = field(default_factory=list)
    torn: bool = False

    def add(self, line: Mapping[str, Any]) -> None:
        match line["kind"]:
            case "header":
                self.inputs = Inputs(
                    line["backend_version"] or "",
                    line["build"],
                    _flat(line["clients"]),
                    line["suite_revision"],
                    _flat(line["host"]),
                )
            case "check":
                self.attempts.setdefault(line["check"], []).append(line)
            case "not-run":
                self.not_run.append(line["reason"])

    def column(self, run_id: str, backend: str) -> StoredColumn:
        checks = {id: _stored(attempts) for id, attempts in sorted(self.attempts.items())}
        return StoredColumn(run_id, backend, self.inputs, checks, tuple(self.not_run), not self.torn)


def _stored(attempts: Sequence[Mapping[str, Any]]) -> StoredCheck:
    ordered = sorted(attempts, key=lambda line: (line["attempt"], line["started"]))
    last = ordered[-1]
    verdicts = tuple(Verdict(line["verdict"]) for line in ordered)
    return StoredCheck(
        last["check"], last["scenario"], last["revision"], last["level"], verdicts, last["reason"], last["impact"]
    )


def _flat(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(values.items()))


def _lines(path: Path) -> Iterator[Mapping[str, Any] | None]:
    """Each line of a file, or None for one that is not a valid result line."""
    with path.open(encoding="utf-8", errors="replace") as stream:
        for text in stream:
            try:
                line = json.loads(text)
            except (json.JSONDecodeError, RecursionError):
                line = None
            yield line if is_valid(line) else None
