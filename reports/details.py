"""Every check of the runs that are shown, with the bytes that it was judged by: what one cell of the page opens to.

For: picking, bounding and collecting them. A page that grew with whatever a broker sends would not open, so each
text has a bound, and what was exchanged on the wire has a budget that is spent on what deviates first. What there
was no room for is counted, and is in the result files.

Left to others: the matrix (`reports.matrix`), and showing any of it (`reports.page`).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

# An answer or a sentence about it: the suite itself writes no longer ones.
TEXT_CHARACTERS: Final = 2000

# One request or response: a ListOffsets answer with every field is a third of it.
MESSAGE_CHARACTERS: Final = 800

# The name of an API or a node.
NAME_CHARACTERS: Final = 120

# The question itself is the last exchange; what led up to it matters where the answer was not the expected one.
EXCHANGES: Final = 4
EXCHANGES_IF_EXACT: Final = 1

# Of all exchanges together. With it, a page of 500 scenarios and 20 backends stays below ten megabytes.
BUDGET_CHARACTERS: Final = 4_000_000

# Of all evidence that is collected to pick them from: a check has up to eight exchanges and shows one to four.
COLLECTED_CHARACTERS: Final = 4 * BUDGET_CHARACTERS

# Three times 500 scenarios, 20 backends and 3 checks each.
CHECKS: Final = 90_000

# Who gets the room first: whatever a reader opens a cell for.
_IN_ORDER: Final = ("deviates", "broken", "inconclusive", "unsupported", "conforms", "not-applicable")


@dataclass(frozen=True)
class Exchange:
    """One request and its response, as the result file tells them: fields by name, bytes in hexadecimal."""

    api: str
    version: int
    node: str
    request: str
    response: str
    ms: float


@dataclass(frozen=True)
class CheckDetail:
    """One check of the run that its backend's column shows, beside Apache Kafka's answer in the same run.

    `accepted`, `observed` and `oracle_observed` are JSON texts. `exchanges` are the last ones of `exchanged`.
    """

    backend: str
    scenario: str
    check: str
    revision: int
    verdict: str
    grade: str | None
    reason: str
    asked: str
    accepted: str
    observed: str | None
    sources: tuple[str, ...]
    test: str
    started: str
    duration_ms: float
    exchanged: int
    exchanges: tuple[Exchange, ...]
    oracle_backend: str | None
    oracle_observed: str | None


def shown_checks(attempts: DataFrame, columns: DataFrame, oracle_answers: DataFrame) -> DataFrame:
    """One row per check of the columns' runs, bounded: `told`, the JSON text of a CheckDetail but for what was
    exchanged, its `place` in the order in which the budget is spent, and `evidence`, null where there is no room.

    As texts, because Python takes in a text ten times as quickly as a row of twenty fields. `attempts` are the last
    ones and `oracle_answers` those of `reports.matrix`.
    """
    rank = F.array_position(F.array(*map(F.lit, _IN_ORDER)), F.col("verdict"))
    in_order = Window.orderBy(rank, F.col("grade") == "exact", "check", "backend")
    told = F.struct(
        *("backend", "scenario", "check", "revision", "verdict", "grade", "test", "started", "duration_ms"),
        *(_bounded(name).alias(name) for name in ("reason", "asked", "accepted", "observed", "oracle_observed")),
        "oracle_backend",
        F.array_compact("sources").alias("sources"),
        F.coalesce(F.json_array_length("evidence"), F.lit(0)).alias("exchanged"),
    )
    return (
        attempts.join(F.broadcast(columns.select("run_id", "backend")), ["run_id", "backend"])
        .withColumns({"place": F.row_number().over(in_order), "spent": F.sum(F.length("evidence")).over(in_order)})
        .filter(F.col("place") <= CHECKS)
        .join(F.broadcast(oracle_answers), ["run_id", "check"], "left")
        .select(
            "place",
            F.to_json(told, {"ignoreNullFields": "false"}).alias("told"),
            F.when(F.col("spent") <= COLLECTED_CHARACTERS, F.col("evidence")).alias("evidence"),
        )
    )


def details(rows: Iterable[SparkRow]) -> tuple[CheckDetail, ...]:
    """The rows as values, those of a cell in the order in which they were asked."""
    found, room = [], BUDGET_CHARACTERS
    for row in sorted(rows, key=lambda row: row["place"]):
        told = json.loads(row["told"])
        exact = told["verdict"] == "conforms" and told["grade"] == "exact"
        exchanges: tuple[Exchange, ...] = ()
        if row["evidence"] is not None and room > 0:
            exchanges = _last_exchanges(row["evidence"], EXCHANGES_IF_EXACT if exact else EXCHANGES)
            room -= sum(len(each.request) + len(each.response) for each in exchanges)
        told["sources"] = tuple(told["sources"])
        found.append(CheckDetail(**told, exchanges=exchanges if room >= 0 else ()))
    return tuple(sorted(found, key=lambda one: (one.scenario, one.backend, one.started, one.check)))


def _last_exchanges(evidence: str, number: int) -> tuple[Exchange, ...]:
    """The last ones, bounded. A result file may leave out what it likes within an exchange."""
    try:
        exchanged = json.loads(evidence)
    except (ValueError, RecursionError):  # more digits or deeper nested than Python reads
        return ()
    return tuple(_exchange(each) for each in exchanged[-number:])


def _exchange(each: Mapping[str, Any]) -> Exchange:
    version, ms = each.get("version"), each.get("ms")
    return Exchange(
        api=_text(each.get("api"), NAME_CHARACTERS),
        version=version if isinstance(version, int) else 0,
        node=_text(each.get("node"), NAME_CHARACTERS),
        request=_text(each.get("request"), MESSAGE_CHARACTERS),
        response=_text(each.get("response"), MESSAGE_CHARACTERS),
        ms=ms if isinstance(ms, int | float) else 0.0,
    )


def _text(value: object, characters: int) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    return text if len(text) <= characters else text[:characters] + "…"


def _bounded(name: str) -> Column:
    text = F.col(name)
    cut = F.concat(F.substring(text, 1, TEXT_CHARACTERS), F.lit("…"))
    return F.when(F.length(text) > TEXT_CHARACTERS, cut).otherwise(text)
