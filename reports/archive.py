"""History on disk or in an object store: append-only, idempotent, safe when several jobs write at once.

    batches/BATCH/checks/      what one job took in, as Parquet; nobody else writes there, and nobody changes it
    batches/BATCH/malformed/   the lines that it could not read, each with its file and what is wrong with it
    commits/BATCH.ndjson       one line per file of a run (a night), written last: a batch without it never happened
    summaries/NAME/            nights and sightings of many batches, folded
    summaries/NAME.json        which batches those are, written last

The commits are the truth, and a summary is only quicker. No lock is needed: where two jobs took in the same file,
both committed it, and every reader takes the same one of the two: the one with more lines, for a file that has grown
since, and of equals the one whose name sorts first. A summary that took the other is not used.
"""

import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reports import history
from reports.matrix import KEY
from reports.model import VERDICTS
from reports.session import in_one_piece
from reports.storage import Storage

NIGHT: Final = ", ".join(
    (
        "run_id string, backend string, worker string, batch string, started string",
        "version string, build string, clients string, suite string, host string",
        "oracle boolean, complete boolean, asked boolean, good boolean, lines long, malformed long",
        *(f"`{verdict}` long" for verdict in VERDICTS),
    )
)

CHECKS: Final = (
    "run_id string, backend string, worker string, started timestamp, version string, build string, clients string,"
    " suite string, host string, oracle boolean, check string, flaky boolean, scenario string, revision long,"
    " family string, level string, verdict string, grade string, reason string, observed string"
)

SIGHTINGS: Final = (
    "backend string, version string, build string, scenario string, check string, level string, revision long,"
    " verdict string, runs long, flaky_runs long,"
    " first struct<started: timestamp, run_id: string>, last struct<started: timestamp, run_id: string>"
)

# Whoever reads an old summary while a new one is made has had two nights to finish.
SUMMARIES_KEPT = 3

Night = dict[str, Any]


@dataclass(frozen=True)
class Past:
    """What there is: a summary, if any, the batches folded into it, and those committed since."""

    summary: str | None
    folded: frozenset[str]
    fresh: tuple[str, ...]


