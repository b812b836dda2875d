"""Does history stay quick as it grows, and what does Spark cost beside DuckDB? `python -m benchmarks.history`.

Makes two synthetic years of nightlies in the layout of `reports.archive` and measures, each side in a process of its
own and in processor seconds, because seconds on the clock say as much about the neighbours:
the nightly report on the whole history against that on one a tenth as long;
a rebuild of all sightings from the batches, with Spark on both and with DuckDB on the same Parquet;
one nightly of many rows, from result files to the report, beside the same answers from DuckDB, and beside a Spark
session that parses the same lines and does nothing with them: the least that Spark could cost.

The default length is for trying it out; --rows 10000000 is what is asked of a release.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tabulate import tabulate

from backends.java_runtime import find_java
from reports import history, ingest, job
from reports.archive import CHECKS, Archive
from reports.model import VERDICTS
from reports.schema import LINE
from reports.session import LARGE_BYTES, spark_session

BACKENDS = 10
NIGHTS = 730
MONTH = 30
NIGHTLY_SECONDS = 12.0
"""What a nightly of 60,000 check rows may cost in all, in processor seconds."""
FIRST_NIGHT = datetime(2024, 11, 18, 2, tzinfo=UTC)

STEP_SECONDS = 3600.0
"""A rebuild of ten million rows takes minutes; an hour is a hang."""

REBUILD = """
select count(*) from (
    select backend, coalesce(version, ''), coalesce(build, ''), scenario, "check", level, revision, verdict,
        count(*) as runs, count(*) filter (flaky) as flaky_runs, min((started, run_id)), max((started, run_id))
    from read_parquet('{place}/batches/*/checks/*.parquet') group by all)
"""
"""What `history.sightings` does, in DuckDB's words."""

NIGHTLY = """
create table lines as select * from read_json('{results}/*.ndjson', format = 'newline_delimited',
    union_by_name = true, ignore_errors = true, maximum_object_size = 16777216);
create table last as select run_id, backend, scenario, "check", family, level, revision,
    arg_max(verdict, attempt) as verdict, arg_max(observed::varchar, attempt) as observed
    from lines where kind = 'check' group by all;
create table cells as select scenario, backend, verdict, count(*) as checks from last group by all;
create table tallies as select family, level, backend, count(distinct scenario) as scenarios from last group by all;
create table oracle as select run_id, "check", observed from last
    where backend in (select backend from lines where oracle);
create table deviations as select last.*, oracle.observed as expected
    from last left join oracle using (run_id, "check") where verdict = 'deviates';
create table before as select * from read_parquet('{place}/batches/*/checks/*.parquet')
    where run_id < (select max(run_id) from lines);
create table sightings as select backend, "check", level, revision, verdict, count(*) as runs, min(run_id), max(run_id)
    from (select backend, "check", level, revision, verdict, run_id from before
        union all select backend, "check", level, revision, verdict, run_id from last) group by all;
create table flakes as select backend, "check" from sightings group by all having count(distinct verdict) > 1;
select count(*) from last join before using (backend, "check") where last.verdict <> before.verdict;
"""
"""The same answers in DuckDB's words: matrix, deviations beside Kafka's answers, sightings, and what changed since the
night before, which both must count alike. It accounts for no malformed line, and writes neither history nor report."""


