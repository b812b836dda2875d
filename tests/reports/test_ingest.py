"""Every line of every file is either good or malformed, and a malformed one says why."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructType
from result_lines import check, footer, header, not_run, table

from conformance.results import ResultFile, RunInfo
from reports import ingest
from reports.schema import KINDS

RAW = StructType().add("file", StringType()).add("raw", StringType())

# What a killed worker, a full disk, a foreign file or a hostile one leaves behind. The part of a problem that
# a reader needs stands beside each; None is a good line.
NASTY: dict[str, tuple[str, str | None]] = {
    "a check": (json.dumps(check()), None),
    "a header with a field of a newer writer": (json.dumps(header(colour="blue")), None),
    "a footer with spaces around it": (f"  {json.dumps(footer())} \r", None),
    "a not-run line": (json.dumps(not_run()), None),
    "nothing": ("", "blank"),
    "white space": (" \t ", "blank"),
    "a torn line": (json.dumps(check())[:-40], "not one JSON object"),
    "two lines glued together": (json.dumps(check()) + json.dumps(check()), "not one JSON object"),
    "a line glued to the start of another": (json.dumps(check()) + '{"kind": "che', "not one JSON object"),
    "an array of lines": (f"[{json.dumps(check())}]", "not one JSON object"),
    "plain text": ("Killed", "not one JSON object"),
    "a NUL": ('{"kind": "check\0"}', "not one JSON object"),
    "a field twice": ('{"kind": "check", ' + json.dumps(check())[1:], "not one JSON object"),
    "a number for a text": (json.dumps(header(run_id=5)), "run_id cannot be BIGINT"),
    "a text for a number": (json.dumps(check(duration_ms="1.5")), "duration_ms cannot be STRING"),
    "a missing field": (json.dumps({"kind": "not-run", "run_id": "r", "worker": "w"}), "backend is missing"),
    "an unknown kind": (json.dumps(check() | {"kind": "chat"}), "kind is none of"),
    "an unknown verdict": (json.dumps(check(verdict="fine")), "verdict is none of"),
    "a start that is no moment": (json.dumps(header(started="at noon")), "started is not a moment"),
}


@pytest.fixture(scope="module")
def problems(spark: SparkSession) -> dict[str, str | None]:
    """What ingest says of each nasty line, from one pass over all of them."""
    lines = table(spark, [{"file": name, "raw": raw} for name, (raw, _) in NASTY.items()], RAW)
    return {row["file"]: row["problem"] for row in ingest.parse(lines).collect()}


@pytest.mark.parametrize("name", NASTY)
def test_a_line_is_good_or_says_what_is_wrong_with_it(problems: dict[str, str | None], name: str) -> None:
    expected = NASTY[name][1]
    problem = problems[name]
    if expected is None:
        assert problem is None
    else:
        assert problem is not None
        assert expected in problem


def test_nineteen_nasty_lines_in_a_file_are_nineteen_lines_accounted_for(spark: SparkSession, tmp_path: Path) -> None:
    # A colon, brackets and a blank, as in HOST:PORT or [::1], are part of the name and no wildcard.
    file = tmp_path / "run [::1]:9092 100%.ndjson"
    file.write_text("\n".join(raw for raw, _ in NASTY.values()))  # the last line has no newline
    parsed = ingest.parse(ingest.read(spark, [str(file)]))

    accounts = {row["kind"]: row["lines"] for row in ingest.accounts(parsed).collect()}
    assert accounts == {"check": 1, "header": 1, "footer": 1, "not-run": 1, "malformed": 15}
    assert sum(accounts.values()) == len(NASTY) == 19

    kept = [row["raw"] for row in ingest.malformed(parsed).collect()]
    assert sorted(kept) == sorted(raw for raw, problem in NASTY.values() if problem)


def test_bytes_that_are_no_utf8_make_a_malformed_line_and_stop_nothing(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "run.ndjson"
    file.write_bytes(b"\xff\xfe\n" + json.dumps(check()).encode() + b"\n")
    problems = [row["problem"] for row in ingest.parse(ingest.read(spark, [str(file)])).collect()]
    assert problems == ["the line is not one JSON object", None]


def test_objects_with_free_keys_stay_json_text(spark: SparkSession) -> None:
    observed = {"offset": -1, "nested": {"list": [1, None, "x"]}}
    line = check(observed=observed, accepted=[{"offset": 1}, {"offset": 2}])
    row = ingest.parse(table(spark, [{"file": "file", "raw": json.dumps(line)}], RAW)).collect()[0]
    assert json.loads(row["observed"]) == observed
    assert json.loads(row["accepted"]) == [{"offset": 1}, {"offset": 2}]


def test_an_answer_that_never_came_is_null_and_not_the_word(spark: SparkSession) -> None:
    raw = json.dumps(check(verdict="broken", observed=None))
    row = ingest.parse(table(spark, [{"file": "file", "raw": raw}], RAW)).collect()[0]
    assert row["problem"] is None
    assert row["observed"] is None


def test_every_line_that_the_suite_writes_is_a_usual_one(tmp_path: Path) -> None:
    file = ResultFile(tmp_path, RunInfo("run-1", "main", 7), "broker")
    file.header(version=None, build="a build", oracle=False)
    file.not_run('it says "no" — and then nothing\n')
    file.footer()
    file.close()
    written = file.path.read_text().splitlines()
    written += [json.dumps(check()), json.dumps(check(evidence=[{"api": "fetch", "ms": 1.5}] * 3, observed=None))]
    assert {list(fields)[-1] for fields in KINDS.values()} == {"backend"}
    for line in written:
        told = json.loads(line)
        in_order = {name: told[name] for name in KINDS[told["kind"]]}
        assert re.match(ingest.USUAL, json.dumps(in_order)), line
    assert all(re.match(ingest.USUAL, line) for line in written[:3])


def test_a_line_that_is_all_escapes_and_brackets_is_read_like_any_other(spark: SparkSession) -> None:
    escapes, brackets = '\\"é' * 100_000, {"offsets": [[], {}] * 10_000}
    line = check(reason=escapes, observed=brackets)
    usual = {name: line[name] for name in KINDS["check"]}
    rows = [{"file": "file", "raw": json.dumps(each)} for each in (line, usual)]
    problems = [row["problem"] for row in ingest.parse(table(spark, rows, RAW)).select("problem").collect()]
    assert problems == [None, None]


def in_order(line: dict[str, Any]) -> str:
    """As the suite writes it, so that nothing but what is wrong with it can tell it from a usual line."""
    return json.dumps({name: line[name] for name in KINDS[line["kind"]]})


WRONG: dict[str, tuple[str, str]] = {
    "an unknown verdict": (in_order(check(verdict="fine")), "verdict is none of"),
    "an unknown level": (in_order(check(level="PERHAPS")), "level is none of"),
    "an unknown grade": (in_order(check(grade="nearly")), "grade is none of"),
    "another schema": (in_order(header(schema_version=2)), "schema_version is none of"),
    "a start that is no moment": (in_order(check(started="at noon")), "started is not a moment"),
    "a day that is in no calendar": (in_order(header(started="2026-02-30T00:00:00Z")), "started is not a moment"),
    "an end that is no moment": (in_order(footer(ended="at noon")), "ended is not a moment"),
    "an escape that is none": (in_order(check(reason="@")).replace("@", r"\q"), "not one JSON object"),
    "one in what stays in the file": (in_order(check(test="@")).replace("@", r"\q"), "not one JSON object"),
    "half an escape there": (in_order(check(evidence=[{"api": "@"}])).replace("@", r"\u12"), "not one JSON object"),
    "a control character": (in_order(check(reason="@")).replace("@", "\1"), "not one JSON object"),
    "one in what stays in the file too": (in_order(check(test="@")).replace("@", "\t"), "not one JSON object"),
}


def test_a_line_in_the_usual_order_is_looked_at_no_less_closely(spark: SparkSession) -> None:
    rows = [{"file": name, "raw": raw} for name, (raw, _) in WRONG.items()]
    problems = {row["file"]: row["problem"] for row in ingest.parse(table(spark, rows, RAW)).collect()}
    told = {name: problem for name, (_, problem) in WRONG.items()}
    assert {name: told[name] in (problems[name] or "") for name in told} == dict.fromkeys(told, True), problems


@pytest.mark.parametrize(
    "beyond",
    [{"duration_ms": 10**1200}, {"observed": {"offset": 10**1200}}, {"reason": "x" * 21_000_000}],
    ids=["a duration of 1200 digits", "an offset of 1200 digits", "a text of 21 million characters"],
)
def test_a_line_beyond_what_the_parser_takes_is_whole_or_malformed_and_never_empty(
    spark: SparkSession, tmp_path: Path, beyond: dict[str, Any]
) -> None:
    line = check(**beyond)
    file = tmp_path / "run.ndjson"
    file.write_text(json.dumps({name: line[name] for name in KINDS["check"]}) + "\n")
    (row,) = ingest.parse(ingest.read(spark, [str(file)])).select("problem", "kind", "check", "backend").collect()
    told = (row["kind"], row["check"], row["backend"])
    assert row["problem"] is not None or told == ("check", line["check"], line["backend"])
