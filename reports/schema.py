"""The result line as Spark sees it: the fields of `conformance/result.schema.json`, declared again.

For: the columns, and what each field may hold. A test holds this module to the published schema, so that
neither can change alone. Left to others: applying it (`reports.ingest`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from reports.model import LEVELS, VERDICTS


@dataclass(frozen=True)
class Field:
    """What a field may hold: the variant types Spark finds in the JSON, and the column that keeps it.

    `types` are the leading words of `schema_of_variant`; an empty array shows as an array of VOID.
    """

    types: tuple[str, ...]
    column: DataType

    def or_null(self) -> "Field":
        return Field((*self.types, "VOID"), self.column)


TEXT: Final = Field(("STRING",), StringType())
INTEGER: Final = Field(("BIGINT",), LongType())
NUMBER: Final = Field(("BIGINT", "DECIMAL", "DOUBLE"), DoubleType())
BOOLEAN: Final = Field(("BOOLEAN",), BooleanType())
# UTC in ISO 8601.
MOMENT: Final = Field(("STRING",), TimestampType())
TEXTS: Final = Field(("ARRAY<STRING", "ARRAY<VOID"), ArrayType(StringType()))
# The keys of an object are the scenario's own, so objects stay JSON text in Spark.
OBJECT: Final = Field(("OBJECT",), StringType())
OBJECTS: Final = Field(("ARRAY<OBJECT", "ARRAY<VOID"), StringType())

# Each kind's fields in the order in which the suite writes them.
HEADER: Final[Mapping[str, Field]] = {
    "kind": TEXT,
    "schema_version": INTEGER,
    "started": MOMENT,
    "suite_revision": TEXT,
    "host": OBJECT,
    "backend_version": TEXT.or_null(),
    "build": TEXT,
    "oracle": BOOLEAN,
    "clients": OBJECT,
    "seed": INTEGER,
    "run_id": TEXT,
    "worker": TEXT,
    "backend": TEXT,
}

CHECK: Final[Mapping[str, Field]] = {
    "kind": TEXT,
    "scenario": TEXT,
    "check": TEXT,
    "revision": INTEGER,
    "family": TEXT,
    "level": TEXT,
    "title": TEXT,
    "verdict": TEXT,
    "grade": TEXT.or_null(),
    "reason": TEXT,
    "asked": TEXT,
    "accepted": OBJECTS,
    "observed": OBJECT.or_null(),
    "sources": TEXTS,
    "impact": TEXT,
    "test": TEXT,
    "started": MOMENT,
    "duration_ms": NUMBER,
    "attempt": INTEGER,
    "evidence": OBJECTS,
    "run_id": TEXT,
    "worker": TEXT,
    "backend": TEXT,
}

NOT_RUN: Final[Mapping[str, Field]] = {
    "kind": TEXT,
    "reason": TEXT,
    "run_id": TEXT,
    "worker": TEXT,
    "backend": TEXT,
}

FOOTER: Final[Mapping[str, Field]] = {
    "kind": TEXT,
    "ended": MOMENT,
    "checks": INTEGER,
    "counts": OBJECT,
    "run_id": TEXT,
    "worker": TEXT,
    "backend": TEXT,
}

KINDS: Final[Mapping[str, Mapping[str, Field]]] = {
    "header": HEADER,
    "check": CHECK,
    "not-run": NOT_RUN,
    "footer": FOOTER,
}

# Fields that hold one of a few values; a null is the field's own matter.
VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "schema_version": ("1",),
    "verdict": VERDICTS,
    "level": LEVELS,
    "grade": ("exact", "legal"),
}

# What Spark leaves in the files: half of every line, which nothing is grouped or counted by. `reports.details` reads it
# for the checks that a page shows.
LEFT_IN_FILES: Final = ("test", "duration_ms", "evidence")

# The kinds agree on every field they share, so one struct holds any line.
LINE: Final = StructType(
    [
        StructField(name, field.column)
        for name, field in {name: field for kind in KINDS.values() for name, field in kind.items()}.items()
        if name not in LEFT_IN_FILES
    ]
)
