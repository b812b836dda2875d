"""The catalogue and the suites agree: every story told is listed, once, with where it comes from and what for."""

import importlib
import json
import re
from collections import Counter
from pathlib import Path

import pytest

import conformance.catalogue
from backends.registry import CAPABILITIES
from conformance.catalogue import Level, Scenario, catalogue, families, scenario, scenario_of
from conformance.telling import CAPABILITY_APIS

ROOT = Path(conformance.catalogue.__file__).parent
SUITES = sorted((ROOT.parent / "suites").glob("**/test_*.py"))


def told() -> list[tuple[str, Scenario | None]]:
    """Every test function of the suites, with its scenario if it has one."""
    functions = []
    for path in SUITES:
        module = importlib.import_module(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))
        for name, value in vars(module).items():
            if name.startswith("test_") and getattr(value, "__module__", "") == module.__name__:
                functions.append((f"{path.name}::{name}", scenario_of(value)))
    return functions


TOLD = told()


def test_every_id_is_listed_once_and_fits_the_result_schema() -> None:
    rows = json.loads((ROOT / "catalogue.json").read_text())["scenarios"]
    counts = Counter(row["id"] for row in rows)
    assert [id for id, count in counts.items() if count > 1] == []
    schema = json.loads((ROOT / "result.schema.json").read_text())
    pattern = schema["$defs"]["check"]["properties"]["scenario"]["pattern"]
    assert [id for id in counts if not re.search(pattern, id)] == []


def test_every_entry_has_a_level_a_title_an_expectation_and_a_source() -> None:
    entries = catalogue().values()
    assert {entry.level for entry in entries} <= set(Level)
    assert [entry.id for entry in entries if not (entry.title and entry.expected and entry.source)] == []


def test_every_family_is_listed_and_has_entries() -> None:
    assert {entry.family for entry in catalogue().values()} == set(families())
    assert all(families().values())


def test_every_need_of_a_story_is_a_capability_that_a_backend_can_declare() -> None:
    needs = {need for _name, scenario in TOLD if scenario for need in scenario.needs}
    assert needs <= CAPABILITIES  # what is listed but not yet told may need more
    assert set(CAPABILITY_APIS) <= CAPABILITIES


def test_every_test_of_the_suites_tells_a_scenario() -> None:
    assert [name for name, scenario in TOLD if scenario is None] == []
    assert len(TOLD) > 100  # the suites were found at all


def test_no_scenario_is_told_by_two_functions() -> None:
    counts = Counter(scenario.id for _name, scenario in TOLD if scenario)
    assert [id for id, count in counts.items() if count > 1] == []


def test_every_scenario_told_has_sources_and_says_whom_a_wrong_answer_hurts() -> None:
    scenarios = [scenario for _name, scenario in TOLD if scenario]
    assert [each.id for each in scenarios if not (all(each.sources) and each.impact.strip().endswith("."))] == []
    assert [each.id for each in scenarios if each.revision < 1] == []


def test_an_id_that_is_not_listed_cannot_be_told() -> None:
    with pytest.raises(ValueError, match=r"nobody\.knows is not in conformance/catalogue\.json"):
        scenario("nobody.knows", impact="None.")


def test_a_function_without_the_mark_tells_no_scenario() -> None:
    assert scenario_of(test_a_function_without_the_mark_tells_no_scenario) is None


def test_a_storys_own_sources_come_after_the_catalogues() -> None:
    @scenario("latest.one-record", impact="A reader stops.", revision=2, sources=("a book",))
    def tell() -> None: ...

    marked = scenario_of(tell)
    assert marked is not None
    assert marked.sources == (catalogue()["latest.one-record"].source, "a book")
    assert (marked.revision, marked.level, marked.needs) == (2, Level.MUST, ())
