"""Typed result lines to the matrix: pure DataFrame -> DataFrame functions.

For: which run a column shows, which attempt counts, what a cell says, what is disputed, and who deviates.
`lines` is everywhere the good lines of `reports.ingest`, of any number of files and runs.

Lines are many and everything else is few, so they are gone through twice: for the outline and for the attempts. Where
many rows are grouped, what is counted has a fixed width (numbers, moments): Spark then needs no sorting.

Left to others: reading lines (`reports.ingest`), and order and wording (the renderers).
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from reports.model import COMPLETE, CUT_OFF, MISSING, NOT_RUN, OUTCOMES, VERDICTS
from reports.schema import CHECK, LEFT_IN_FILES

# What tells one file of a run from another.
KEY = ("run_id", "backend", "worker")

# What tells one check of a run from another.
ASKED = ("run_id", "backend", "scenario", "check")


def outline(lines: DataFrame) -> DataFrame:
    """The lines in short: those that are no checks, and for all checks of a file one that stands for them.

    `lines` is how many each stands for; `started` is a moment, and of checks that of the first.
    """
    kind = F.col("kind")
    told = ("reason", "oracle", "backend_version", "build", "clients", "suite_revision", "host")
    checks = (
        lines.filter(kind == "check")
        .groupBy("file", *KEY, "kind")
        .agg(F.count("*").alias("lines"), F.min("started").alias("started"))
    )
    others = lines.filter(kind != "check").select("file", *KEY, "kind", F.lit(1).alias("lines"), "started", *told)
    return checks.unionByName(others, allowMissingColumns=True)


def runs(outline: DataFrame) -> DataFrame:
    """One row per (run_id, backend), with its files, one per worker, merged.

    Columns: started, oracle, backend_version, build, status, not_run (the reasons why it did not run).
    A run whose header is lost starts with its first check, or with whatever else started in the same run.
    A backend is an oracle if any header of it, of any run, says so.
    """
    kind, started = F.col("kind"), F.col("started")
    files = outline.groupBy("run_id", "backend", "file").agg(
        F.bool_or(kind == "header").alias("header"),
        F.bool_or(kind == "footer").alias("footer"),
        F.bool_or(kind == "check").alias("checks"),
        F.bool_or(kind == "not-run").alias("refused"),
        F.min(F.when(kind == "header", started)).alias("header_started"),
        F.min(F.when(kind == "check", started)).alias("check_started"),
        F.bool_or("oracle").alias("oracle"),
        F.max("backend_version").alias("backend_version"),
        F.max("build").alias("build"),
        F.collect_set(F.when(kind == "not-run", F.col("reason"))).alias("reasons"),
    )
    # A broker that would not start has nothing to finish; every other file ends with a footer.
    torn = (F.col("checks") | ~F.col("refused")) & ~(F.col("header") & F.col("footer"))
    merged = files.groupBy("run_id", "backend").agg(
        F.bool_or(torn).alias("torn"),
        F.bool_or("checks").alias("checks"),
        F.bool_or("refused").alias("refused"),
        F.min("header_started").alias("header_started"),
        F.min("check_started").alias("check_started"),
        F.bool_or("oracle").alias("oracle"),
        F.max("backend_version").alias("backend_version"),
        F.max("build").alias("build"),
        F.array_sort(F.array_distinct(F.flatten(F.collect_list("reasons")))).alias("not_run"),
    )
    any_start = F.min("header_started").over(Window.partitionBy("run_id"))
    any_oracle = F.bool_or("oracle").over(Window.partitionBy("backend"))
    status = (
        F.when(F.col("refused") & ~F.col("checks") & ~F.col("torn"), NOT_RUN)
        .when(F.col("refused") | F.col("torn"), CUT_OFF)
        .otherwise(COMPLETE)
    )
    return merged.select(
        "run_id",
        "backend",
        F.coalesce("header_started", "check_started", any_start).alias("started"),
        F.coalesce(any_oracle, F.lit(False)).alias("oracle"),
        "backend_version",
        "build",
        status.alias("status"),
        "not_run",
    )


def columns(runs: DataFrame) -> DataFrame:
    """One row per backend: its newest run."""
    newest = F.max_by(F.struct(*runs.columns), F.struct("started", "run_id"))
    return runs.groupBy("backend").agg(newest.alias("newest")).select("newest.*")


def attempts(lines: DataFrame) -> DataFrame:
    """One row per check of a file: the last attempt there.

    `flaky` is whether its attempts there disagreed, and `last` whether it is the last of all workers of that run.
    """
    told = [name for name in CHECK if name not in LEFT_IN_FILES]
    checks = lines.filter(F.col("kind") == "check").select("file", *told)
    # Almost every check was asked once, and only the others need to be put in order.
    number = F.xxhash64(*ASKED).alias("number")
    shared = F.broadcast(checks.select(number).groupBy("number").count().filter("count > 1").select("number"))
    once, again = (checks.select("*", number).join(shared, "number", how) for how in ("left_anti", "left_semi"))
    in_file, in_run = Window.partitionBy(*ASKED, "worker"), Window.partitionBy(*ASKED)
    disagree = F.min("verdict").over(in_file) != F.max("verdict").over(in_file)
    again = again.withColumns({"flaky": disagree, "last": _is_last(in_file)}).filter("last")
    return (
        once.withColumns({"flaky": F.lit(False), "last": F.lit(True)})
        .unionByName(again.withColumn("last", _is_last(in_run)))
        .drop("number")
    )


def _is_last(each: WindowSpec) -> Column:
    """Picked by rank and not by `max_by`, which would copy every row once per step of an aggregate."""
    return F.row_number().over(each.orderBy(F.desc("attempt"), F.desc("started"), F.desc("file"))) == 1


def last_attempts(attempts: DataFrame) -> DataFrame:
    """One row per (run_id, backend, check): the last attempt, whichever worker made it."""
    return attempts.filter("last").drop("file", "flaky", "last")


def scenarios(attempts: DataFrame) -> DataFrame:
    """One row per scenario seen in any run: the denominator. Its words are those of its newest revision."""
    words = ("family", "level", "title", "impact")
    variants = attempts.groupBy("scenario", *words, "revision").agg(F.max("started").alias("last"))
    newest = F.max_by(F.struct(*words), F.struct("revision", "last"))
    return variants.groupBy("scenario").agg(newest.alias("newest")).select("scenario", "newest.*")


def cells(attempts: DataFrame, columns: DataFrame) -> DataFrame:
    """One row per (scenario, backend) that has checks: the worst verdict, and how many checks got which.

    `fingerprint` is the same where all checks were answered alike. An answer that is exactly Kafka's counts as that:
    times of appending differ between any two runs.
    """
    exact = (F.col("verdict") == "conforms") & (F.col("grade") == "exact")
    answer = F.when(exact, "exact").otherwise(F.concat_ws(" ", "verdict", "grade", "observed"))
    shown = attempts.join(F.broadcast(columns.select("run_id", "backend")), ["run_id", "backend"])
    worst = F.min(F.array_position(F.array(*map(F.lit, VERDICTS)), F.col("verdict")))
    return (
        shown.groupBy("scenario", "backend")
        .agg(
            worst.alias("worst"),
            counts("verdict", VERDICTS),
            F.hex(F.bit_xor(F.xxhash64("check", answer))).alias("fingerprint"),
        )
        .withColumn("outcome", F.element_at(F.array(*map(F.lit, VERDICTS)), F.col("worst").cast("int")))
        .drop("worst")
    )


def grid(scenarios: DataFrame, columns: DataFrame, cells: DataFrame) -> DataFrame:
    """Every scenario times every column, so that nothing vanishes: a hole says `missing` or `not run`.

    Columns: scenario, family, level, title, impact, backend, outcome, counts (null in a hole), disputed. A row is
    disputed when Apache Kafka itself deviates in it: then the scenario is in doubt, not only the others.
    """
    refused = F.size("not_run") > 0
    full = (
        scenarios.crossJoin(columns.select("backend", "oracle", "not_run"))
        .join(cells.drop("fingerprint"), ["scenario", "backend"], "left")
        .withColumn("outcome", F.coalesce("outcome", F.when(refused, NOT_RUN), F.lit(MISSING)))
    )
    oracle_deviates = F.col("oracle") & (F.col("outcome") == "deviates")
    disputed = F.bool_or(oracle_deviates).over(Window.partitionBy("scenario"))
    return full.withColumn("disputed", disputed).drop("oracle", "not_run")


def tallies(grid: DataFrame) -> DataFrame:
    """Per (family, level, backend): how many scenarios came out how, of all there are of that kind."""
    return grid.groupBy("family", "level", "backend").agg(F.count("*").alias("scenarios"), counts("outcome", OUTCOMES))


def oracles(runs: DataFrame) -> DataFrame:
    """The Apache Kafkas of each run, as (run_id, backends), the newest version first."""
    version = version_numbers(F.coalesce("backend_version", "backend"))
    in_order = F.sort_array(F.collect_list(F.struct(version.alias("version"), "backend")), asc=False)
    return runs.filter("oracle").groupBy("run_id").agg(in_order["backend"].alias("backends"))


def oracle_answers(attempts: DataFrame, runs: DataFrame) -> DataFrame:
    """What Apache Kafka answered in each run, as (run_id, check, oracle_backend, oracle_observed).

    Of several Apache Kafkas in that run the newest version that gave an answer speaks; none may have.
    """
    oracles = runs.filter("oracle").select("run_id", "backend", "backend_version")
    return (
        attempts.filter(F.col("observed").isNotNull())
        .join(oracles, ["run_id", "backend"])
        .groupBy("run_id", "check")
        .agg(
            F.max_by(
                F.struct(F.col("backend").alias("oracle_backend"), F.col("observed").alias("oracle_observed")),
                F.struct(version_numbers(F.coalesce("backend_version", "backend")), "backend"),
            ).alias("answer")
        )
        .select("run_id", "check", "answer.*")
    )


def deviations(attempts: DataFrame, runs: DataFrame, columns: DataFrame) -> DataFrame:
    """Every check that deviates in the column shown, beside what Apache Kafka answered in the same run."""
    deviating = attempts.filter(F.col("verdict") == "deviates").join(
        F.broadcast(columns.select("run_id", "backend", "oracle")), ["run_id", "backend"]
    )
    asked = F.broadcast(deviating.select("run_id", "check").distinct())
    answers = oracle_answers(attempts.join(asked, ["run_id", "check"], "left_semi"), runs)
    return deviating.join(F.broadcast(answers), ["run_id", "check"], "left").select(
        "run_id",
        "backend",
        "oracle",
        "scenario",
        "check",
        "level",
        "asked",
        "accepted",
        "observed",
        "reason",
        "impact",
        F.array_compact("sources").alias("sources"),
        "oracle_backend",
        "oracle_observed",
    )


def counts(column: str, values: tuple[str, ...]) -> Column:
    """How many rows hold each of the values, as a struct with one field per value."""
    return F.struct(*(F.count_if(F.col(column) == value).alias(value) for value in values)).alias("counts")


def version_numbers(text: Column) -> Column:
    """The numbers in a version, as an array that sorts as versions do: 4.10 after 4.9."""
    return F.transform(F.regexp_extract_all(text, F.lit(r"(\d+)")), lambda number: number.try_cast("long"))
