"""`offsets check`: is a run what its baseline expects? The regression gate of whoever makes a broker."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from conformance import baselines
from conformance.baselines import FLAKY, BadBaseline, Baseline
from conformance.stored import NoSuchRun, StoredColumn, StoredRun, find_run, read_run
from offsets.exits import CommandFailed, Exit
from reports import outcomes
from reports.changes import place, told
from reports.model import MISSING, Change
from reports.words import NAME_LENGTH, TEXT_LENGTH, clean

EXITS: Mapping[str, Exit] = {
    outcomes.REGRESSION: Exit.DEVIATION,
    outcomes.NOT_APPLICABLE: Exit.DEVIATION,
    outcomes.NEW: Exit.DEVIATION,
    outcomes.FIXED: Exit.STALE_BASELINE,
    outcomes.VANISHED: Exit.INCONCLUSIVE,
    outcomes.FLAKY: Exit.INCONCLUSIVE,
    outcomes.UNDECIDED: Exit.INCONCLUSIVE,
}
"""What each difference from a baseline ends in. Where there are several, the lowest code that is not 0 wins: a
wrong answer matters more than a stale entry, and that more than no answer."""


def perform(run: str, file: str, results: str, rules: Collection[str] | None) -> Exit:
    baseline = read_baseline(file)
    stored = stored_run(results, run)
    columns = [column for backend, column in stored.columns.items() if baseline.is_for(backend)]
    if not columns:
        raise CommandFailed(
            f"run {stored.run_id} has nothing of {baseline.backend}, which {file} is about;"
            f" it has {', '.join(stored.columns) or 'no backend at all'}"
        )
    return worst_exit(_check_column(baseline, column, rules) for column in columns)


def _check_column(baseline: Baseline, column: StoredColumn, rules: Collection[str] | None) -> Exit:
    if not column.checks:
        reasons = clean("; ".join(column.not_run) or "its files hold no check", TEXT_LENGTH)
        raise CommandFailed(f"{clean(column.backend, NAME_LENGTH)} did not run: {reasons}")
    changes = differences(baseline, column, rules)
    print(told(changes, f"{column.backend} in run {column.run_id}", "as its baseline expects"))
    code = worst_exit(EXITS[change.outcome] for change in changes)
    if not column.complete:
        print("the run was cut off: what it did not get to ask is not judged")
        return code or Exit.INCONCLUSIVE
    return code


def differences(baseline: Baseline, column: StoredColumn, rules: Collection[str] | None = None) -> list[Change]:
    """Every check, or every one of the `rules`' scenarios, that did something else than was expected of it."""
    version = baselines.version_of(column)
    checks = {id: check for id, check in column.checks.items() if rules is None or check.scenario in rules}
    found = [
        Change(
            outcomes.outcome(surprise.expected, surprise.got),
            column.backend,
            surprise.check,
            checks[surprise.check].level,
            surprise.expected,
            surprise.got,
            checks[surprise.check].reason,
            checks[surprise.check].impact,
        )
        for surprise in baselines.surprises(baseline, version, {id: check.verdict for id, check in checks.items()})
        if not checks[surprise.check].flaky
    ]
    for id, check in checks.items():
        known = baseline.entry(id, version)
        if check.flaky and not (known and known.verdict == FLAKY):
            verdicts = ", then ".join(check.verdicts)
            found.append(
                Change(outcomes.FLAKY, column.backend, id, check.level, "one verdict", verdicts, "", check.impact)
            )
    found += [
        Change(outcomes.VANISHED, column.backend, id, "", "listed", MISSING, "", "")
        for id in baselines.unasked(baseline, column)
        if rules is None or id.partition(":")[0] in rules
    ]
    return sorted(found, key=place)


def worst_exit(codes: Iterable[Exit]) -> Exit:
    """The code for all of them: the lowest that is not 0."""
    return min((code for code in codes if code), default=Exit.AS_EXPECTED)


def read_baseline(file: str) -> Baseline:
    try:
        return baselines.parse(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read ({error.strerror}): name a baseline", Exit.USAGE) from error
    except (BadBaseline, UnicodeDecodeError) as error:
        raise CommandFailed(f"{file} is no baseline: {error}", Exit.USAGE) from error


def stored_run(results: str, run: str) -> StoredRun:
    try:
        return read_run(Path(results), find_run(Path(results), run))
    except NoSuchRun as error:
        raise CommandFailed(str(error)) from error
