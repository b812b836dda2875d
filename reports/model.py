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
    """One scenario; `cells` stand in the order of the matrix's columns. `impact` is what a wrong answer does."""

    scenario: str
    family: str
    level: str
    title: str
    disputed: bool
    cells: tuple[Cell, ...]
    impact: str = ""


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


@dataclass(frozen=True)
class Fingerprint:
    """The backends that gave the same answers to all checks of a scenario. `odd`: one against all others."""

    scenario: str
    fingerprint: str
    backends: tuple[str, ...]
    odd: bool


@dataclass(frozen=True)
class Failure:
    """A rule of a profile that a backend does not keep, and what that does to a user."""

    scenario: str
    outcome: str
    impact: str


@dataclass(frozen=True)
class ProfileVerdict:
    """Whether a backend is safe for a use: `yes`, `no`, or `unknown` where not all rules could be judged."""

    profile: str
    backend: str
    safe: str
    rules: int
    kept: int
    failures: tuple[Failure, ...]
    unknown: tuple[Failure, ...]


@dataclass(frozen=True)
class DeviationSeen:
    """A check that deviated at some time: when first, when last, how often, and whether it still does."""

    backend: str
    scenario: str
    check: str
    first: str
    first_run: str
    last: str
    last_run: str
    first_build: str
    deviating: int
    runs: int
    still: bool


@dataclass(frozen=True)
class Flake:
    """A check that one build answered differently without anything having moved; rates are shares of runs."""

    backend: str
    build: str
    scenario: str
    check: str
    revision: int
    runs: int
    odd: int
    rate: float
    low: float
    high: float
    verdicts: tuple[str, ...]
    last: str
    last_run: str


@dataclass(frozen=True)
class VersionChange:
    """A check that one version of a broker usually answers otherwise than the version before it."""

    family: str
    scenario: str
    check: str
    revision: int
    from_version: str
    to_version: str
    before: str
    after: str


@dataclass(frozen=True)
class Night:
    """One run of a backend, for trends: how its scenarios came out, and whether later nights may rest on it."""

    run_id: str
    backend: str
    started: str
    version: str
    build: str
    complete: bool
    good: bool
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Sighting:
    """One stretch of the history of a cell: a verdict that a build gave to a check, from when to when."""

    backend: str
    version: str
    build: str
    scenario: str
    check: str
    revision: int
    verdict: str
    runs: int
    first: str
    first_run: str
    last: str
    last_run: str


@dataclass(frozen=True)
class Change:
    """One check whose verdict is not what it was, or not what was expected.

    `moved` names the inputs that differ between the two runs; it is empty when a baseline is what was held
    against, and when nothing that a run records has moved.
    """

    outcome: str
    backend: str
    check: str
    level: str
    before: str
    after: str
    reason: str
    impact: str
    moved: tuple[str, ...] = ()


@dataclass(frozen=True)
class History:
    """What the nights before tell about the one that is shown.

    `compared` has, for each backend, the run that `changes` are counted from: its last good night. A backend that
    has none is not compared. `sightings` are those of checks that are not always answered alike and well.
    """

    compared: Mapping[str, str]
    changes: tuple[Change, ...]
    deviations: tuple[DeviationSeen, ...]
    flakes: tuple[Flake, ...]
    versions: tuple[VersionChange, ...]
    sightings: tuple[Sighting, ...]
    nights: tuple[Night, ...]
    malformed: int


@dataclass(frozen=True)
class Report:
    """Everything that a report says: the matrix of the newest runs and, where history was kept, what it tells."""

    matrix: Matrix
    profiles: tuple[ProfileVerdict, ...]
    fingerprints: tuple[Fingerprint, ...]
    history: History | None
