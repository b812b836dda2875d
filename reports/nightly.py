"""One report's worth of runs taken into history, and what history then tells about them.

For: which files are new, which night each backend is compared with, and collecting what history tells.
Left to others: the tables (`reports.history`) and where they lie (`reports.archive`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from reports import history, ingest, outcomes
from reports.archive import Archive
from reports.changes import place
from reports.history import INPUTS
from reports.matrix import KEY
from reports.model import (
    VERDICTS,
    Change,
    Column,
    DeviationSeen,
    Flake,
    History,
    Matrix,
    Night,
    Sighting,
    VersionChange,
)

# After these a night is not one that later nights may rest on: what broke stays news until it is mended.
SPOILERS: Final = frozenset(
    {outcomes.REGRESSION, outcomes.NOT_APPLICABLE, outcomes.VANISHED, outcomes.UNDECIDED, outcomes.FLAKY}
)

# A year of nights fills a chart; what is older is in history.
NIGHTS_SHOWN: Final = 366

Folded = Mapping[str, list[SparkRow]]
Key = tuple[str, str, str]
Expected = Callable[[Change, Column], bool]


def take_in(
    archive: Archive,
    tonights: DataFrame,
    malformed: DataFrame | None,
    folded: Folded,
    matrix: Matrix,
    expected: Expected,
) -> History:
    """Add what is new to history, compare each backend's newest run with its last good night, and tell.

    `tonights` are the checks and `malformed` the lines that could not be read, if there are any. A change that was
    expected is none, and spoils no night.
    """
    tonight = _nights(folded)
    shown = {column.backend: column.run_id for column in matrix.columns}
    past = archive.past()
    index = archive.nights(past)
    known, candidates = _look_up(index, tonight, shown)
    new = [night for key, night in tonight.items() if night["lines"] > known.get(key, 0)]

    # The run that is shown may be known already, so what is new and what is compared are not the same.
    batch = archive.write_batch(_of(tonights, new), malformed) if new else ""
    bases = _bases(candidates, tonight, shown, batch)
    columns = {column.backend: column for column in matrix.columns}
    changes = tuple(
        change
        for change in _changes(archive, tonights, bases, shown, matrix)
        if not expected(change, columns[change.backend])
    )
    spoilt = {change.backend for change in changes if change.outcome in SPOILERS}
    if new:
        archive.commit(
            batch,
            [
                night | {"good": night["complete"] and night["asked"] and not _spoilt(night, shown, spoilt)}
                for night in new
            ],
        )
    past = archive.past()
    sightings = archive.sightings(past).localCheckpoint()
    if past.fresh:
        archive.summarise(past, sightings)
        past = archive.past()
    told = _tell(sightings, archive.nights(past))
    return History(
        compared={backend: base["run_id"] for backend, base in sorted(bases.items())},
        changes=changes,
        deviations=tuple(DeviationSeen(**row.asDict()) for row in told["deviation"]),
        flakes=tuple(Flake(**row.asDict() | {"verdicts": tuple(row["verdicts"])}) for row in told["flake"]),
        versions=tuple(VersionChange(**row.asDict()) for row in told["version"]),
        sightings=tuple(Sighting(**row.asDict()) for row in told["sighting"]),
        nights=tuple(_night(row) for row in told["night"]),
        malformed=sum(row["malformed"] for row in told["malformed"]),
    )


def _nights(folded: Folded) -> dict[Key, dict[str, Any]]:
    """Tonight's files by their key, each with the malformed lines of its file."""
    nights = {_key(row): row.asDict() | {"malformed": 0} for row in folded["night"]}
    malformed: dict[str, int] = defaultdict(int)
    keys: dict[str, Key] = {}
    for account in folded["account"]:
        if account["kind"] == ingest.MALFORMED:
            malformed[account["file"]] += account["lines"]
    for row in folded["file"]:
        keys.setdefault(row["file"], _key(row))
    for file, lines in malformed.items():
        # A file without one good line says neither its run nor its backend: it is known by its name.
        key = keys.get(file, ("", "", file.rpartition("/")[2]))
        night = nights.setdefault(key, _empty_night(key))
        night["malformed"] += lines
        night["lines"] += lines
    return nights


def _empty_night(key: Key) -> dict[str, Any]:
    texts = dict.fromkeys(("started", *INPUTS), "")
    flags = dict.fromkeys(("oracle", "complete", "asked"), False)
    numbers = dict.fromkeys(("lines", "malformed", *VERDICTS), 0)
    return dict(zip(KEY, key, strict=True)) | texts | flags | numbers


def _look_up(
    index: DataFrame, tonight: Iterable[Key], shown: Mapping[str, str]
) -> tuple[dict[Key, int], dict[str, list[SparkRow]]]:
    """How many lines history has of each of tonight's files, and per backend the good nights to compare with."""
    runs = sorted({run for run, _, _ in tonight})
    same = index.filter(F.col("run_id").isin(*runs)).select(F.lit("known").alias("what"), *index.columns)
    in_order = Window.partitionBy("backend").orderBy(F.desc("started"), F.desc("run_id"))
    whole = F.min("complete").over(Window.partitionBy("run_id", "backend"))
    good = F.min("good").over(Window.partitionBy("run_id", "backend"))
    last = (
        index.filter(F.col("backend").isin(*shown) & ~F.col("run_id").isin(*set(shown.values())))
        .withColumns({"whole": whole, "fine": good})
        .filter("whole and fine and asked")
        .withColumn("rank", F.dense_rank().over(in_order))
        # The last is enough unless tonight's run is itself older than some of history.
        .filter("rank <= 10")
        .select(F.lit("good").alias("what"), *index.columns)
    )
    known: dict[Key, int] = {}
    candidates: dict[str, list[SparkRow]] = defaultdict(list)
    for row in same.unionByName(last).collect():
        if row["what"] == "known":
            known[_key(row)] = row["lines"]
        else:
            candidates[row["backend"]].append(row)
    return known, candidates


