"""Result files to typed lines, with every line accounted for.

For: reading NDJSON as text and telling, line by line, what is good and what is malformed and why. A line is
malformed when it is blank, not JSON from end to end (a torn last line, two lines glued together), of an
unknown kind, lacks a field, or holds a value of the wrong type or outside the published values. Unknown
fields are ignored: they are a newer writer's.

Left to others: what the lines mean (`reports.matrix`).
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.schema import KINDS, LINE, MOMENTS, VALUES, Field

# Closes the array a line is wrapped in before it is parsed. Spark's JSON parser stops at the end of the first
# value and ignores the rest; if the mark is not the second element, the line was more or less than one value.
END_MARK = "end of line"

MALFORMED = "malformed"


def read(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Every line of the files as (file, raw). `paths` are files, taken literally: no wildcards."""
    # Without the option a run id or a backend's name with a bracket in it would be taken for a wildcard.
    lines = spark.read.option("__globPaths__", "false").text(list(paths), lineSep="\n")
    return lines.select(F.col("_metadata.file_path").alias("file"), F.col("value").alias("raw"))


def parse(lines: DataFrame) -> DataFrame:
    """(file, raw) to (file, raw, problem, and the fields of a result line): one row per line, always.

    `problem` is null for a good line and one sentence for a malformed one, whose fields mean nothing.
    """
    wrapped = F.concat(F.lit("["), "raw", F.lit(f',"{END_MARK}"]'))
    values = F.try_parse_json(wrapped).try_cast("array<variant>")
    whole = F.get(values, 1).try_cast("string") == END_MARK
    types = F.transform_values(
        F.get(values, 0).try_cast("map<string,variant>"),
        # the leading words: STRING, BIGINT, OBJECT, ARRAY<STRING
        lambda _, value: F.regexp_extract(F.schema_of_variant(value), "^(ARRAY<)?[A-Z]+", 0),
    )
    return (
        lines.select("file", "raw", F.when(whole, types).alias("types"), F.from_json("raw", LINE).alias("line"))
        .withColumn("wrong", _wrong_fields())
        .withColumn("problem", _problem())
        .select("file", "raw", "problem", "line.*")
    )


def good(parsed: DataFrame) -> DataFrame:
    return parsed.filter(F.col("problem").isNull())


def malformed(parsed: DataFrame) -> DataFrame:
    """The lines set aside, as (file, raw, problem)."""
    return parsed.filter(F.col("problem").isNotNull()).select("file", "raw", "problem")


def accounts(parsed: DataFrame) -> DataFrame:
    """How many lines of each kind each file has, as (file, kind, lines); malformed is a kind of its own."""
    kind = F.when(F.col("problem").isNull(), F.col("kind")).otherwise(MALFORMED)
    return parsed.groupBy("file", kind.alias("kind")).agg(F.count("*").alias("lines"))


def _problem() -> Column:
    kind = F.col("line.kind")
    return F.coalesce(
        F.when(F.col("raw").rlike(r"^\s*$"), F.lit("the line is blank")),
        F.when(F.col("types").isNull(), F.lit("the line is not one JSON object")),
        F.when(kind.isNull() | ~kind.isin(*KINDS), F.lit(f"kind is none of {', '.join(KINDS)}")),
        F.when(F.size("wrong") > 0, F.concat_ws(", ", F.transform("wrong", _told))),
        *(_wrong_value(name, values) for name, values in VALUES.items()),
        *(_wrong_moment(name) for name in MOMENTS),
    )


def _wrong_fields() -> Column:
    """The fields of the line's kind that the line lacks, or holds with another type."""
    kind = F.col("line.kind")
    expected = F.coalesce(*(F.when(kind == name, _expected(fields)) for name, fields in KINDS.items()))
    found = F.col("types")
    return F.filter(
        expected,
        lambda field: ~F.coalesce(F.array_contains(field["types"], found[field["name"]]), F.lit(False)),
    )


def _expected(fields: Mapping[str, Field]) -> Column:
    return F.array(
        *(
            F.struct(F.lit(name).alias("name"), F.array(*map(F.lit, field.types)).alias("types"))
            for name, field in fields.items()
        )
    )


def _told(field: Column) -> Column:
    found = F.col("types")[field["name"]]
    return F.concat(field["name"], F.coalesce(F.concat(F.lit(" cannot be "), found), F.lit(" is missing")))


def _wrong_value(name: str, values: Sequence[str]) -> Column:
    value = F.col("line")[name]
    return F.when(~value.cast("string").isin(*values), F.lit(f"{name} is none of {', '.join(values)}"))


def _wrong_moment(name: str) -> Column:
    moment = F.col("line")[name]
    return F.when(moment.isNotNull() & F.try_to_timestamp(moment).isNull(), F.lit(f"{name} is not a moment"))
