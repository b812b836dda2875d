"""History: nothing is lost, nothing is doubled, and the past is not read again."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from result_lines import check, footer, header, not_run, text

from reports import history, job
from reports.archive import Archive
from reports.model import Report

Rows = list[dict[str, Any]]


def night(directory: Path, number: int, *checks: dict[str, Any], torn: str = "", **inputs: Any) -> str:
    """The result file of a run of `broker` on the given day of the month."""
    run = f"run-{number:02}"
    lines = [header(started=f"2026-11-{number:02}T02:00:00Z", **inputs), *checks, *([] if torn else [footer()])]
    directory.mkdir(exist_ok=True)
    file = directory / f"{run}.broker.ndjson"
    file.write_text(text([line | {"run_id": run} for line in lines]) + torn)
    return str(file)


def rows(spark: SparkSession, place: Path) -> Counter[tuple[str, ...]]:
    """Every check that history holds, and how often."""
    kept = Archive(spark, str(place)).every_check().select("run_id", "backend", "check", "verdict").collect()
    return Counter(tuple(row) for row in kept)


def folded(spark: SparkSession, place: Path) -> set[str]:
    archive = Archive(spark, str(place))
    return {str(row) for row in archive.sightings(archive.past()).select(*sorted(SIGHTED)).collect()}


def rebuilt(spark: SparkSession, place: Path) -> set[str]:
    table = history.sightings(Archive(spark, str(place)).every_check())
    return {str(row) for row in table.select(*sorted(SIGHTED)).collect()}


SIGHTED = (*history.SIGHTING, "runs", "flaky_runs", "first", "last")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "history"


@pytest.fixture
def tell(tmp_path: Path, place: Path, spark: SparkSession) -> Any:
    assert spark

    def tell(*files: str) -> Report:
        return job.build(files, str(tmp_path / "out"), history=str(place))

    return tell


def changes(report: Report) -> list[tuple[str, str]]:
    assert report.history is not None
    return [(change.outcome, change.check) for change in report.history.changes]


def test_a_file_taken_in_twice_counts_once(spark: SparkSession, tell: Any, tmp_path: Path, place: Path) -> None:
    file = night(tmp_path, 1, check(), check(question="again"))
    first = tell(file)
    before = sorted(path for path in place.rglob("*"))
    assert tell(file) == first
    assert sorted(path for path in place.rglob("*")) == before
    assert set(rows(spark, place).values()) == {1}


def test_two_jobs_at_once_lose_and_double_nothing(spark: SparkSession, tmp_path: Path, place: Path) -> None:
    files = [night(tmp_path, number, check(), check(question="again")) for number in (1, 2, 3)]
    shares = [files[:2], files[1:]]  # both take in the second
    with ThreadPoolExecutor(2) as both:
        jobs = [
            both.submit(job.build, share, str(tmp_path / f"out-{number}"), history=str(place))
            for number, share in enumerate(shares)
        ]
        for each in jobs:
            each.result(timeout=120)
    checks = [f"latest.one-record:{question}" for question in ("latest", "again")]
    expected = {(f"run-0{number}", "broker", id, "conforms"): 1 for number in (1, 2, 3) for id in checks}
    assert rows(spark, place) == expected
    report = job.build(files, str(tmp_path / "out"), history=str(place))
    assert report.history is not None
    assert [one.run_id for one in report.history.nights] == ["run-01", "run-02", "run-03"]
    assert folded(spark, place) == rebuilt(spark, place)


def test_a_batch_that_was_never_committed_never_happened(
    spark: SparkSession, tell: Any, tmp_path: Path, place: Path
) -> None:
    file = night(tmp_path, 1, check())
    tell(file)
    (commit,) = (place / "commits").iterdir()
    commit.unlink()
    for left in (place / "summaries").glob("*.json"):
        left.unlink()
    assert rows(spark, place) == {}
    tell(file)
    assert set(rows(spark, place).values()) == {1}


def test_a_file_cut_in_a_line_is_used_up_to_there_and_counted_and_replaced_once_it_is_whole(
    spark: SparkSession, tell: Any, tmp_path: Path, place: Path
) -> None:
    torn = tell(night(tmp_path, 1, check(), torn='{"kind": "che')).history
    assert (torn.malformed, [one.complete for one in torn.nights]) == (1, [False])
    (quarantine,) = place.glob("batches/*/malformed")
    assert [row["raw"] for row in spark.read.parquet(str(quarantine)).collect()] == ['{"kind": "che']
    assert sum(rows(spark, place).values()) == 1
    whole = tell(night(tmp_path, 1, check(), check(question="again"))).history
    assert (whole.malformed, [one.complete for one in whole.nights]) == (0, [True])
    assert set(rows(spark, place).values()) == {1}
    assert sum(rows(spark, place).values()) == 2
    assert folded(spark, place) == rebuilt(spark, place)


def test_what_broke_stays_news_until_it_is_mended(tell: Any, tmp_path: Path) -> None:
    wrong = check(verdict="deviates", reason="off by one")
    first = tell(night(tmp_path, 1, check()))
    assert (first.history.compared, changes(first)) == ({}, [])
    second = tell(night(tmp_path, 2, wrong, build="new"))
    third = tell(night(tmp_path, 3, wrong, build="new"))
    for report in (second, third):
        assert report.history.compared == {"broker": "run-01"}
        assert changes(report) == [("regression", "latest.one-record:latest")]
        assert report.history.changes[0].moved == ("broker build",)
        assert report.history.changes[0].impact == "A consumer misses a record."
    fourth = tell(night(tmp_path, 4, check(), build="new"))
    assert (fourth.history.compared, changes(fourth)) == ({"broker": "run-01"}, [])
    (seen,) = fourth.history.deviations
    assert (seen.first_run, seen.last_run, seen.deviating, seen.runs, seen.still) == ("run-02", "run-03", 2, 4, False)
    assert [(one.odd, one.runs) for one in fourth.history.flakes] == [(1, 3)]
    assert [one.good for one in fourth.history.nights] == [True, False, False, True]


def test_what_is_expected_is_no_news_and_spoils_no_night(tmp_path: Path, place: Path, spark: SparkSession) -> None:
    assert spark

    def tell(file: str) -> Report:
        return job.build(
            [file], str(tmp_path), history=str(place), expected=lambda change, _: change.after == "deviates"
        )

    tell(night(tmp_path, 1, check()))
    report = tell(night(tmp_path, 2, check(verdict="deviates")))
    assert report.history is not None
    assert changes(report) == []
    assert [one.good for one in report.history.nights] == [True, True]


def test_a_backend_that_did_not_start_is_told_and_compared_with_nothing(tell: Any, tmp_path: Path) -> None:
    tell(night(tmp_path, 1, check()))
    absent = tmp_path / "run-02.broker.ndjson"
    absent.write_text(text([not_run(run_id="run-02")]))
    report = tell(str(absent))
    assert report.history.compared == {}
    assert report.matrix.columns[0].status == "not run"


def test_a_report_and_history_may_lie_at_a_uri(spark: SparkSession, tmp_path: Path) -> None:
    assert spark
    file = night(tmp_path, 1, check())
    here = tmp_path.as_uri()
    job.build([file], f"{here}/out", history=f"{here}/history")
    saved = json.loads((tmp_path / "out" / "report" / "report.json").read_text())
    assert [one["run_id"] for one in saved["history"]["nights"]] == ["run-01"]
    assert len(list((tmp_path / "history" / "commits").iterdir())) == 1
