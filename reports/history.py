"""Runs over time: pure DataFrame -> DataFrame functions.

For: what is kept of a run (`checks`, `nights`), the compact table that history is folded into (`sightings`), and
what it tells: when a deviation was first and last seen, which checks are flaky and how surely, at which version a
behaviour changed, what changed since an earlier run, who answers alike.

A sighting is a verdict that a build gave to a revision of a check, with how often and from when to when. Folding
them is adding, and taking the smaller and the larger: in whatever order runs arrive, and however they are gathered,
the same table comes out. So a night is folded into yesterday's table and the past is not read again.

Left to others: where tables lie (`reports.archive`), reading lines (`reports.ingest`), wording (the renderers).
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from reports.matrix import KEY, counts, version_numbers
from reports.model import MISSING, VERDICTS
from reports.outcomes import FLAKY, OURS, SAME, TABLE, VANISHED

# Two standard deviations: an interval that holds the true rate in 95 of 100 cases.
Z = 1.96

# What a verdict was given by and to. Everything else about a sighting is counted.
# The check stands first because it tells most rows apart: sorting looks at the others only where it does not.
SIGHTING = ("check", "backend", "version", "build", "scenario", "level", "revision", "verdict")

# What a run records of its own inputs, and what a person calls each.
INPUTS = {
    "version": "broker version",
    "build": "broker build",
    "clients": "client",
    "suite": "suite",
    "host": "host",
}


def checks(attempts: DataFrame, outline: DataFrame) -> DataFrame:
    """What is kept of the attempts (`reports.matrix`): one row per check of a file, with the inputs of its run.

    Evidence, questions and accepted answers stay in the result files: they are large, and belong to the suite's
    revision rather than to the night.
    """
    kept = ("scenario", "revision", "family", "level", "verdict", "grade", "reason", "observed")
    return (
        attempts.select(*KEY, "check", "flaky", *kept)
        .join(F.broadcast(headers(outline)), list(KEY))
        .select(*KEY, "started", *INPUTS, "oracle", "check", "flaky", *kept)
    )


def headers(outline: DataFrame) -> DataFrame:
    """One row per file: when it started, and the inputs that its header tells, empty where they are not known.

    A file without a header started with its first check; one that has neither has no start.
    """
    header = F.col("kind") == "header"
    inputs = {"version": "backend_version", "build": "build", "clients": "clients", "suite": "suite_revision"}
    return outline.groupBy(*KEY).agg(
        F.coalesce(F.min(F.when(header, F.col("started"))), F.min("started")).alias("started"),
        *(F.coalesce(F.max(field), F.lit("")).alias(name) for name, field in (inputs | {"host": "host"}).items()),
        F.coalesce(F.bool_or("oracle"), F.lit(False)).alias("oracle"),
    )


def nights(outline: DataFrame, attempts: DataFrame) -> DataFrame:
    """One row per file of a run: its inputs, whether it is complete, and how its scenarios came out."""
    kind = F.col("kind")
    files = outline.groupBy(*KEY).agg(
        F.sum("lines").alias("lines"),
        (
            (F.bool_or(kind == "header") & F.bool_or(kind == "footer"))
            | (F.bool_or(kind == "not-run") & ~F.bool_or(kind == "check"))
        ).alias("complete"),
        F.bool_or(kind == "check").alias("asked"),
    )
    worst = F.min(F.array_position(F.array(*map(F.lit, VERDICTS)), F.col("verdict"))).cast("int")
    scenarios = (
        attempts.groupBy(*KEY, "scenario")
        .agg(F.element_at(F.array(*map(F.lit, VERDICTS)), worst).alias("outcome"))
        .groupBy(*KEY)
        .agg(counts("outcome", VERDICTS))
    )
    known = files.join(headers(outline), list(KEY)).join(scenarios, list(KEY), "left")
    # Two files of one run began together: one that did not run has no header of its own.
    began = F.coalesce("started", F.min("started").over(Window.partitionBy("run_id")))
    return known.select(
        *KEY,
        F.date_format(began, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").alias("started"),
        *INPUTS,
        "oracle",
        "lines",
        "complete",
        "asked",
        *(F.coalesce(F.col("counts")[verdict], F.lit(0)).alias(verdict) for verdict in VERDICTS),
    )


def sightings(checks: DataFrame) -> DataFrame:
    """Checks folded: how often which build gave which verdict to which revision, from when to when."""
    return merged(single(checks))


def single(checks: DataFrame) -> DataFrame:
    """Each check as a sighting of its own."""
    when = F.struct("started", "run_id")
    return checks.select(
        *SIGHTING,
        F.lit(1).cast("long").alias("runs"),
        F.col("flaky").cast("long").alias("flaky_runs"),
        when.alias("first"),
        when.alias("last"),
    )


def merged(sightings: DataFrame) -> DataFrame:
    """Sightings of several tables as one table."""
    return sightings.groupBy(*SIGHTING).agg(
        F.sum("runs").alias("runs"),
        F.sum("flaky_runs").alias("flaky_runs"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
    )


def telling(sightings: DataFrame) -> DataFrame:
    """The sightings of checks that a family of brokers did not always answer alike and well: all that has a story."""
    code = F.array_position(F.array(*map(F.lit, VERDICTS)), F.col("verdict"))
    dull = ("conforms", "not-applicable")
    told = (
        sightings.groupBy(family(), "check")
        .agg(
            F.min(code).alias("least"),
            F.max(code).alias("most"),
            F.bool_and(F.col("verdict").isin(*dull)).alias("dull"),
            F.sum("flaky_runs").alias("flaky_runs"),
        )
        .filter("least != most or not dull or flaky_runs > 0")
    )
    return sightings.withColumn("family", family()).join(told, ["family", "check"], "left_semi").drop("family")


def family() -> Column:
    """The broker whatever its version or address: the name of a backend up to the first @ or bracket."""
    return F.regexp_extract("backend", r"^[^@(]*", 0).alias("family")


def deviations_seen(sightings: DataFrame) -> DataFrame:
    """For every check that ever deviated on a backend: when first, when last, how often, and whether it still does.

    Still: no other verdict was given to it after the last deviation.
    """
    wrong = F.col("verdict") == "deviates"
    return (
        sightings.groupBy("backend", "scenario", "check")
        .agg(
            F.min(F.when(wrong, F.col("first"))).alias("first"),
            F.max(F.when(wrong, F.col("last"))).alias("last"),
            F.min_by(F.when(wrong, F.col("build")), F.when(wrong, F.col("first"))).alias("first_build"),
            F.sum(F.when(wrong, F.col("runs")).otherwise(0)).alias("deviating"),
            F.sum("runs").alias("runs"),
            F.max("last").alias("seen"),
        )
        .filter("deviating > 0")
        .select(
            "backend",
            "scenario",
            "check",
            *moment("first"),
            *moment("last"),
            "first_build",
            "deviating",
            "runs",
            (F.col("last") == F.col("seen")).alias("still"),
        )
    )


def flakes(sightings: DataFrame) -> DataFrame:
    """Checks that one build answered differently in different runs, or within one: how often, with the interval.

    The rate is the share of runs that were not as the usual one is; `low` and `high` are Wilson's bounds, which
    are honest for few runs and for rates near zero.
    """
    groups = sightings.groupBy("backend", "build", "scenario", "check", "revision").agg(
        F.sum("runs").alias("runs"),
        F.max("runs").alias("usual"),
        F.sum("flaky_runs").alias("flaky_runs"),
        F.collect_set("verdict").alias("verdicts"),
        F.max("last").alias("last"),
    )
    odd = F.least(F.col("runs"), F.col("runs") - F.col("usual") + F.col("flaky_runs"))
    rate = F.col("odd") / F.col("runs")
    spread = Z * F.sqrt(rate * (1 - rate) / F.col("runs") + Z * Z / (4 * F.col("runs") * F.col("runs")))
    middle = rate + Z * Z / (2 * F.col("runs"))
    scale = 1 + Z * Z / F.col("runs")
    return (
        groups.withColumn("odd", odd)
        .filter("odd > 0")
        .select(
            "backend",
            "build",
            "scenario",
            "check",
            "revision",
            "runs",
            "odd",
            rate.alias("rate"),
            F.greatest(F.lit(0.0), (middle - spread) / scale).alias("low"),
            F.least(F.lit(1.0), (middle + spread) / scale).alias("high"),
            F.array_sort("verdicts").alias("verdicts"),
            *moment("last"),
        )
    )


def version_changes(sightings: DataFrame) -> DataFrame:
    """Where the usual verdict of one version of a broker is not that of the version before it.

    Versions are compared under the same revision of the check: a change of ours is no change of behaviour.
    """
    usual = (
        sightings.filter("version != ''")
        .groupBy(family(), "scenario", "check", "revision", "version", "verdict")
        .agg(F.sum("runs").alias("runs"), F.max("last").alias("last"))
        .groupBy("family", "scenario", "check", "revision", "version")
        .agg(F.max_by("verdict", F.struct("runs", "last")).alias("verdict"))
    )
    in_order = Window.partitionBy("family", "check", "revision").orderBy(version_numbers(F.col("version")), "version")
    return (
        usual.withColumns({"before": F.lag("verdict").over(in_order), "since": F.lag("version").over(in_order)})
        .filter("before is not null and before != verdict")
        .select(
            "family",
            "scenario",
            "check",
            "revision",
            F.col("since").alias("from_version"),
            F.col("version").alias("to_version"),
            "before",
            F.col("verdict").alias("after"),
        )
    )


def changes(before: DataFrame, after: DataFrame) -> DataFrame:
    """What became of each check between two runs of each backend; what stayed the same is left out.

    Both are `checks` of one run per backend; some may be there twice. Where a story was not told to its end, the
    check `story` that says so speaks for those that were not asked. A scenario whose revision differs changed by our
    own doing.
    """
    runs = _inputs(before, "before").join(_inputs(after, "after"), "backend")
    # Most scenarios come out as they did: only the others are worth comparing check by check.
    differing = F.broadcast(_differing(before, after).localCheckpoint())
    before, after = (
        side.join(differing, ["backend", "scenario"], "left_semi")
        .dropDuplicates(["backend", "check"])
        .localCheckpoint()
        for side in (before, after)
    )
    left, right = (_with_story(side) for side in (before, after))
    sides = left.select(
        "backend", "check", "scenario", *(F.col(name).alias(f"{name}_before") for name in _COMPARED)
    ).join(
        right.select("backend", "check", "scenario", *(F.col(name).alias(f"{name}_after") for name in _COMPARED)),
        ["backend", "scenario", "check"],
        "full",
    )
    whole = sides.join(_scenarios(before, "before"), ["backend", "scenario"], "left").join(
        _scenarios(after, "after"), ["backend", "scenario"], "left"
    )
    verdicts = {
        side: F.coalesce(f"verdict_{side}", f"story_{side}", F.lit(MISSING)).alias(side) for side in ("before", "after")
    }
    told_elsewhere = F.col("check").endswith(":story") & (
        (F.col("revision_before").isNotNull() & F.col("story_before").isNull())
        | (F.col("revision_after").isNotNull() & F.col("story_after").isNull())
    )
    table = F.create_map(*(part for pair, name in TABLE.items() for part in (F.lit("|".join(pair)), F.lit(name))))
    revised = F.coalesce(F.col("revision_before") != F.col("revision_after"), F.lit(False))
    dropped = F.col("revision_after").isNull() & (F.col("suite_before") != F.col("suite_after"))
    moved = F.array_compact(
        F.array(
            *(F.when(F.col(f"{name}_before") != F.col(f"{name}_after"), word) for name, word in INPUTS.items()),
            F.when(F.col("revised"), "scenario revision"),
        )
    )
    judged = (
        whole.filter(~told_elsewhere)
        .join(runs, "backend")
        .withColumns({"revised": revised, "dropped": dropped})
        .select("*", *verdicts.values())
    )
    change = table[F.concat_ws("|", "before", "after")]
    outcome = (
        F.when(F.coalesce("flaky_after", F.lit(False)), FLAKY)
        .when((change != SAME) & (F.col("revised") | (F.col("dropped") & (change == VANISHED))), OURS)
        .otherwise(change)
    )
    return (
        judged.withColumn("outcome", outcome)
        .filter(F.col("outcome") != SAME)
        .select(
            "outcome",
            "backend",
            "check",
            F.coalesce("level_after", "level_before").alias("level"),
            "before",
            "after",
            F.coalesce("reason_after", "story_reason_after", F.lit("")).alias("reason"),
            moved.alias("moved"),
        )
    )


_COMPARED = ("verdict", "level", "reason", "flaky")


def _differing(before: DataFrame, after: DataFrame) -> DataFrame:
    """The scenarios, as (backend, scenario), that have a flaky check or not the same checks and verdicts in both."""
    answer = F.xxhash64("check", "verdict", "revision").alias("answer")
    one, other = (side.select("backend", "scenario", "flaky", answer).distinct() for side in (before, after))
    # A check that is the same in both is there twice, and cancels out.
    return (
        one.unionByName(other)
        .groupBy("backend", "scenario")
        .agg(F.bit_xor("answer").alias("answers"), F.bool_or("flaky").alias("flaky"))
        .filter("answers != 0 or flaky")
        .select("backend", "scenario")
    )


def _with_story(side: DataFrame) -> DataFrame:
    return side.select("backend", "scenario", "check", *_COMPARED)


def _scenarios(side: DataFrame, name: str) -> DataFrame:
    """Per scenario: its revision, and how its story ended if it was not told."""
    story = F.col("check").endswith(":story")
    return side.groupBy("backend", "scenario").agg(
        F.max("revision").alias(f"revision_{name}"),
        F.max(F.when(story, F.col("verdict"))).alias(f"story_{name}"),
        F.max(F.when(story, F.col("reason"))).alias(f"story_reason_{name}"),
    )


def _inputs(side: DataFrame, name: str) -> DataFrame:
    few = side.select("backend", *INPUTS).distinct()
    return few.groupBy("backend").agg(*(F.max(F.coalesce(i, F.lit(""))).alias(f"{i}_{name}") for i in INPUTS))


def fingerprints(cells: DataFrame) -> DataFrame:
    """Who answers alike: per scenario, the backends that gave the same answers to all its checks.

    Columns: scenario, fingerprint, backends, odd: whether this is one backend against all others, who agree.
    """
    groups = cells.groupBy("scenario", "fingerprint").agg(F.array_sort(F.collect_list("backend")).alias("backends"))
    everybody = Window.partitionBy("scenario")
    alone = (F.size("backends") == 1) & (F.count("*").over(everybody) == 2)
    return groups.withColumn("odd", alone & (F.sum(F.size("backends")).over(everybody) > 2))


def moment(name: str) -> tuple[Column, Column]:
    """A struct of moment and run as two columns, the moment as text: Python would read it in the machine's zone."""
    return (
        F.date_format(F.col(name)["started"], "yyyy-MM-dd'T'HH:mm:ss'Z'").alias(name),
        F.col(name)["run_id"].alias(f"{name}_run"),
    )
