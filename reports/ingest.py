"""Result files to typed lines, with every line accounted for.

For: reading NDJSON as text and telling, line by line, what is good and what is malformed and why. A line is
malformed when it is blank, not JSON from end to end (a torn last line, two lines glued together), of an
unknown kind, lacks a field, or holds a value of the wrong type or outside the published values. Unknown
fields are ignored: they are a newer writer's.

Left to others: what the lines mean (`reports.matrix`).
"""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.schema import KINDS, LINE, MOMENTS, VALUES, Field

# Closes the object that a line is wrapped in before it is parsed. Spark's JSON parser stops at the end of the first
# value and ignores the rest; if the object is not the line and the mark, the line was more or less than one value.
END_MARK = "end"
SHAPE = f"^OBJECT<{END_MARK}: BIGINT, line: OBJECT<%s>>$"

MALFORMED = "malformed"

# What stands between < and > in a shape, up to four levels deep; no level is looked at twice. A name with a bracket in
# it stands in backticks, and such a line is not a usual one.
BALANCED = reduce(lambda inner, _: f"(?:[^<>`]++|<{inner}>)*+", range(3), "[^<>`]*+")


def read(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Every line of the files as (file, raw). `paths` are files, taken literally: no wildcards."""
    # Without the option a run id or a backend's name with a bracket in it would be taken for a wildcard.
    lines = spark.read.option("__globPaths__", "false").text(list(paths), lineSep="\n")
    return lines.select(F.col("_metadata.file_path").alias("file"), F.col("value").alias("raw"))


def parse(lines: DataFrame) -> DataFrame:
    """(file, raw) to (file, raw, problem, and the fields of a result line): one row per line, always.

    `problem` is null for a good line and one sentence for a malformed one, whose fields mean nothing.
    """
    return (
        lines.select(
            "file", "raw", F.schema_of_variant(_wrapped()).alias("shape"), F.from_json("raw", LINE).alias("line")
        )
        .withColumn("problem", F.when(F.coalesce(_usual(), F.lit(False)), _wrong_content()).otherwise(_problem()))
        .select("file", "raw", "problem", "line.*")
    )


def _wrapped() -> Column:
    """The line as a value, with the mark behind it; null where the two together are not JSON."""
    return F.try_parse_json(F.concat(F.lit('{"line":'), "raw", F.lit(f',"{END_MARK}":0}}')))


def good(parsed: DataFrame) -> DataFrame:
    return parsed.filter(F.col("problem").isNull())


def malformed(parsed: DataFrame) -> DataFrame:
    """The lines set aside, as (file, raw, problem)."""
    return parsed.filter(F.col("problem").isNotNull()).select("file", "raw", "problem")


def accounts(parsed: DataFrame) -> DataFrame:
    """How many lines of each kind each file has, as (file, kind, lines); malformed is a kind of its own."""
    kind = F.when(F.col("problem").isNull(), F.col("kind")).otherwise(MALFORMED)
    return parsed.groupBy("file", kind.alias("kind")).agg(F.count("*").alias("lines"))


def _usual() -> Column:
    """Whether the line has exactly the fields of its kind, each of a right type: one look instead of one per field.

    Almost every line is like that. One that is not may still be good, with a newer writer's fields, and is looked
    at field by field.
    """
    kind = F.col("line.kind")
    matches = ((kind == name) & F.col("shape").rlike(_pattern(fields)) for name, fields in KINDS.items())
    return reduce(lambda one, other: one | other, matches)


def _pattern(fields: Mapping[str, Field]) -> str:
    """What `schema_of_variant` says of such a line: name: TYPE, by name."""
    told = (f"{name}: (?:{'|'.join(map(_type_pattern, field.types))})" for name, field in sorted(fields.items()))
    return SHAPE % ", ".join(told)


def _type_pattern(type: str) -> str:
    inner = {"OBJECT": f"<{BALANCED}>", "DECIMAL": r"\(\d+,\d+\)"}.get(type.removeprefix("ARRAY<"), "")
    return f"{type}{inner}{'>' if type.startswith('ARRAY<') else ''}"


def _problem() -> Column:
    """What is wrong with a line, told field by field."""
    kind = F.col("line.kind")
    return F.coalesce(
        F.when(F.col("raw").rlike(r"^\s*$"), F.lit("the line is blank")),
        F.when(~F.coalesce(F.col("shape").rlike(SHAPE % ".*"), F.lit(False)), F.lit("the line is not one JSON object")),
        F.when(kind.isNull() | ~kind.isin(*KINDS), F.lit(f"kind is none of {', '.join(KINDS)}")),
        F.nullif(F.concat_ws(", ", F.transform(_wrong_fields(), _told)), F.lit("")),
        _wrong_content(),
    )


def _wrong_fields() -> Column:
    """The fields of the line's kind that the line lacks, or holds with another type, each with the type it has."""
    kind = F.col("line.kind")
    expected = F.coalesce(*(F.when(kind == name, _expected(fields)) for name, fields in KINDS.items()))
    types = _types()
    found = F.transform(
        expected, lambda field: F.struct(field["name"], field["types"], types[field["name"]].alias("found"))
    )
    return F.filter(found, lambda field: ~F.coalesce(F.array_contains(field["types"], field["found"]), F.lit(False)))


def _types() -> Column:
    return F.transform_values(
        F.try_variant_get(_wrapped(), "$.line", "map<string,variant>"),
        # the leading words: STRING, BIGINT, OBJECT, ARRAY<STRING
        lambda _, value: F.regexp_extract(F.schema_of_variant(value), "^(ARRAY<)?[A-Z]+", 0),
    )


def _expected(fields: Mapping[str, Field]) -> Column:
    return F.array(
        *(
            F.struct(F.lit(name).alias("name"), F.array(*map(F.lit, field.types)).alias("types"))
            for name, field in fields.items()
        )
    )


def _told(field: Column) -> Column:
    return F.concat(field["name"], F.coalesce(F.concat(F.lit(" cannot be "), field["found"]), F.lit(" is missing")))


def _wrong_content() -> Column:
    """A value of the right type that is none of the published ones."""
    return F.coalesce(
        *(_wrong_value(name, values) for name, values in VALUES.items()), *(_wrong_moment(name) for name in MOMENTS)
    )


def _wrong_value(name: str, values: Sequence[str]) -> Column:
    value = F.col("line")[name]
    return F.when(~value.cast("string").isin(*values), F.lit(f"{name} is none of {', '.join(values)}"))


def _wrong_moment(name: str) -> Column:
    moment = F.col("line")[name]
    return F.when(moment.isNotNull() & F.try_to_timestamp(moment).isNull(), F.lit(f"{name} is not a moment"))