class Archive:
    """History under one path or URI."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._spark = spark
        self.storage = Storage(spark, uri)

    def past(self) -> Past:
        """What there is now. The summary that folded most is the one to start from."""
        commits = {name.removesuffix(".ndjson") for name in self.storage.names("commits")}
        best: tuple[int, str, frozenset[str]] = (0, "", frozenset())
        for name in self.storage.names("summaries"):
            if name.endswith(".json"):
                folded = frozenset(json.loads(self.storage.read("summaries", name))["batches"])
                best = max(best, (len(folded), name.removesuffix(".json"), folded), key=lambda one: one[:2])
        return Past(best[1] or None, best[2], tuple(sorted(commits - best[2])))

    def nights(self, past: Past) -> DataFrame:
        """One row per file of a run, of all history; of a file that was taken in twice, one of the two."""
        parts = [self._table("summaries", past.summary, "nights", NIGHT)] if past.summary else []
        return _winners(self._union([*parts, self._commits(past.fresh)], NIGHT))

    def checks(self, nights: DataFrame, batches: Iterable[str]) -> DataFrame:
        """The checks of these nights, which lie in these batches."""
        read = [
            self._table("batches", batch, "checks", CHECKS).withColumn("batch", F.lit(batch))
            for batch in sorted(batches)
        ]
        rows = self._union(read, CHECKS + ", batch string")
        wanted = F.broadcast(nights.select(*KEY, "batch"))
        return rows.join(wanted, [*KEY, "batch"], "left_semi").drop("batch")

    def rows(self, runs: Mapping[str, str], batches: Iterable[str]) -> DataFrame:
        """The checks of one run per backend, which lie in these batches; those of a file taken in twice, twice."""
        paths = [self.storage.path("batches", batch, "checks") for batch in sorted(batches)]
        wanted = F.create_map(*(F.lit(part) for pair in runs.items() for part in pair))
        read = in_one_piece(self._spark.read.schema(CHECKS).parquet(*paths))
        return read.filter(wanted[F.col("backend")] == F.col("run_id"))

    def every_check(self) -> DataFrame:
        """All history, read from the commits and batches alone: what a rebuild folds."""
        everything = Past(None, frozenset(), tuple(sorted({*self.past().folded, *self.past().fresh})))
        return self.checks(self.nights(everything), everything.fresh)

    def sightings(self, past: Past) -> DataFrame:
        """All sightings of history: the summary's and those of the batches committed since."""
        if past.summary is None:
            return history.sightings(self.checks(self.nights(past), past.fresh))
        summary = self._table("summaries", past.summary, "sightings", SIGHTINGS)
        if not past.fresh:
            return summary
        nights = self.nights(past)
        folded = self._table("summaries", past.summary, "nights", NIGHT)
        if not folded.join(nights, [*KEY, "batch"], "left_anti").isEmpty():
            # A file has grown since it was folded, and what was added cannot be taken out again.
            return history.sightings(self.every_check())
        fresh = history.single(self.checks(nights.filter(F.col("batch").isin(*past.fresh)), past.fresh))
        return history.merged(summary.unionByName(fresh))

    def write_batch(self, checks: DataFrame, malformed: DataFrame | None) -> str:
        """Put rows where nobody else writes; they count once they are committed under the name that this returns."""
        batch = _name()
        _write(checks, self.storage.path("batches", batch, "checks"))
        if malformed is not None:
            _write(malformed, self.storage.path("batches", batch, "malformed"))
        return batch

    def commit(self, batch: str, nights: Sequence[Mapping[str, Any]]) -> None:
        lines = (json.dumps({**night, "batch": batch}) + "\n" for night in nights)
        self.storage.write("".join(lines), "commits", f"{batch}.ndjson")

    def summarise(self, past: Past, sightings: DataFrame) -> None:
        """Keep what was folded, for the next reader."""
        name = _name()
        _write(sightings, self.storage.path("summaries", name, "sightings"))
        _write(self.nights(past), self.storage.path("summaries", name, "nights"))
        folded = sorted(past.folded | set(past.fresh))
        self.storage.write(json.dumps({"batches": folded}), "summaries", f"{name}.json")
        whole = [each.removesuffix(".json") for each in self.storage.names("summaries") if each.endswith(".json")]
        for old in sorted(whole)[:-SUMMARIES_KEPT]:
            self.storage.remove("summaries", f"{old}.json")
            self.storage.remove("summaries", old)

    def _commits(self, batches: Sequence[str]) -> DataFrame:
        paths = [self.storage.path("commits", f"{batch}.ndjson") for batch in batches]
        return in_one_piece(self._spark.read.schema(NIGHT).json(paths)) if paths else self._union([], NIGHT)

    def _table(self, room: str, name: str, table: str, schema: str) -> DataFrame:
        return in_one_piece(self._spark.read.schema(schema).parquet(self.storage.path(room, name, table)))

    def _union(self, parts: Sequence[DataFrame], schema: str) -> DataFrame:
        if not parts:
            # Without Python's help, which a cluster may not have.
            return self._spark.range(0).select(F.from_json(F.lit("{}"), schema).alias("row")).select("row.*")
        return in_one_piece(reduce(DataFrame.unionByName, parts))


def _winners(nights: DataFrame) -> DataFrame:
    """Of a file that was taken in twice, the one with more lines, and of equals the first by name."""
    best = F.min_by(F.struct(*nights.columns), F.struct(-F.col("lines"), "batch"))
    return nights.groupBy(*KEY).agg(best.alias("best")).select("best.*")


def _write(table: DataFrame, path: str) -> None:
    # One file: a batch is a night or so, and a summary is small; many little files are what makes history slow.
    table.coalesce(1).write.parquet(path)


def _name() -> str:
    """Sorts by time, and is nobody else's."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(6)}"