def main() -> None:
    options = _options()
    if options.step:
        _perform(options)
        return
    with tempfile.TemporaryDirectory() as scratch:
        _measure(Path(scratch), options.rows, options.night_rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000, help="check rows in two years of history (200000)")
    parser.add_argument("--night-rows", type=int, default=60_000, help="check rows of the one nightly (60000)")
    parser.add_argument("--step", choices=sorted(STEPS), help=argparse.SUPPRESS)
    parser.add_argument("--nights", type=int, default=NIGHTS, help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _measure(scratch: Path, rows: int, night_rows: int) -> None:
    places = {nights: scratch / f"{nights}-nights" for nights in (NIGHTS // 10, NIGHTS)}
    for nights, place in places.items():
        _step("generate", place, rows=rows, nights=nights)
    one_more = scratch / "one-more"
    _write_night(one_more, rows // NIGHTS, NIGHTS)
    tenth, whole = (_step("nightly", place, results=one_more) for place in places.values())
    table = [_told("nightly, all history / a tenth", whole, tenth, "at most 2x", whole.cpu <= 2 * tenth.cpu)]
    tenth, whole = (_step("rebuild", place) for place in places.values())
    table.append(_told("rebuild, all history / a tenth", whole, tenth, "at most 10x", whole.cpu <= 10 * tenth.cpu))
    duck = _step("duckdb-rebuild", places[NIGHTS])
    assert duck.answer == whole.answer, (duck, whole)
    table.append(_told("rebuild, Spark / DuckDB", whole, duck, "none", None))

    before, night = scratch / "night-before", scratch / "night"
    _write_night(before, night_rows, NIGHTS)
    _write_night(night, night_rows, NIGHTS + 1)
    _step("nightly", scratch / "new", results=before)
    ours = _step("nightly", scratch / "new", results=night)
    duck = _step("duckdb-nightly", scratch / "new", results=night)
    assert duck.answer == ours.answer, (duck, ours)
    aim = f"{NIGHTLY_SECONDS:g} s for 60000 rows"
    met = ours.cpu <= NIGHTLY_SECONDS if night_rows == 60_000 else None
    table.append(_told(f"nightly of {night_rows} rows, Spark / DuckDB", ours, duck, aim, met))
    least = _step("parse", scratch / "new", results=night)
    table.append(_told(f"nightly of {night_rows} rows / parsing its lines", ours, least, "none", None))
    heads = ["processor seconds (on the clock)", "ours", "beside", "ratio", "aim", ""]
    print(f"\n{rows} check rows in {NIGHTS} nights")
    print(tabulate(table, heads, "github", disable_numparse=True))


@dataclass(frozen=True)
class Measured:
    """What a step cost, in processor seconds and on the clock, and what came out of it."""

    cpu: float
    wall: float
    answer: int

    def __str__(self) -> str:
        return f"{self.cpu:.1f} s ({self.wall:.1f} s)"


def _told(what: str, one: Measured, other: Measured, aim: str, met: bool | None) -> list[str]:
    verdict = "" if met is None else "met" if met else "missed"
    return [what, str(one), str(other), f"{one.cpu / other.cpu:.2f}x", aim, verdict]


def _step(name: str, place: Path, *, rows: int = 0, nights: int = 0, results: Path | None = None) -> Measured:
    """Do one thing in a process of its own, and return what it cost and what came out."""
    command = [sys.executable, "-m", "benchmarks.history", "--step", name, "--place", str(place)]
    command += ["--rows", str(rows), "--nights", str(nights)]
    command += ["--results", str(results)] if results else []
    started = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=STEP_SECONDS, check=True)
    measured = Measured(wall=time.monotonic() - started, **json.loads(done.stdout.splitlines()[-1]))
    print(f"{name} {place.name}: {measured}", file=sys.stderr)
    return measured


def _perform(options: argparse.Namespace) -> None:
    answer = STEPS[options.step](options)
    print(json.dumps({"cpu": _processor_seconds(), "answer": answer}))


def _processor_seconds() -> float:
    """Of this process, of the JVM that it started and of all that both started, from their beginning."""
    me = psutil.Process()
    return sum(sum(process.cpu_times()[:4]) for process in (me, *me.children(recursive=True)))


# -- steps, each in a process of its own


def _generate(options: argparse.Namespace) -> int:
    spark = _large_session()
    archive = Archive(spark, str(options.place))
    checks: int = math.ceil(options.rows / (NIGHTS * BACKENDS))
    for start in range(0, options.nights, MONTH):
        nights = range(start, min(start + MONTH, options.nights))
        batch = archive.write_batch(_synthetic(spark, nights, checks, start // MONTH), None)
        archive.commit(batch, [_night(night, backend, checks) for night in nights for backend in range(BACKENDS)])
    past = archive.past()  # a summary is what every report before would have left
    archive.summarise(past, archive.sightings(past))
    return checks * int(options.nights) * BACKENDS


def _synthetic(spark: SparkSession, nights: range, checks: int, month: int) -> DataFrame:
    """A month of checks: one in twenty deviates on a build, one in two thousand is not as the build usually is."""
    each = spark.range(len(nights) * BACKENDS * checks)
    number, night = F.col("id") % checks, F.lit(nights.start) + (F.col("id") / (BACKENDS * checks)).cast("int")
    backend = ((F.col("id") / checks) % BACKENDS).cast("int")
    usual = F.pmod(F.hash(number, backend, F.lit(month // 3)), F.lit(20)) == 0
    odd = F.pmod(F.hash("id", night), F.lit(2000)) == 0
    scenario = F.concat(F.lit("latest.s"), (number / 5).cast("int").cast("string"))
    values = {
        "run_id": F.format_string("run-%05d", night),
        "backend": F.format_string("broker-%d", backend),
        "worker": F.lit("main"),
        "started": F.timestamp_seconds(F.lit(int(FIRST_NIGHT.timestamp())) + night * 86400),
        "version": F.lit(f"1.{month // 3}"),
        "build": F.lit(f"build {month // 3}"),
        "clients": F.lit("{}"),
        "suite": F.lit(f"suite {month}"),
        "host": F.lit("{}"),
        "oracle": backend == 0,
        "check": F.concat(scenario, F.lit(":q"), (number % 5).cast("string")),
        "flaky": F.lit(False),
        "scenario": scenario,
        "revision": F.lit(1),
        "family": F.lit("latest"),
        "level": F.lit("MUST"),
        "verdict": F.when(usual != odd, "deviates").otherwise("conforms"),
        "grade": F.lit(None),
        "reason": F.lit(""),
        "observed": F.lit('{"offset":1}'),
    }
    names = [field.split()[0] for field in CHECKS.split(",")]
    typed = dict(field.split() for field in CHECKS.split(","))
    return each.select(*(values[name].cast(typed[name]).alias(name) for name in names))


def _night(night: int, backend: int, checks: int) -> dict[str, object]:
    moment = (FIRST_NIGHT + timedelta(days=night)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    texts = {"version": "1", "build": "build", "clients": "{}", "suite": "suite", "host": "{}"}
    counts = dict.fromkeys(VERDICTS, 0) | {"conforms": checks // 5}
    return {
        "run_id": f"run-{night:05}",
        "backend": f"broker-{backend}",
        "worker": "main",
        "started": moment,
        **texts,
        "oracle": backend == 0,
        "complete": True,
        "asked": True,
        "good": True,
        "lines": checks + 2,
        "malformed": 0,
        **counts,
    }


def _nightly(options: argparse.Namespace) -> int:
    report = job.build(
        [str(options.results)],
        str(options.place.parent / "out"),
        java_home=str(find_java().home),
        history=str(options.place),
    )
    assert report.history is not None
    return len(report.history.changes)


def _parse(options: argparse.Namespace) -> int:
    files = job.result_files([str(options.results)])
    size = sum(Path(file).stat().st_size for file in files)
    lines = ingest.read(spark_session(java_home=str(find_java().home), input_bytes=size), files)
    parsed = lines.select(F.from_json("raw", LINE).alias("line")).select("line.*")
    parsed.write.format("noop").mode("overwrite").save()
    return len(files)


def _rebuild(options: argparse.Namespace) -> int:
    everything = Archive(_large_session(), str(options.place)).every_check()
    return int(history.sightings(everything).count())


def _duckdb_rebuild(options: argparse.Namespace) -> int:
    return _duckdb(REBUILD.format(place=options.place))


def _duckdb_nightly(options: argparse.Namespace) -> int:
    return _duckdb(NIGHTLY.format(results=options.results, place=options.place))


def _duckdb(query: str) -> int:
    import duckdb  # only to measure beside; the project itself does without it

    row = duckdb.connect().execute(query).fetchone()
    assert row is not None
    return int(row[0])


def _large_session() -> SparkSession:
    return spark_session(java_home=str(find_java().home), input_bytes=LARGE_BYTES)


STEPS: dict[str, Callable[[argparse.Namespace], int]] = {
    "generate": _generate,
    "nightly": _nightly,
    "parse": _parse,
    "rebuild": _rebuild,
    "duckdb-rebuild": _duckdb_rebuild,
    "duckdb-nightly": _duckdb_nightly,
}


# -- result files


def _write_night(place: Path, rows: int, night: int) -> None:
    """The result files of one more night, as the suites would have written them."""
    place.mkdir()
    run = f"run-{night:05}"
    moment = (FIRST_NIGHT + timedelta(days=night)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for backend in range(BACKENDS):
        common = {"run_id": run, "worker": "main", "backend": f"broker-{backend}"}
        header = {
            "kind": "header",
            "schema_version": 1,
            "started": moment,
            "suite_revision": "suite",
            "host": {},
            "backend_version": "1.7",
            "build": "build 7",
            "oracle": backend == 0,
            "clients": {},
            "seed": 1,
        }
        checks = rows // BACKENDS
        lines = [header, *(_check(number, moment, night) for number in range(checks))]
        lines.append({"kind": "footer", "ended": moment, "checks": checks, "counts": {}})
        text = "".join(json.dumps({**line, **common}) + "\n" for line in lines)
        (place / f"{run}.broker-{backend}.ndjson").write_text(text)


def _check(number: int, moment: str, night: int) -> dict[str, object]:
    scenario = f"latest.s{number // 5}"
    # One in twenty, and one in a thousand that is another one each night: a night without news would be too easy.
    wrong = number % 20 == 0 or (number + night) % 1000 == 0
    exchange = {"api": "list_offsets", "version": 7, "node": "127.0.0.1:9092", "ms": 1.0}
    return {
        "kind": "check",
        "scenario": scenario,
        "check": f"{scenario}:q{number % 5}",
        "revision": 1,
        "family": "latest",
        "level": "MUST",
        "title": "a title of the usual length for a scenario",
        "verdict": "deviates" if wrong else "conforms",
        "grade": None if wrong else "exact",
        "reason": "offset is 0 instead of 1" if wrong else "",
        "asked": "ListOffsets v7 timestamp=-1 (latest)",
        "accepted": [{"error": 0, "offset": 1, "grade": "exact"}],
        "observed": {"error": 0, "offset": 0 if wrong else 1},
        "sources": ["KIP-79"],
        "impact": "A reader misses a record.",
        "test": "suites/test_latest.py::test_one",
        "started": moment,
        "duration_ms": 1.5,
        "attempt": 1,
        "evidence": [{**exchange, "request": "x" * 200, "response": "y" * 200}],
    }


if __name__ == "__main__":
    main()
