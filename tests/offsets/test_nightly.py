"""`offsets nightly`: a night that goes well, a broker that does not start, and the exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from whole_runs import ROOT, offsets

from offsets.__main__ import parser
from offsets.nightly import LINES, ten_lines, verdict
from reports.model import Cell, Change, Column, History, Matrix, Report, Row


def report(*outcomes: str, statuses: tuple[str, ...] = ("complete",), oracle: str = "conforms") -> Report:
    """A night with these changes; its columns have these statuses, and the first is Apache Kafka."""
    columns = tuple(
        Column(f"b{number}", number == 0, None, None, "run-2", None, status, ("\x1b[31mno image",))
        for number, status in enumerate(statuses)
    )
    row = Row("latest.a", "latest", "MUST", "", False, tuple(Cell(oracle, {}) for _ in columns))
    changes = tuple(Change(each, "b0", f"latest.a:{n}", "MUST", "x", "y", "", "") for n, each in enumerate(outcomes))
    told = History({"b0": "run-1"}, changes, (), (), (), (), (), 0)
    return Report(Matrix(columns, (row,), (), (), 1, 0), (), (), told)


@pytest.mark.parametrize(
    ("night", "code"),
    [
        (report(), 0),
        (report("new", "fixed", "scenario changed"), 0),
        (report("regression", "undecided"), 1),
        (report("became not-applicable"), 1),
        (report("vanished"), 3),
        (report("flaky"), 3),
        (report("undecided"), 3),
        (report(oracle="deviates"), 1),
        (report(oracle="inconclusive"), 3),
        (report(statuses=("complete", "not run")), 4),
        (report("regression", statuses=("complete", "not run")), 1),
        (report(statuses=("not run",)), 4),
    ],
)
def test_a_night_ends_as_check_does(night: Report, code: int) -> None:
    assert verdict(night) == code


@pytest.mark.parametrize("number", [0, 3, 100])
def test_a_person_is_told_in_ten_lines_at_most(number: int) -> None:
    lines = ten_lines(report(*["regression"] * number, statuses=("complete", *["not run"] * 9)), "out/report")
    assert len(lines) <= LINES
    assert lines[0] == "Night of run-2: 1 of 10 backends ran."
    assert lines[1].startswith("NOT RUN b1: no image")
    assert lines[-1] == "Read on: out/report/index.html"
    assert all(line.isprintable() for line in lines)
    assert bool([line for line in lines if line.startswith("regression: b0 latest.a:0")]) == bool(number)


def test_a_night_survives_a_broker_that_does_not_start(tmp_path: Path) -> None:
    some = [part for id in ("latest.empty-partition", "latest.one-record") for part in ("--scenario", id)]
    ran = offsets(
        *("nightly", "-b", "librdkafka-mock", "--bootstrap", "127.0.0.1:1", "--out", str(tmp_path), *some), seconds=300
    )
    assert ran.code == 4, ran.err
    assert len(ran.out.splitlines()) <= LINES
    assert "1 of 2 backends ran" in ran.out
    assert "NOT RUN external(127.0.0.1:1)" in ran.out
    saved: Any = json.loads((tmp_path / "report" / "report.json").read_text())
    assert [night["backend"] for night in saved["history"]["nights"]] == ["librdkafka-mock"]
    assert (tmp_path / "report" / "summary.md").exists()


@pytest.mark.parametrize("file", sorted((ROOT / ".github" / "workflows").glob("*.yaml")), ids=lambda file: file.stem)
def test_the_workflows_call_commands_that_there_are(file: Path) -> None:
    for command in re.findall(r"\.venv/bin/offsets (.*)", file.read_text()):
        parser().parse_args(command.replace('"', "").split())
    for target in re.findall(r"run: make (\S+)", file.read_text()):
        assert f"\n{target}:" in (ROOT / "Makefile").read_text()
