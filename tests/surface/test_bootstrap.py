"""`pytest suites --bootstrap`: a broker that somebody else started, and what is there instead of one."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from whole_runs import SOON, ended, lines_in, process_that_listens_on, suites

from backends import registry
from backends.presets import prepare
from conformance.waiting import eventually


def test_a_kafka_that_something_else_started_is_asked_and_left_as_it_was(kafka: str, tmp_path: Path) -> None:
    code, said = ended(suites(tmp_path, f"--bootstrap={kafka}", "--scenario=latest.*", "--scenario=ret.*"))
    assert code == 0, said
    checks = [line for line in lines_in(tmp_path) if line["kind"] == "check"]
    assert {line["backend"] for line in checks} == {f"external({kafka})"}
    assert {line["verdict"] for line in checks} == {"conforms"}
    topics = AdminClient({"bootstrap.servers": kafka}).list_topics(timeout=10).topics
    assert [name for name in topics if name.startswith("conformance-")] == []


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense"])
def test_an_address_without_a_broker_is_not_run_and_says_why(address: str, tmp_path: Path) -> None:
    code, said = ended(suites(tmp_path, f"--bootstrap={address}", "--scenario=latest.*"))
    assert code == 1, said
    (not_run,) = [line for line in lines_in(tmp_path) if line["kind"] == "not-run"]
    assert address in not_run["reason"]
    assert "--bootstrap" in not_run["reason"]
    assert "not run" in said


def test_a_broker_that_dies_in_the_middle_leaves_the_rest_broken_and_no_hang(tmp_path: Path) -> None:
    with prepare(registry.choose("apache-kafka@4.3.1")) as broker:
        run = suites(tmp_path, f"--bootstrap={broker.bootstrap}")
        eventually(
            lambda: sum(path.read_bytes().count(b"\n") for path in tmp_path.glob("*.ndjson")),
            lambda lines: lines > 50,
            reason="the run to be under way",
            seconds=SOON,
        )
        port = int(broker.bootstrap.rpartition(":")[2])
        process_that_listens_on(port).kill()
        code, said = ended(run)
    assert code == 1, said
    lines = lines_in(tmp_path)
    verdicts = {line["verdict"] for line in lines if line["kind"] == "check"}
    assert "conforms" in verdicts
    assert "broken" in verdicts
    assert verdicts <= {"conforms", "unsupported", "not-applicable", "inconclusive", "broken"}
    # Where the connection broke under a step of a story, nothing says whether the broker is gone for good.
    undecided = [line for line in lines if line.get("verdict") == "inconclusive"]
    assert len(undecided) <= 1
    assert lines[-1]["kind"] == "footer"
