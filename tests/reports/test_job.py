"""From result files to a report on disk."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from result_lines import check, footer, header, not_run, text, write

from reports import job
from reports.model import Cell


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Apache Kafka, a broker run by two workers of which one was killed, and one that would not start."""
    directory = tmp_path / "results"
    directory.mkdir()
    kafka = "kafka@4.3.1"
    write(
        directory / "kafka.ndjson",
        header(kafka, oracle=True, backend_version="4.3.1"),
        check(kafka, "latest.a"),
        check(kafka, "earliest.b"),
        footer(kafka),
    )
    write(
        directory / "broker-gw0.ndjson",
        header(),
        check(scenario="latest.a", verdict="deviates", observed={"offset": 0}, reason="latest did not move"),
        check(scenario="latest.a", question="again"),
        footer(),
    )
    torn = text([header(worker="gw1"), check(scenario="earliest.b", worker="gw1", verdict="unsupported")])
    (directory / "broker-gw1.ndjson").write_text(torn + '{"kind": "check", "run')
    write(directory / "absent.ndjson", not_run("absent", "no such image"))
    (directory / "notes.txt").write_text("not a result file")
    return directory


@pytest.mark.usefixtures("spark")
def test_a_report_is_built_from_a_directory(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    matrix = job.build([str(results)], str(out)).matrix

    assert [(column.backend, column.status) for column in matrix.columns] == [
        ("kafka@4.3.1", "complete"),  # oracles first
        ("absent", "not run"),
        ("broker", "cut off"),
    ]
    assert matrix.columns[0].started == "2026-11-18T08:00:00Z"
    assert [(row.family, row.scenario) for row in matrix.rows] == [
        ("earliest", "earliest.b"),
        ("latest", "latest.a"),
    ]
    assert matrix.rows[1].cells == (
        Cell("conforms", {"conforms": 1}),
        Cell("not run", {}),
        Cell("deviates", {"conforms": 1, "deviates": 1}),
    )
    assert [(one.check, one.backend, one.oracle_observed) for one in matrix.deviations] == [
        ("latest.a:latest", "broker", '{"error":0,"offset":1}')
    ]
    assert (matrix.lines, matrix.malformed) == (12, 1)

    report = out / "report"
    assert sorted(file.name for file in report.iterdir()) == sorted([*job.FILES, "malformed.ndjson"])
    assert "latest did not move" in (report / "matrix.md").read_text()
    saved = json.loads((report / "matrix.json").read_text())
    assert saved["rows"][1]["cells"][2] == {"outcome": "deviates", "counts": {"conforms": 1, "deviates": 1}}
    kept = [json.loads(line) for line in (report / "malformed.ndjson").read_text().splitlines()]
    assert kept == [
        {
            "file": str(results / "broker-gw1.ndjson"),
            "problem": "the line is not one JSON object",
            "line": '{"kind": "check", "run',
        }
    ]


@pytest.mark.usefixtures("spark")
def test_a_cell_of_the_page_opens_to_what_counts_and_to_kafkas_answer_in_its_run(tmp_path: Path) -> None:
    wrong = check(verdict="deviates", observed={"offset": 0}, reason="what counts", attempt=2)
    results = [
        write(
            tmp_path / "old.ndjson", header("kafka@3.9.2", oracle=True, backend_version="3.9.2"), check("kafka@3.9.2")
        ),
        write(
            tmp_path / "new.ndjson",
            header("kafka@3.10.0", oracle=True, backend_version="3.10.0"),
            check("kafka@3.10.0", observed={"offset": 9}),
        ),
        write(
            tmp_path / "broker.ndjson",
            header(),
            wrong,
            wrong | {"attempt": 3, "reason": "counts for nothing", "level": "PERHAPS"},
        ),
    ]
    job.build(results, str(tmp_path))
    page = (tmp_path / "report" / "index.html").read_text()
    data = json.loads(page.partition(' id="data">')[2].partition("</script>")[0])
    place = [column["backend"] for column in data["columns"]].index("broker")
    ((told,),) = (row[str(place)] for row in data["checks"].values())
    assert data["texts"][told[4]] == "what counts"
    assert data["texts"][told[11]] == "kafka@3.10.0"
    assert data["observed"][told[12]] == [["offset", "9"]]
    assert "counts for nothing" not in data["texts"]


@pytest.mark.usefixtures("spark")
def test_a_file_named_twice_counts_once_and_old_malformed_lines_are_cleared(tmp_path: Path) -> None:
    file = write(tmp_path / "run.ndjson", header(), check(), footer())
    report = tmp_path / "report"
    report.mkdir()
    (report / "malformed.ndjson").write_text("of an earlier report")
    matrix = job.build([file, str(tmp_path)], str(tmp_path)).matrix
    assert (matrix.lines, matrix.malformed) == (3, 0)
    assert not (report / "malformed.ndjson").exists()


@pytest.mark.usefixtures("spark")
def test_files_without_one_good_line_still_make_a_report_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "run.ndjson").write_text("Killed\n")
    matrix = job.build([str(tmp_path)], str(tmp_path)).matrix
    assert (matrix.columns, matrix.rows, matrix.lines, matrix.malformed) == ((), (), 1, 1)
    assert "1 of 1 line could not be read" in (tmp_path / "report" / "matrix.md").read_text()


@pytest.mark.usefixtures("spark")
def test_lines_that_spark_would_skip_are_missed_and_stop_the_report(tmp_path: Path) -> None:
    seen = write(tmp_path / "run.ndjson", header(), check(), footer())
    hidden = write(tmp_path / "_run.ndjson", header(), check(), footer())
    with pytest.raises(job.LinesUnaccounted, match=r"_run\.ndjson has 3 lines, but .* add up to 0"):
        job.build([seen, hidden], str(tmp_path))
    assert not (tmp_path / "report").exists()


def test_a_directory_without_results_says_what_to_do_next(tmp_path: Path) -> None:
    with pytest.raises(job.NothingToReport, match="run the suites first"):
        job.build([str(tmp_path)], str(tmp_path))


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(job.NothingToReport, match="nowhere does not exist"):
        job.build([str(tmp_path / "nowhere")], str(tmp_path))


def test_the_session_listens_on_loopback_only_and_counts_time_in_utc(spark: SparkSession) -> None:
    settings = {name: spark.conf.get(name) for name in ("spark.driver.host", "spark.driver.bindAddress")}
    assert settings == {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    assert spark.sparkContext.uiWebUrl is None
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
