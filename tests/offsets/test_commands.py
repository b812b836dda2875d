"""The other commands: list, smoke, report, show; and their exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from whole_runs import MatrixRun, offsets

from offsets.report import conclusion
from reports.model import Cell, Column, Matrix, Row


def test_no_command_is_a_mistake_on_the_command_line() -> None:
    ran = offsets()
    assert ran.code == 5
    assert ran.err.startswith("usage: offsets")


def test_help_documents_every_exit_code() -> None:
    ran = offsets("--help")
    assert ran.code == 0
    for code in range(6):
        assert f"\n  {code}  " in ran.out


@pytest.mark.parametrize(
    "command", ["list", "smoke", "run", "nightly", "report", "check", "baseline", "diff", "show", "get", "mutants"]
)
def test_every_command_has_help(command: str) -> None:
    ran = offsets(command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert f"usage: offsets {command}" in ran.out


def test_scenarios_are_listed_with_level_needs_and_source() -> None:
    out = offsets("list", "scenarios").out
    (line,) = [line for line in out.splitlines() if line.startswith("latest.after-retention-all")]
    assert line.split()[1:3] == ["MUST", "retention"]
    assert "seed 000" in line
    assert out.splitlines()[-1].startswith("217 scenarios: ")


def test_the_catalogue_can_be_listed_whole() -> None:
    out = offsets("list", "scenarios", "--all").out
    assert "490 scenarios: " in out.splitlines()[-1]


def test_backends_are_listed_with_what_they_lack() -> None:
    out = offsets("list", "backends").out
    (line,) = [line for line in out.splitlines() if line.startswith("apache-kafka@4.3.1 ")]
    assert line.split() == ["apache-kafka@4.3.1", "apache-kafka", "yes", "disk-full", "network-cut", "tiered"]


def test_smoke_finds_that_a_backend_is_what_it_says_it_is() -> None:
    ran = offsets("smoke", "-b", "librdkafka-mock")
    assert ran.code == 0, ran.out
    assert "NOT THERE" not in ran.out
    assert [line.split()[1] for line in ran.out.splitlines() if line.startswith("answers")] == ["there"]


def test_smoke_finds_a_capability_that_is_declared_and_not_there(mock_as_external: str) -> None:
    ran = offsets("smoke", "--bootstrap", mock_as_external)
    assert ran.code == 1
    (line,) = [line for line in ran.out.splitlines() if line.startswith("delete-records")]
    assert "NOT THERE" in line
    assert "the broker does not advertise delete_records" in line


def test_smoke_of_a_broker_that_is_not_there_says_so() -> None:
    ran = offsets("smoke", "--bootstrap", "127.0.0.1:1")
    assert ran.code == 4
    assert "external(127.0.0.1:1) did not run: 127.0.0.1:1: nobody listens there" in ran.err


def test_smoke_of_nothing_is_a_mistake_on_the_command_line() -> None:
    assert offsets("smoke").code == 5


def test_a_report_of_nothing_says_what_to_do(tmp_path: Path) -> None:
    ran = offsets("report", str(tmp_path))
    assert ran.code == 4
    assert "offsets report: No *.ndjson result file in " in ran.err


def test_a_cell_is_shown_with_kafkas_answer_the_wire_and_how_to_reproduce_it(matrix_run: MatrixRun) -> None:
    ran = offsets("show", "last", "ts.exact", "librdkafka-mock", "--results", str(matrix_run.results))
    assert ran.code == 0, ran.err
    for part in (
        "check:      ts.exact:at+200 (MUST",
        "verdict:    deviates",
        "asked:      ListOffsets v7 timestamp=1700000000200",
        "accepted:   error=0 offset=1 timestamp=1700000000200",
        "observed:   error=0 offset=-1 timestamp=-1",
        "Kafka says: error=0 offset=1 timestamp=1700000000200",
        "(apache-kafka@4.3.1)",
        "source:     ",
        "impact:     ",
        "reproduce:  pytest 'suites/test_timestamps.py::test_a_time_that_is_a_records_own_finds_that_record'",
        "list_offsets v7 to 127.0.0.1:",
    ):
        assert part in ran.out


@pytest.mark.parametrize(
    ("run", "id", "backend", "sentence"),
    [
        ("never", "ts.exact", "librdkafka-mock", "no run begins with 'never'"),
        ("last", "ts.exact", "redpanda", "has no checks of 'redpanda'; it has apache-kafka"),
        ("last", "ts.nothing", "librdkafka-mock", "did not ask 'ts.nothing' of librdkafka-mock"),
    ],
)
def test_a_cell_that_is_not_there_ends_in_one_sentence(
    run: str, id: str, backend: str, sentence: str, matrix_run: MatrixRun
) -> None:
    ran = offsets("show", run, id, backend, "--results", str(matrix_run.results))
    assert ran.code == 4
    assert sentence in ran.err


def matrix(*columns: tuple[bool, str, str]) -> Matrix:
    """A matrix of one scenario; a column is whether it is an oracle, its status, and its outcome."""
    return Matrix(
        columns=tuple(
            Column(f"b{number}", oracle, None, None, "run", None, status, ())
            for number, (oracle, status, _) in enumerate(columns)
        ),
        rows=(Row("latest.a", "latest", "MUST", "", False, tuple(Cell(outcome, {}) for *_, outcome in columns)),),
        tallies=(),
        deviations=(),
        lines=1,
        malformed=0,
    )


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ([(True, "complete", "conforms"), (False, "complete", "deviates")], 0),
        ([(True, "complete", "conforms"), (False, "not run", "not run")], 0),
        ([(False, "complete", "inconclusive")], 0),
        ([(True, "complete", "deviates"), (False, "complete", "conforms")], 1),
        ([(True, "complete", "inconclusive")], 3),
        ([(True, "complete", "broken"), (False, "complete", "conforms")], 3),
        ([(True, "not run", "not run"), (False, "not run", "not run")], 4),
    ],
)
def test_the_exit_code_is_about_the_run_and_the_oracle(columns: list[tuple[bool, str, str]], code: int) -> None:
    concluded, sentence = conclusion(matrix(*columns))
    assert concluded == code
    assert bool(sentence) == (code != 0)