def _bases(
    candidates: Mapping[str, Sequence[SparkRow]],
    tonight: Mapping[Key, Mapping[str, Any]],
    shown: Mapping[str, str],
    batch: str,
) -> dict[str, dict[str, Any]]:
    """Per backend: the newest good night before the run that is shown, with the batches that hold it."""
    found = {}
    for backend, run_id in shown.items():
        mine = [night for (run, name, _), night in tonight.items() if name == backend and run == run_id]
        began = min(night["started"] or "" for night in mine) if mine else ""
        if not any(night["asked"] for night in mine):
            continue  # a broker that did not start has nothing to compare
        nights = [row.asDict() for row in candidates.get(backend, ())]
        nights += [
            dict(night) | {"batch": batch}
            for (run, name, _), night in tonight.items()
            if name == backend and run != run_id and night["complete"] and night["asked"] and batch
        ]
        earlier = [night for night in nights if night["started"] < began]
        if earlier:
            newest = max(earlier, key=lambda night: (night["started"], night["run_id"]))
            batches = {night["batch"] for night in earlier if night["run_id"] == newest["run_id"]}
            found[backend] = {"run_id": newest["run_id"], "batches": batches}
    return found


def _changes(
    archive: Archive,
    tonights: DataFrame,
    bases: Mapping[str, Mapping[str, Any]],
    shown: Mapping[str, str],
    matrix: Matrix,
) -> tuple[Change, ...]:
    if not bases:
        return ()
    before = archive.rows({backend: base["run_id"] for backend, base in bases.items()}, _batches(bases))
    after = _runs(tonights, {backend: shown[backend] for backend in bases})
    impacts = {row.scenario: row.impact for row in matrix.rows}
    found = (
        Change(
            **row.asDict() | {"moved": tuple(row["moved"])},
            impact=impacts.get(row["check"].partition(":")[0], ""),
        )
        for row in history.changes(before, after).collect()
    )
    return tuple(sorted(found, key=place))


def _batches(bases: Mapping[str, Mapping[str, Any]]) -> set[str]:
    return {batch for base in bases.values() for batch in base["batches"]}


def _runs(rows: DataFrame, runs: Mapping[str, str]) -> DataFrame:
    """The rows of one run per backend."""
    return rows.filter(
        reduce(
            lambda one, other: one | other,
            ((F.col("backend") == backend) & (F.col("run_id") == run) for backend, run in runs.items()),
        )
    )


def _of(checks: DataFrame, nights: Sequence[Mapping[str, Any]]) -> DataFrame:
    """The checks of these files of runs."""
    keys = F.struct(*KEY)
    return checks.filter(keys.isin(*(F.struct(*(F.lit(night[part]).alias(part) for part in KEY)) for night in nights)))


def _spoilt(night: Mapping[str, Any], shown: Mapping[str, str], spoilt: Iterable[str]) -> bool:
    return night["backend"] in spoilt and shown.get(night["backend"]) == night["run_id"]


def _tell(sightings: DataFrame, nights: DataFrame) -> dict[str, list[SparkRow]]:
    """All that history tells."""
    sightings = history.telling(sightings).localCheckpoint()
    checks = Window.partitionBy("backend", "check")
    steady = (F.col("verdict").isin("conforms", "not-applicable")) & (F.count("*").over(checks) == 1)
    recent = Window.partitionBy("backend").orderBy(F.desc("started"))
    parts = {
        "deviation": history.deviations_seen(sightings),
        "flake": history.flakes(sightings),
        "version": history.version_changes(sightings),
        "sighting": sightings.withColumn("steady", steady)
        .filter(~F.col("steady"))
        .select(
            *("backend", "version", "build", "scenario", "check", "revision", "verdict", "runs"),
            *history.moment("first"),
            *history.moment("last"),
        ),
        "night": nights.filter("asked")
        .groupBy("run_id", "backend")
        .agg(
            F.min("started").alias("started"),
            F.max("version").alias("version"),
            F.max("build").alias("build"),
            F.min("complete").alias("complete"),
            F.min("good").alias("good"),
            *(F.sum(f"`{verdict}`").alias(verdict) for verdict in VERDICTS),
        )
        .withColumn("rank", F.row_number().over(recent))
        .filter(F.col("rank") <= NIGHTS_SHOWN)
        .drop("rank"),
        "malformed": nights.agg(F.coalesce(F.sum("malformed"), F.lit(0)).alias("malformed")),
    }
    told = {name: part.collect() for name, part in parts.items()}
    order = {"sighting": ("backend", "check", "first"), "night": ("backend", "started")}
    for name, rows in told.items():
        columns = order.get(name, tuple(parts[name].columns[:4]))
        rows.sort(key=lambda row, columns=columns: [str(row[column]) for column in columns])  # type: ignore[misc]
    return told


def _night(row: SparkRow) -> Night:
    values = row.asDict()
    counts = {verdict: values.pop(verdict) for verdict in VERDICTS}
    return Night(**values, counts={verdict: count for verdict, count in counts.items() if count})


def _key(row: Any) -> Key:
    return row["run_id"], row["backend"], row["worker"]
