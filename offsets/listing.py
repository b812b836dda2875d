"""`offsets list`: what there is to run, from the same data that runs it."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tabulate import tabulate

from backends import registry
from conformance import profiles
from conformance.catalogue import Entry, Scenario, catalogue, scenario_of
from mutants.bugs import MUTANTS
from mutants.variations import VARIATIONS
from offsets.exits import Exit

SUITES = Path(__file__).parents[1] / "suites"


def perform(what: str, *, everything: bool) -> Exit:
    if what == "scenarios":
        _list_scenarios(everything)
    elif what == "mutants":
        _list_mutants()
    elif what == "profiles":
        _list_profiles()
    else:
        _list_backends()
    return Exit.AS_EXPECTED


def told_functions() -> list[Callable[..., None]]:
    """Every test function of the suites that tells a scenario, in the order of the files."""
    modules = [importlib.import_module(f"suites.{path.stem}") for path in sorted(SUITES.glob("test_*.py"))]
    return [function for module in modules for function in vars(module).values() if scenario_of(function)]


def told_scenarios() -> dict[str, Scenario]:
    """Every scenario that a suite tells, by id."""
    found = (scenario_of(function) for function in told_functions())
    return {scenario.id: scenario for scenario in found if scenario is not None}


def _list_scenarios(everything: bool) -> None:
    told = told_scenarios()
    shown = [entry for entry in catalogue().values() if everything or entry.id in told]
    rows = [_scenario_row(entry, entry.id in told, everything) for entry in shown]
    headings = ["scenario", "level", "needs", "title", "source"]
    print(tabulate(rows, headings + (["written"] if everything else []), tablefmt="simple", disable_numparse=True))
    levels = Counter(entry.level for entry in shown)
    counts = ", ".join(f"{count} {level}" for level, count in sorted(levels.items()))
    print(f"\n{len(shown)} scenarios: {counts}. {len(told)} of the catalogue's {len(catalogue())} are written.")


def _scenario_row(entry: Entry, is_told: bool, everything: bool) -> list[str]:
    row = [entry.id, str(entry.level), " ".join(entry.needs), entry.title, entry.source]
    return [*row, "yes" if is_told else "no"] if everything else row


def _list_backends() -> None:
    embedded = {backend.column for backend in registry.embedded_defaults()}
    rows = []
    for family in registry.families().values():
        for version in family.versions or (None,):
            backend = family.at(version)
            lacks = " ".join(sorted(family.lacks)) or "nothing"
            rows.append([backend.column, family.preset, "yes" if backend.column in embedded else "", lacks])
    headings = ["backend", "preset", "in make matrix", "declares that it lacks"]
    print(tabulate(rows, headings, tablefmt="simple"))
    print("\nA broker that runs already: --bootstrap HOST:PORT. A version that is not listed is tried all the same.")


def _list_mutants() -> None:
    rows = [[each.name, each.why] for each in MUTANTS]
    print(tabulate(rows, ["mutant", "what it would do to a user"], tablefmt="simple"))
    rows = [[each.name, each.why] for each in VARIATIONS]
    print("\n" + tabulate(rows, ["legal variation", "why it is legal"], tablefmt="simple"))
    print(f"\n{len(MUTANTS)} mutants, {len(VARIATIONS)} legal variations. offsets mutants tries them all.")


def _list_profiles() -> None:
    told = told_scenarios()
    rows = [
        [str(profile), len(profile.rules), sum(rule in told for rule in profile.rules), profile.about]
        for versions in profiles.profiles().values()
        for profile in versions
    ]
    print(tabulate(rows, ["profile", "rules", "written", "about"], tablefmt="simple"))
    print("\nA published version never changes. NAME alone means its newest version, NAME@VERSION that one.")
