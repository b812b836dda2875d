"""Every check of the runs that are shown, with the bytes that it was judged by: what one cell of the page opens to.

For: picking, bounding and collecting them. A page that grew with whatever a broker sends would not open, so each
text has a bound, and what was exchanged on the wire has a budget that is spent on what deviates first. What there
was no room for is counted, and is in the result files.

Left to others: the matrix (`reports.matrix`), and showing any of it (`reports.page`).
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

# An answer or a sentence about it: the suite itself writes no longer ones.
TEXT_CHARACTERS: Final = 2000

# One request or response: a ListOffsets answer with every field is a third of it.
MESSAGE_CHARACTERS: Final = 800

# The question itself is the last exchange; what led up to it matters where the answer was not the expected one.
EXCHANGES: Final = 4
EXCHANGES_IF_EXACT: Final = 1

# Of all exchanges together. With it, a page of 500 scenarios and 20 backends stays below ten megabytes.
BUDGET_CHARACTERS: Final = 4_000_000

# Three times 500 scenarios, 20 backends and 3 checks each.
CHECKS: Final = 90_000

# Who gets the room first: whatever a reader opens a cell for.
_IN_ORDER: Final = ("deviates", "broken", "inconclusive", "unsupported", "conforms", "not-applicable")

_EVIDENCE: Final = "array<struct<api:string,version:bigint,node:string,request:string,response:string,ms:double>>"


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


def shown_checks(lines: DataFrame, columns: DataFrame, oracle_answers: DataFrame) -> DataFrame:
    """One row per check of the columns' runs: the last attempt, bounded, as the JSON text of a CheckDetail.

    As one text, because Python takes in a text ten times as quickly as a row of twenty fields. `oracle_answers` are
    those of `reports.matrix`.
    """
    exchanges = F.from_json("evidence", _EVIDENCE)
    exact = (F.col("verdict") == "conforms") & (F.col("grade") == "exact")
    wanted = F.when(exact, EXCHANGES_IF_EXACT).otherwise(EXCHANGES)
    asked = (
        lines.filter(F.col("kind") == "check")
        .join(F.broadcast(columns.select("run_id", "backend")), ["run_id", "backend"])
        .select(
            "run_id",
            "check",
            F.struct("attempt", F.try_to_timestamp("started"), "file").alias("turn"),
            F.struct(
                *("backend", "scenario", "revision", "verdict", "grade", "test", "started", "duration_ms"),
                *(_bounded(F.col(name), TEXT_CHARACTERS).alias(name) for name in ("reason", "asked", "accepted")),
                _bounded(F.col("observed"), TEXT_CHARACTERS).alias("observed"),
                F.array_compact("sources").alias("sources"),
                F.coalesce(F.size(exchanges), F.lit(0)).alias("exchanged"),
                _last(exchanges, wanted).alias("exchanges"),
            ).alias("told"),
        )
    )
    last = asked.groupBy("run_id", "told.backend", "check").agg(F.max_by("told", "turn").alias("told"))
    size = F.aggregate("exchanges", F.lit(0), lambda sum, each: sum + _size(each))
    rank = F.array_position(F.array(*map(F.lit, _IN_ORDER)), F.col("verdict"))
    in_order = Window.orderBy(rank, F.col("grade") == "exact", "check", "backend")
    return (
        last.select("run_id", "check", "told.*")
        .withColumns({"place": F.row_number().over(in_order), "spent": F.sum(size).over(in_order)})
        .filter(F.col("place") <= CHECKS)
        .withColumn("exchanges", F.when(F.col("spent") <= BUDGET_CHARACTERS, F.col("exchanges")).otherwise(F.array()))
        .join(oracle_answers, ["run_id", "check"], "left")
        .withColumn("oracle_observed", _bounded(F.col("oracle_observed"), TEXT_CHARACTERS))
        .drop("run_id", "place", "spent")
        .select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("told"))
    )


def details(rows: Iterable[SparkRow]) -> tuple[CheckDetail, ...]:
    """The rows as values, those of a cell in the order in which they were asked."""
    found = [_detail(json.loads(row["told"])) for row in rows]
    return tuple(sorted(found, key=lambda one: (one.scenario, one.backend, one.started, one.check)))


def _detail(told: dict[str, Any]) -> CheckDetail:
    told["sources"] = tuple(told["sources"])
    told["exchanges"] = tuple(_exchange(**each) for each in told["exchanges"])
    return CheckDetail(**told)


def _exchange(
    api: str | None,
    version: int | None,
    node: str | None,
    request: str | None,
    response: str | None,
    ms: float | None,
) -> Exchange:
    """A result file may leave out what it likes within an exchange."""
    return Exchange(api or "", version or 0, node or "", request or "", response or "", ms or 0.0)


def _bounded(text: Column, characters: int) -> Column:
    return F.when(F.length(text) > characters, F.concat(F.substring(text, 1, characters), F.lit("…"))).otherwise(text)


def _last(exchanges: Column, number: Column) -> Column:
    first = F.greatest(F.size(exchanges) - number + 1, F.lit(1))
    return F.transform(
        F.slice(exchanges, first, number),
        lambda each: F.struct(
            *(each[name].alias(name) for name in ("version", "ms")),
            *(_bounded(each[name], 120).alias(name) for name in ("api", "node")),
            *(_bounded(each[name], MESSAGE_CHARACTERS).alias(name) for name in ("request", "response")),
        ),
    )


def _size(exchange: Column) -> Column:
    return F.coalesce(F.length(exchange["request"]), F.lit(0)) + F.coalesce(F.length(exchange["response"]), F.lit(0))
