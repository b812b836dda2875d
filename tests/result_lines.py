"""Result lines for tests: complete and valid, with only what matters to the test spelled out."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from reports.schema import LINE

Line = dict[str, Any]

RUN = "run-1"
START = "2026-11-18T08:00:00Z"


def header(backend: str = "broker", **changes: Any) -> Line:
    line = {
        "kind": "header",
        "schema_version": 1,
        "run_id": RUN,
        "worker": "main",
        "started": START,
        "suite_revision": "unknown",
        "host": {"system": "Linux"},
        "backend": backend,
        "backend_version": None,
        "build": "a jar",
        "oracle": False,
        "clients": {"kio": "0.6.5"},
        "seed": 1,
    }
    return line | changes


def check(
    backend: str = "broker",
    scenario: str = "latest.one-record",
    question: str = "latest",
    verdict: str = "conforms",
    **changes: Any,
) -> Line:
    line = {
        "kind": "check",
        "run_id": RUN,
        "worker": "main",
        "backend": backend,
        "scenario": scenario,
        "check": f"{scenario}:{question}",
        "revision": 1,
        "family": scenario.split(".")[0],
        "level": "MUST",
        "title": "one record moves latest to one",
        "verdict": verdict,
        "grade": "exact" if verdict == "conforms" else None,
        "reason": "",
        "asked": "ListOffsets v7 timestamp=-1 (latest)",
        "accepted": [{"error": 0, "offset": 1}],
        "observed": {"error": 0, "offset": 1},
        "sources": ["KIP-79"],
        "impact": "A consumer misses a record.",
        "test": "suites/latest/test_one.py::test_one",
        "started": START,
        "duration_ms": 1.5,
        "attempt": 1,
        "evidence": [],
    }
    return line | changes


def not_run(backend: str = "broker", reason: str = "its image would not start", **changes: Any) -> Line:
    line = {"kind": "not-run", "run_id": RUN, "worker": "main", "backend": backend, "reason": reason}
    return line | changes


def footer(backend: str = "broker", **changes: Any) -> Line:
    line = {
        "kind": "footer",
        "run_id": RUN,
        "worker": "main",
        "backend": backend,
        "ended": "2026-11-18T08:10:00Z",
        "checks": 1,
        "counts": {"conforms": 1},
    }
    return line | changes


def text(lines: Sequence[Line]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def write(file: Path, *lines: Line) -> str:
    file.write_text(text(lines))
    return str(file)


def good_lines(spark: SparkSession, *files: Sequence[Line]) -> DataFrame:
    """The lines of several result files, as ingest hands them on."""
    rows = [{"file": f"file-{number}", **line} for number, lines in enumerate(files) for line in lines]
    return table(spark, rows, StructType([StructField("file", StringType()), *LINE.fields]))


def table(spark: SparkSession, rows: Sequence[Line], schema: StructType) -> DataFrame:
    """The rows as a table that Spark reads itself: `createDataFrame` would start Python workers, and wait for them."""
    return spark.range(1).select(F.inline(F.from_json(F.lit(json.dumps(rows)), ArrayType(schema))))
