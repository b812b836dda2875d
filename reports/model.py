"""The matrix as plain values: what the pipeline returns and every renderer reads.

For: the words of the matrix (verdicts, outcomes, levels, statuses) and frozen values that hold it, without
Spark. Text in them is as it stood in the result file: a renderer makes it safe for its own output.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# Worst first: what a scenario's cell shows is the worst verdict of its checks. Conforms outranks the last
# two: a scenario that conforms wherever it could be asked conforms, and its counts tell the rest.
VERDICTS: Final = ("deviates", "broken", "inconclusive", "conforms", "unsupported", "not-applicable")

# What a cell says when its scenario has no check in that column.
MISSING: Final = "missing"
NOT_RUN: Final = "not run"
OUTCOMES: Final = (*VERDICTS, MISSING, NOT_RUN)

LEVELS: Final = ("MUST", "SHOULD", "MAY")

# How far a column's run came. A complete run may still miss scenarios: those were not selected.
COMPLETE: Final = "complete"
CUT_OFF: Final = "cut off"


@dataclass(frozen=True)
class Column:
    """One backend: its newest run, and how far that came. Without a header, version and build are None."""

    backend: str
    oracle: bool
    version: str | None
    build: str | None
    run_id: str
    started: str | None
    status: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """One scenario on one backend: an outcome, and how many checks got which verdict (none of them zero)."""

    outcome: str
    counts: Mapping[str, int]

    @property
    def checks(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True)
class Row:
    """One scenario; `cells` stand in the order of the matrix's columns."""

    scenario: str
    family: str
    level: str
    title: str
    disputed: bool
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Tally:
    """How the scenarios of one family and level came out; `outcomes` stand in the order of the columns.

    `scenarios` is the same for every column: all scenarios seen, run there or not.
    """

    family: str
    level: str
    scenarios: int
    outcomes: tuple[Mapping[str, int], ...]


@dataclass(frozen=True)
class Deviation:
    """One check that a backend answered wrongly. `accepted` and `observed` are JSON texts."""

    run_id: str
    backend: str
    oracle: bool
    scenario: str
    check: str
    level: str
    asked: str
    accepted: str
    observed: str | None
    reason: str
    impact: str
    sources: tuple[str, ...]
    oracle_backend: str | None
    oracle_observed: str | None


@dataclass(frozen=True)
class Matrix:
    """Everything a report says.

    Columns: oracles first, then by name, the newest version of each first. Rows and tallies: by family.
    `lines` counts what was read, malformed lines included.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    tallies: tuple[Tally, ...]
    deviations: tuple[Deviation, ...]
    lines: int
    malformed: int
