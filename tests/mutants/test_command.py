"""`offsets mutants` as a person runs it, and the mutant that CONTRIBUTING.md shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

from whole_runs import ROOT, offsets

from backends.running import RunningBackend
from mutants import bugs
from mutants.bending import Bending
from mutants.matrix import run
from mutants.proxy import ProxyThread
from mutants.score import objections, score
from mutants.stories import tales
from offsets.listing import told_functions

RUN_SECONDS = 600.0
"""A minute on two idle cores."""


def test_every_mutant_is_caught_every_scenario_catches_one_and_no_legal_variation_is_caught(tmp_path: Path) -> None:
    ran = offsets("mutants", "-b", "in-house", "--out", str(tmp_path), seconds=RUN_SECONDS)
    assert ran.code == 0, ran.err[-3000:]
    told = json.loads((tmp_path / "mutants.json").read_text())
    assert told["backend"].startswith("in-house")
    assert told["objections"] == []
    assert len(told["mutants"]) >= 45
    assert all(mutant["caught_by"] for mutant in told["mutants"])
    assert all(scenario["caught"] for scenario in told["scenarios"])
    assert not any(variation["caught_by"] for variation in told["variations"])
    assert f"{len(told['mutants'])} of {len(told['mutants'])} mutants caught" in ran.out


def test_a_part_of_the_matrix_can_be_asked_for(tmp_path: Path) -> None:
    ran = offsets(
        "mutants", "-b", "in-house", "--out", str(tmp_path), "--scenario", "ts.exact", "--mutant", "*exclusive*"
    )
    assert ran.code == 0, ran.err
    (mutant,) = json.loads((tmp_path / "mutants.json").read_text())["mutants"]
    assert (mutant["name"], mutant["caught_by"]) == ("time-search-is-exclusive", ["ts.exact"])


def test_a_name_that_matches_nothing_is_a_mistake_on_the_command_line() -> None:
    ran = offsets("mutants", "-b", "in-house", "--mutant", "no-such-mutant")
    assert (ran.code, ran.out) == (5, "")
    assert "offsets list mutants" in ran.err


def test_an_unknown_backend_is_a_mistake_on_the_command_line() -> None:
    ran = offsets("mutants", "-b", "no-such-broker")
    assert ran.code == 5
    assert "no backend 'no-such-broker'" in ran.err


def test_mutants_are_listed_with_what_they_would_do_to_a_user() -> None:
    out = offsets("list", "mutants").out
    assert "latest-is-the-last-offset" in out
    assert out.splitlines()[-1].startswith(f"{len(bugs.MUTANTS)} mutants, ")


def test_the_mutant_of_the_document_takes_ten_lines_and_is_caught(
    in_house: RunningBackend, proxies: ProxyThread
) -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().split("## A mutant")[1]
    example = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert example is not None
    assert len(example[1].splitlines()) <= 10
    mutant = eval(example[1], vars(bugs))
    assert isinstance(mutant, Bending)
    stories = [tale for tale in tales(told_functions()) if tale.scenario.id == "latest.one-record"]
    matrix = run(in_house, proxies, stories, [mutant], [], lambda _doing, _done, _of: None)
    assert objections(score(matrix, [mutant], [], in_house.backend.capabilities)) == []
