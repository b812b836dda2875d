"""The summary, the JSON, the JUnit file and the badges; and that nothing that a broker sent is markup in them."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from jsonschema import Draft202012Validator
from matrices import HOSTILE, MATRIX, hostile, report

from reports import badges, junit, published, summary
from reports.model import Change, Fingerprint, Flake, History, Report
from reports.profiles import verdicts

PROFILES = {"core@1": ["latest.a", "earliest.b"], "other@1": ["latest.never"]}

FLAKE = Flake("broker", "b", "latest.a", "latest.a:x", 1, 10, 1, 0.1, 0.02, 0.4, ("conforms", "deviates"), "", "")


def change(outcome: str, text: str = "x") -> Change:
    return Change(outcome, text, f"latest.a:{text}", "MUST", "conforms", "deviates", text, text, ("broker build",))


def full(*changes: Change, text: str = "") -> Report:
    matrix = hostile(text) if text else MATRIX
    told = History({"broker": "run-0"}, changes, (), (FLAKE,), (), (), (), 3)
    return Report(matrix, verdicts(matrix, PROFILES), (Fingerprint("latest.a", "f", ("a",), True),), told)


def test_a_profile_is_safe_unless_a_rule_is_not_kept_or_not_known() -> None:
    found = {(each.profile, each.backend): each for each in verdicts(MATRIX, PROFILES)}
    assert found["core@1", "kafka@4.3.1"].safe == "no"
    assert found["core@1", "absent"].safe == "unknown"
    assert found["other@1", "broker"].safe == "unknown"
    (failure,) = found["core@1", "broker"].failures
    assert (failure.scenario, failure.outcome) == ("latest.a", "deviates")
    assert verdicts(MATRIX, {"p": ["latest.a"]})[0].safe == "yes"


@pytest.mark.parametrize("outcome", ["unsupported", "not-applicable"])
def test_a_rule_that_is_declined_lets_down_whoever_relies_on_it(outcome: str) -> None:
    row = replace(MATRIX.rows[1], cells=tuple(replace(cell, outcome=outcome) for cell in MATRIX.rows[1].cells))
    assert verdicts(replace(MATRIX, rows=(row,)), {"p": ["latest.a"]})[0].safe == "no"


def test_the_summary_tells_what_broke_first_and_leaves_out_what_is_mended() -> None:
    lines = summary.render(full(change("fixed"), change("flaky"), change("regression"))).splitlines()
    assert lines[4] == "## 1 regression, 1 flaky, 1 fixed since the last good night"
    assert lines[6].startswith("- **regression** <code>x</code> <code>latest.a:x</code> (<code>MUST</code>): ")
    assert lines[7].startswith("- **flaky** ")
    assert not [line for line in lines if line.startswith("- **fixed**")]


@pytest.mark.parametrize("number", [0, 1, 500])
def test_the_summary_has_at_most_sixty_lines(number: int) -> None:
    matrix = replace(MATRIX, columns=MATRIX.columns * 7, rows=())
    many = full(*(change("regression", str(n)) for n in range(number)))
    wide = replace(many, matrix=matrix, profiles=many.profiles * 9)
    for each in (many, wide):
        assert len(summary.render(each).splitlines()) <= 60


def test_the_json_is_valid_against_the_published_schema() -> None:
    schema = json.loads((Path(published.__file__).parent / "report.schema.json").read_text())
    assert schema == published.schema(), "run `python -m reports.published > reports/report.schema.json`"
    validator = Draft202012Validator(schema)
    for each in (report(MATRIX), full(change("regression")), full(change("new"), text=HOSTILE)):
        validator.validate(json.loads(published.render(each)))
    assert not validator.is_valid({"schema_version": 1})


def test_junit_has_a_suite_per_backend_and_a_case_per_scenario() -> None:
    root = Xml.fromstring(junit.render(report(MATRIX)))
    suites = {suite.get("name"): suite for suite in root}
    assert {name: suite.get("tests") for name, suite in suites.items()} == dict.fromkeys(
        ("kafka@4.3.1", "absent", "broker"), "2"
    )
    broker = suites["broker"]
    assert (broker.get("failures"), broker.get("skipped")) == ("1", "0")
    failure = broker.find("testcase/failure")
    assert failure is not None
    assert "latest.a:latest: observed: offset=0" in (failure.text or "")
    assert suites["absent"].get("skipped") == "2"


def test_a_badge_says_in_words_who_is_safe_for_what() -> None:
    made = badges.render(full())
    assert len(made) == 6
    badge = Xml.fromstring(made["broker.core@1.svg"])
    assert badge.get("aria-label") == "broker for core@1: not safe, 1 of 2 kept"


def test_nothing_a_broker_sent_is_markup_or_moves_a_cursor() -> None:
    nasty = full(change("regression", HOSTILE), text=HOSTILE)
    told = summary.render(nasty)
    assert set(re.findall(r"<[^>]*>?", told)) == {"<code>", "</code>"}
    assert len(told.splitlines()) <= 60
    xml = junit.render(nasty)
    assert {element.tag for element in Xml.fromstring(xml).iter()} <= {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "error",
        "skipped",
    }
    for name, svg in badges.render(nasty).items():
        assert {element.tag.rpartition("}")[2] for element in Xml.fromstring(svg).iter()} == {
            *("svg", "title", "rect", "path", "g", "text"),
        }
        assert re.fullmatch(r"[\w@.-]+\.svg", name)
    for text in (told, xml, *badges.render(nasty).values()):
        assert not {"\x1b", "\x00", "\u202e", "\x9b"} & set(text)
