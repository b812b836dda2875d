"""A run that is killed in the middle: nothing that it learnt is lost, and nothing that it started stays."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import psutil
import pytest
from whole_runs import SOON, ended, offsets, suites

from conformance.waiting import eventually


def lives(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a run that got `kill -9` after its hundredth line, and the next run after it."""
    results = tmp_path_factory.mktemp("killed")
    run = suites(results, "--backend=apache-kafka@4.3.1")
    eventually(
        lambda: sum(path.read_bytes().count(b"\n") for path in results.glob("*.ndjson")),
        lambda lines: lines > 100,
        reason="the run to be under way",
        seconds=SOON,
    )
    brokers = [child for child in psutil.Process(run.pid).children() if "kafka.Kafka" in child.cmdline()]
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=SOON)
    assert all(map(lives, brokers)), "a broker outlives the kill, or this tests nothing"
    code, said = ended(suites(results / "next", "--backend=librdkafka-mock", "--scenario=latest.empty-partition"))
    assert code == 0, said
    assert not any(map(lives, brokers))
    return results


def test_the_report_shows_every_complete_line_and_says_that_the_run_was_cut_off(killed: Path, tmp_path: Path) -> None:
    (file,) = killed.glob("*.ndjson")
    complete = [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]
    asked = {line["check"] for line in complete if line["kind"] == "check"}
    ran = offsets("report", str(killed), "--out", str(tmp_path))
    assert ran.code == 0, ran.err
    assert "cut off: the run was stopped" in ran.out
    matrix = json.loads((tmp_path / "report" / "matrix.json").read_text())
    assert [column["status"] for column in matrix["columns"]] == ["cut off"]
    assert sum(sum(row["cells"][0]["counts"].values()) for row in matrix["rows"]) == len(asked)


def test_a_line_that_was_cut_in_the_middle_is_counted_and_kept_aside(killed: Path, tmp_path: Path) -> None:
    (file,) = killed.glob("*.ndjson")
    torn = tmp_path / "torn.ndjson"
    torn.write_bytes(file.read_bytes().rpartition(b"}")[0][:-20])
    ran = offsets("report", str(torn), "--out", str(tmp_path))
    assert ran.code == 0, ran.err
    assert "1 of " in ran.out
    (aside,) = (tmp_path / "report" / "malformed.ndjson").read_text().splitlines()
    assert json.loads(aside)["problem"] == "the line is not one JSON object"
