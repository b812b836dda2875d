"""Reports for the tests of the page: one as a night would leave it, one from a hostile broker, and a large one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from reports.details import CheckDetail, Exchange
from reports.embedded import Titles
from reports.model import (
    Cell,
    Change,
    Column,
    DeviationSeen,
    Fingerprint,
    Flake,
    History,
    Matrix,
    Night,
    Report,
    Row,
    Sighting,
    VersionChange,
)
from reports.profiles import verdicts

ORACLE = "apache-kafka@4.3.1"
BUILD = "docker.io/vendor/broker@sha256:" + "4f" * 32

# For each scenario what each column says, in the order of `COLUMNS`; no two rows tell the same story.
COLUMNS = (ORACLE, "apache-kafka@3.9.2", "broker@1.2", "mock", "absent")
STORIES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "latest.calm-1": ("MUST", "Latest of an empty log", ("conforms",) * 4),
    "latest.calm-2": ("SHOULD", "Latest after one record", ("conforms",) * 4),
    "latest.moves": ("MUST", "One record moves latest", ("conforms", "conforms", "deviates", "conforms")),
    "latest.flakes": ("MUST", "Latest at once after an acknowledgement", ("conforms",) * 4),
    "earliest.calm-3": ("MUST", "Earliest of an empty log", ("conforms",) * 4),
    "earliest.doubtful": ("SHOULD", "Earliest while records go", ("deviates", "conforms", "conforms", "conforms")),
    "tier.local": ("MAY", "Earliest local offset", ("conforms", "conforms", "not-applicable", "unsupported")),
    "ts.time": ("MUST", "A lookup by time", ("conforms", "conforms", "inconclusive", "deviates")),
}
AREAS = {
    "tier": "Tiered storage",
    "latest": "Latest (timestamp -1)",
    "earliest": "Earliest (timestamp -2)",
    "ts": "Lookup by time",
}
TITLES = Titles(AREAS, {"ingest@1": "what ingest storage relies on"})
PROFILES = {"ingest@1": ["latest.moves", "latest.calm-1"], "tiered@1": ["tier.local"], "never@1": ["ts.never"]}
IMPACT = "A consumer misses a record."


def column(backend: str) -> Column:
    """Complete, but for the one that would not start."""
    absent = backend == "absent"
    return Column(
        backend=backend,
        oracle=backend.startswith("apache-kafka"),
        version=backend.partition("@")[2] or None,
        build=None if absent else BUILD,
        run_id="20261118T080000Z-abc123",
        started="2026-11-18T08:00:00Z",
        status="not run" if absent else "complete",
        reasons=("the image vendor/absent:1 is not there, and cannot be pulled",) if absent else (),
    )


def detail(scenario: str, backend: str, verdict: str, question: str = "latest", offset: int = 5) -> CheckDetail:
    """One check: Apache Kafka answers 5 to it, whatever the backend says."""
    deviates = verdict == "deviates"
    answered = verdict in ("conforms", "deviates")
    request = "{replica_id=-1 isolation_level=0 topics=[{name=conformance-1 partitions=[{timestamp=-1}]}]}"
    return CheckDetail(
        backend=backend,
        scenario=scenario,
        check=f"{scenario}:{question}",
        revision=1,
        verdict=verdict,
        grade="exact" if verdict == "conforms" else None,
        reason=f"offset is {offset - 2} instead of {offset}" if deviates else "" if answered else "no answer in time",
        asked={
            "latest": "ListOffsets v7 timestamp=-1 (latest)",
            "earliest": "ListOffsets v7 timestamp=-2 (earliest)",
            "stable": "ListOffsets v7 timestamp=-1 (latest) isolation=1",
        }.get(question, f"Fetch from offset {offset}"),
        accepted=json.dumps([{"error": 0, "offset": offset, "grade": "exact"}]),
        observed=json.dumps({"error": 0, "offset": offset - 2 if deviates else offset, "timestamp": -1})
        if answered
        else None,
        sources=("KIP-79", "the protocol's own table of special timestamps"),
        test=f"suites/test_{scenario.partition('.')[0]}.py::test_it[{backend}]",
        started="2026-11-18T08:00:01.000Z",
        duration_ms=1.25,
        exchanged=8,
        exchanges=(
            Exchange("list_offsets", 7, "127.0.0.1:9092", request, "{throttle_time=0:00:00 topics=[{offset=3}]}", 0.4),
        ),
        oracle_backend=ORACLE,
        oracle_observed=json.dumps({"error": 0, "offset": offset, "timestamp": -1}),
    )


def night_report() -> tuple[Report, list[CheckDetail]]:
    """A report with a history: two regressions, a flake, a dispute, an odd one out, a backend that did not run."""
    columns = tuple(map(column, COLUMNS))
    details = [
        each
        for scenario, (_, _, outcomes) in STORIES.items()
        for backend, outcome in zip(COLUMNS, outcomes, strict=False)
        for each in (
            detail(scenario, backend, outcome),
            detail(scenario, backend, "conforms" if outcome in ("deviates", "conforms") else outcome, "earliest", 0),
        )
    ]
    rows = [_row(scenario, *story, details) for scenario, story in STORIES.items()]
    matrix = Matrix(columns, tuple(sorted(rows, key=lambda row: (row.family, row.scenario))), (), (), 80, 1)
    return Report(matrix, verdicts(matrix, PROFILES), _alike(matrix), _history()), details


def _row(scenario: str, level: str, title: str, outcomes: tuple[str, ...], details: Iterable[CheckDetail]) -> Row:
    cells = []
    for backend, outcome in zip(COLUMNS, (*outcomes, "not run"), strict=True):
        mine = [each for each in details if (each.scenario, each.backend) == (scenario, backend)]
        cells.append(Cell(outcome, Counter(each.verdict for each in mine)))
    return Row(scenario, scenario.partition(".")[0], level, title, outcomes[0] == "deviates", tuple(cells), IMPACT)


def _alike(matrix: Matrix) -> tuple[Fingerprint, ...]:
    found = []
    for row in matrix.rows:
        groups: dict[str, list[str]] = {}
        for each, cell in zip(matrix.columns, row.cells, strict=True):
            if cell.checks:
                groups.setdefault(cell.outcome, []).append(each.backend)
        found += [
            Fingerprint(row.scenario, outcome, tuple(members), len(members) == 1 and len(groups) == 2)
            for outcome, members in groups.items()
        ]
    return tuple(found)


def _history() -> History:
    days = [f"2026-11-{day:02}T08:00:00.000Z" for day in range(1, 19)]
    runs = [f"202611{day:02}T080000Z-abc123" for day in range(1, 19)]
    nights = [
        Night(
            run,
            backend,
            day,
            "",
            BUILD,
            True,
            day < days[-1],
            {"conforms": 7 - bad, "deviates": bad, "inconclusive": 1},
        )
        for backend, worse in (("broker@1.2", 2), ("mock", 1), (ORACLE, 1))
        for place, (day, run) in enumerate(zip(days, runs, strict=True))
        for bad in [worse if place > 12 else 1]
    ]
    change = Change(
        "regression",
        "broker@1.2",
        "latest.moves:latest",
        "MUST",
        "conforms",
        "deviates",
        "offset is 3 instead of 5",
        IMPACT,
        ("broker version", "broker build"),
    )
    sighting = Sighting(
        "broker@1.2",
        "1.2",
        BUILD,
        "latest.moves",
        "latest.moves:latest",
        1,
        "deviates",
        1,
        days[-1],
        runs[-1],
        days[-1],
        runs[-1],
    )
    return History(
        compared={"broker@1.2": runs[-2], "mock": runs[-2]},
        changes=(
            change,
            replace(
                change, check="ts.time:latest", after="inconclusive", outcome="undecided", reason="no answer in time"
            ),
            replace(
                change, check="latest.calm-1:latest", before="deviates", after="conforms", outcome="fixed", reason=""
            ),
        ),
        deviations=(
            DeviationSeen(
                "broker@1.2",
                "latest.moves",
                "latest.moves:latest",
                days[-1],
                runs[-1],
                days[-1],
                runs[-1],
                BUILD,
                1,
                18,
                True,
            ),
        ),
        flakes=(
            Flake(
                "mock",
                BUILD,
                "latest.flakes",
                "latest.flakes:latest",
                1,
                18,
                2,
                2 / 18,
                0.031,
                0.328,
                ("conforms", "deviates"),
                days[-3],
                runs[-3],
            ),
        ),
        versions=(
            VersionChange("apache-kafka", "ts.time", "ts.time:latest", 1, "3.9.2", "4.3.1", "unsupported", "conforms"),
        ),
        sightings=(
            replace(
                sighting,
                build="the build before",
                version="1.1",
                verdict="conforms",
                runs=17,
                first=days[0],
                last=days[-2],
            ),
            sighting,
        ),
        nights=tuple(nights),
        malformed=1,
    )


def hostile_report(text: str) -> tuple[Report, list[CheckDetail]]:
    """The same with a text in every place that a broker, or whoever made a result file, fills."""
    report, details = night_report()
    matrix = report.matrix
    assert report.history is not None
    columns = (
        *matrix.columns[:2],
        replace(matrix.columns[2], backend=text, version=text, build=text, run_id=text),
        *matrix.columns[3:4],
        replace(matrix.columns[4], reasons=(text,)),
    )
    rows = tuple(replace(row, title=text, impact=text) for row in matrix.rows)
    told = [
        replace(
            each,
            backend=text if each.backend == "broker@1.2" else each.backend,
            reason=text,
            asked=text,
            accepted=json.dumps([{"because": text}]),
            observed=json.dumps({text: text}),
            sources=(text,),
            test=text,
            oracle_backend=text,
            oracle_observed=json.dumps({"detail": text}),
            exchanges=tuple(
                replace(exchange, api=text, node=text, request=text, response=text) for exchange in each.exchanges
            ),
        )
        for each in details
    ]
    told_matrix = replace(matrix, columns=columns, rows=rows)
    change = replace(report.history.changes[0], backend=text, reason=text, impact=text, moved=(text,))
    history = replace(
        report.history,
        changes=(change,),
        sightings=tuple(replace(each, backend=text, version=text, build=text) for each in report.history.sightings),
        nights=tuple(replace(each, run_id=text, version=text, build=text) for each in report.history.nights),
    )
    alike = tuple(
        replace(each, backends=tuple(text if name == "broker@1.2" else name for name in each.backends))
        for each in report.fingerprints
    )
    return Report(told_matrix, verdicts(told_matrix, PROFILES), alike, history), told


def large_report(scenarios: int, backends: int, checks: int) -> tuple[Report, list[CheckDetail]]:
    """So many scenarios and backends, every fifth row with one that deviates: what a page has to stand."""
    names = [ORACLE, *(f"backend-{number}@1.{number}" for number in range(1, backends))]
    areas = list(AREAS)
    rows, details = [], []
    for number in range(scenarios):
        scenario = f"{areas[number % len(areas)]}.scenario-{number:03}"
        wrong = number // 5 % (backends - 1) + 1 if number % 5 == 0 else -1
        cells = []
        for place, backend in enumerate(names):
            verdict = "deviates" if place == wrong else "conforms"
            details += [detail(scenario, backend, verdict, f"question-{each}", number) for each in range(checks)]
            cells.append(Cell(verdict, {verdict: checks}))
        rows.append(
            Row(scenario, scenario.partition(".")[0], "MUST", f"Scenario {number}", False, tuple(cells), IMPACT)
        )
    matrix = Matrix(tuple(map(column, names)), tuple(sorted(rows, key=lambda row: row.family)), (), (), 1, 0)
    return Report(matrix, (), _alike(matrix), None), details
