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

from reports.schema import KINDS, LINE, MOMENT, VALUES, Field

# Closes the object that a line is wrapped in before it is parsed. Spark's JSON parser stops at the end of the first
# value and ignores the rest; if the object is not the line and the mark, the line was more or less than one value.
END_MARK = "end"
SHAPE = f"^OBJECT<{END_MARK}: BIGINT, line: OBJECT<.*>>$"

MALFORMED = "malformed"

# JSON by expressions, in the form in which Python writes it: one blank after a comma or a colon. No character is looked
# at twice. What may stand in a text is left to the parser, which reads it too.
_TEXT = r'"(?:[^"\\]++|\\.)*+"'
_INTEGER = r"-?(?:0|[1-9]\d{0,17}+)(?![\d.eE])"
_NUMBER = r"-?(?:0|[1-9]\d{0,17}+)(?:\.\d{1,20}+)?+(?:[eE][+-]?\d{1,3}+)?+(?![\d.eE])"


def _listed(item: str) -> str:
    return f"(?:{item}(?:, (?=[^]}}])|(?=[]}}])))*+"


# Answers hold values and ranges of them, and evidence holds values: what is nested deeper is not a usual line.
_SCALAR = f"(?:{_TEXT}|{_NUMBER}|true|false|null)"
_ARRAY = rf"\[{_listed(_SCALAR)}\]"
_FLAT = rf"\{{{_listed(f'{_TEXT}: (?:{_SCALAR}|{_ARRAY})')}\}}"
_OBJECT = rf"\{{{_listed(f'{_TEXT}: (?:{_SCALAR}|{_ARRAY}|{_FLAT})')}\}}"

# How a value of each type is written, by the first word that `reports.schema` has for it.
WRITTEN = {
    "STRING": _TEXT,
    "BIGINT": _INTEGER,
    "DECIMAL": _NUMBER,
    "DOUBLE": _NUMBER,
    "BOOLEAN": "(?:true|false)",
    "VOID": "null",
    "OBJECT": _OBJECT,
    "ARRAY<STRING": rf"\[{_listed(_TEXT)}\]",
    "ARRAY<OBJECT": rf"\[{_listed(_OBJECT)}\]",
    "ARRAY<VOID": r"\[\]",
}


def read(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Every line of the files as (file, raw). `paths` are files, taken literally: no wildcards."""
    # Without the option a run id or a backend's name with a bracket in it would be taken for a wildcard.
    lines = spark.read.option("__globPaths__", "false").text(list(paths), lineSep="\n")
    return lines.select(F.col("_metadata.file_path").alias("file"), F.col("value").alias("raw"))


def parse(lines: DataFrame) -> DataFrame:
    """(file, raw) to (file, raw, problem, and the fields of a result line): one row per line, always.

    `problem` is null for a good line and one sentence for a malformed one, whose fields mean nothing. Only a line that
    is not a usual one keeps its text in `raw`.

    Computed here and now, and its plan forgotten: planning what follows on top of it would cost more than running it.
    Almost all lines are usual ones, and looking at the others field by field is planned only where there are any.
    """
    told = lines.select("file", "raw", F.from_json("raw", LINE).alias("line"))
    quick = told.select("file", F.when(~_usual(), F.col("raw")).alias("raw"), "line.*").localCheckpoint()
    others = quick.filter(F.col("raw").isNotNull())
    if others.isEmpty():
        return quick.withColumn("problem", F.lit(None).cast("string"))
    usual = quick.filter(F.col("raw").isNull()).withColumn("problem", F.lit(None).cast("string"))
    return usual.unionByName(_looked_at(others.select("file", "raw"))).localCheckpoint()


def _looked_at(lines: DataFrame) -> DataFrame:
    """Lines of any form, each with what is wrong with it."""
    told = lines.select("file", "raw", F.from_json("raw", LINE).alias("line"))
    return told.select("file", "raw", _problem().alias("problem"), "line.*")


def _wrapped() -> Column:
    """The line as a value, with the mark behind it; null where the two together are not JSON."""
    return F.try_parse_json(F.concat(F.lit('{"line":'), "raw", F.lit(f',"{END_MARK}":0}}')))


def _shape() -> Column:
    return F.schema_of_variant(_wrapped())


def good(parsed: DataFrame) -> DataFrame:
    return parsed.filter(F.col("problem").isNull())


def malformed(parsed: DataFrame) -> DataFrame:
    """The lines set aside, as (file, raw, problem)."""
    return parsed.filter(F.col("problem").isNotNull()).select("file", "raw", "problem")


def accounts(parsed: DataFrame) -> DataFrame:
    """How many lines of each kind each file has, as (file, kind, lines); malformed is a kind of its own."""
    kind = F.when(F.col("problem").isNull(), F.col("kind")).otherwise(MALFORMED)
    return parsed.groupBy("file", kind.alias("kind")).agg(F.count("*").alias("lines"))


def _usual_line(kind: str, fields: Mapping[str, Field]) -> str:
    """A line that has exactly the fields of its kind, each with a value that it may hold, as the suite writes them."""
    values = {name: "|".join(WRITTEN[type] for type in field.types) for name, field in fields.items()}
    for name, allowed in {**VALUES, "kind": (kind,)}.items():
        if name in fields:
            text = "STRING" in fields[name].types
            or_null = ("null",) if "VOID" in fields[name].types else ()
            values[name] = "|".join((*(f'"{each}"' if text else each for each in allowed), *or_null))
    told = (f'"{name}": (?:{value})' for name, value in values.items())
    return rf"\{{{', '.join(told)}\}}"


# Almost every line is like that, and one expression tells it without parsing the line once more. One that is not may
# still be good, with other blanks or a newer writer's fields, and is looked at field by field.
USUAL = f"^(?:{'|'.join(_usual_line(kind, fields) for kind, fields in KINDS.items())})$"


def _usual() -> Column:
    """Whether a line is a usual one, and was read to its last field: the parser has limits of its own."""
    line = F.col("line")
    moments = line["started"].isNotNull() | line["ended"].isNotNull() | (line["kind"] == "not-run")
    return F.coalesce(F.col("raw").rlike(USUAL) & line["backend"].isNotNull() & moments, F.lit(False))


def _problem() -> Column:
    """What is wrong with a line, told field by field."""
    kind = F.col("line.kind")
    return F.coalesce(
        F.when(F.col("raw").rlike(r"^\s*$"), F.lit("the line is blank")),
        F.when(~F.coalesce(_shape().rlike(SHAPE), F.lit(False)), F.lit("the line is not one JSON object")),
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
        *(_wrong_value(name, values) for name, values in VALUES.items()), *map(_wrong_moment, ("started", "ended"))
    )


def _wrong_value(name: str, values: Sequence[str]) -> Column:
    value = F.col("line")[name]
    return F.when(~value.cast("string").isin(*values), F.lit(f"{name} is none of {', '.join(values)}"))


def _wrong_moment(name: str) -> Column:
    told = F.col("line.kind").isin(*(kind for kind, fields in KINDS.items() if fields.get(name) is MOMENT))
    return F.when(told & F.col("line")[name].isNull(), F.lit(f"{name} is not a moment"))
