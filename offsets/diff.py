"""`offsets diff`: what changed between two runs, and which input moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from conformance.stored import Inputs, StoredColumn
from offsets.check import stored_run, worst_exit
from offsets.exits import CommandFailed, Exit
from reports import outcomes
from reports.changes import place, told
from reports.model import MISSING, Change
from reports.words import NAME_LENGTH, TEXT_LENGTH, clean

EXITS: Mapping[str, Exit] = {
    outcomes.REGRESSION: Exit.DEVIATION,
    outcomes.NOT_APPLICABLE: Exit.DEVIATION,
    outcomes.VANISHED: Exit.INCONCLUSIVE,
    outcomes.FLAKY: Exit.INCONCLUSIVE,
    outcomes.UNDECIDED: Exit.INCONCLUSIVE,
    outcomes.NEW: Exit.AS_EXPECTED,
    outcomes.FIXED: Exit.AS_EXPECTED,
    outcomes.OURS: Exit.AS_EXPECTED,
}
"""What each change between two runs ends in: nobody knew a new check any better, and a fixed one is what was wanted."""

NAMES: Mapping[str, str] = {
    "version": "broker version",
    "build": "broker build",
    "clients": "client",
    "suite": "suite",
    "host": "host",
}


def perform(run_a: str, run_b: str, results: str) -> Exit:
    before, after = stored_run(results, run_a), stored_run(results, run_b)
    if before.run_id == after.run_id:
        raise CommandFailed(f"both are run {after.run_id}: name two", Exit.USAGE)
    code = Exit.AS_EXPECTED
    shared = [backend for backend in after.columns if backend in before.columns]
    if not shared:
        raise CommandFailed(f"runs {before.run_id} and {after.run_id} have no backend in common")
    for backend in shared:
        one, other = before.columns[backend], after.columns[backend]
        if not other.checks:
            reasons = clean("; ".join(other.not_run) or "its files hold no check", TEXT_LENGTH)
            raise CommandFailed(f"{clean(backend, NAME_LENGTH)} did not run in {after.run_id}: {reasons}")
        changes = differences(one, other)
        print(told(changes, f"{backend}, {one.run_id} -> {other.run_id}", "nothing changed"))
        for name, values in moved(one.inputs, other.inputs).items():
            print(f"moved: {name}: {clean(values, TEXT_LENGTH)}")
        code = worst_exit([code, *(EXITS[change.outcome] for change in changes)])
    for backend in sorted(after.columns.keys() ^ before.columns.keys()):
        print(f"{clean(backend, NAME_LENGTH)}: only in {after.run_id if backend in after.columns else before.run_id}")
    return code


def differences(before: StoredColumn, after: StoredColumn) -> list[Change]:
    """Every check whose verdict changed. A change of our own scenario is none of the broker's."""
    inputs = tuple(moved(before.inputs, after.inputs))
    suite_moved = before.inputs.suite != after.inputs.suite
    revisions = (_revisions(before), _revisions(after))
    found = []
    for id in before.checks.keys() | after.checks.keys():
        one, other = before.checks.get(id), after.checks.get(id)
        shown = other or one
        assert shown is not None
        if id == story_of(id) and _told_whole(shown.scenario, before, after):
            continue
        was, now = verdict_in(before, id), verdict_in(after, id)
        outcome = outcomes.outcome(was, now)
        # A run that did not ask a scenario does not say which revision it would have asked.
        revised = len({of[shown.scenario] for of in revisions if shown.scenario in of}) > 1
        ours = revised or (other is None and suite_moved and shown.scenario not in after.scenarios)
        if other and other.flaky:
            outcome, now = outcomes.FLAKY, ", then ".join(other.verdicts)
        elif outcome != outcomes.SAME and ours:
            outcome = outcomes.OURS
        if outcome != outcomes.SAME:
            what = (*inputs, *(["scenario revision"] if revised else []))
            said = other or after.checks.get(story_of(id))
            reason = said.reason if said else ""
            found.append(Change(outcome, after.backend, id, shown.level, was, now, reason, shown.impact, what))
    return sorted(found, key=place)


def story_of(check: str) -> str:
    """The check that stands for a whole scenario where its story was not told, or not to its end."""
    return f"{check.partition(':')[0]}:story"


def verdict_in(column: StoredColumn, check: str) -> str:
    """The verdict on a check; where it was not asked because the story was not told, the verdict on the story."""
    stored = column.checks.get(check) or column.checks.get(story_of(check))
    return str(stored.verdict) if stored else MISSING


def _told_whole(scenario: str, *columns: StoredColumn) -> bool:
    """Whether one of the runs told the story to its end: then its checks say all there is to say."""
    return any(scenario in column.scenarios and f"{scenario}:story" not in column.checks for column in columns)


def moved(before: Inputs, after: Inputs) -> dict[str, str]:
    """The inputs that are not the same in both runs, each as `old -> new`."""
    pairs = {field.name: (getattr(before, field.name), getattr(after, field.name)) for field in fields(Inputs)}
    return {
        NAMES[name]: f"{old or 'unknown'} -> {new or 'unknown'}" for name, (old, new) in pairs.items() if old != new
    }


def _revisions(column: StoredColumn) -> dict[str, frozenset[int]]:
    """The revisions of each scenario that a run asked; a suite has one, and files of several suites may be mixed."""
    found: dict[str, set[int]] = {}
    for check in column.checks.values():
        found.setdefault(check.scenario, set()).add(check.revision)
    return {scenario: frozenset(numbers) for scenario, numbers in found.items()}
