"""The report on one screen of Markdown: what broke first, then who is safe for what. For a job summary or a mail.

For: `render`, a pure function of at most 60 lines. Left to others: the whole matrix (`reports.markdown`).
"""

from collections import Counter
from typing import Final

from reports import words
from reports.changes import place
from reports.markdown import escape
from reports.model import Change, History, ProfileVerdict, Report
from reports.outcomes import FIXED, NEW, OURS, OUTCOMES
from reports.words import NAME_LENGTH, TEXT_LENGTH

LINES: Final = 60

# Sixty lines hold these and the headings between them.
CHANGES_SHOWN: Final = 18
FAILURES_SHOWN: Final = 10
FLAKES_SHOWN: Final = 4


def render(report: Report) -> str:
    """At most 60 lines that end with a newline."""
    lines = ["# Offset conformance", "", words.summary(report.matrix), ""]
    if report.history is not None:
        lines += _changes(report.history)
    lines += _unfinished(report)
    lines += _profiles(report.profiles)
    if report.history is not None:
        lines += _flakes(report.history)
    lines.append("The whole matrix is in matrix.md beside this, and everything in report.json.")
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], "There is more: report.json beside this has all of it."]
    return "\n".join(lines) + "\n"


def headline(history: History) -> str:
    """What changed, in numbers."""
    counts = Counter(change.outcome for change in history.changes)
    told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
    if not history.compared:
        return "no earlier good night to compare with"
    return f"{told or 'nothing changed'} since the last good night"


def _changes(history: History) -> list[str]:
    lines = [f"## {headline(history)[0].upper()}{headline(history)[1:]}", ""]
    shown = [change for change in sorted(history.changes, key=place) if change.outcome not in (FIXED, OURS)]
    # What is new and conforms is no news beside what broke.
    shown = [change for change in shown if change.outcome != NEW or change.after != "conforms"]
    lines += [f"- {_change(change)}" for change in shown[:CHANGES_SHOWN]]
    if len(shown) > CHANGES_SHOWN:
        lines.append(f"- and {len(shown) - CHANGES_SHOWN} more")
    return [*lines, ""] if shown else lines


def _change(change: Change) -> str:
    why = f": {escape(change.reason, TEXT_LENGTH)}" if change.reason else ""
    moved = f", moved: {escape(', '.join(change.moved), NAME_LENGTH)}" if change.moved else ", nothing moved"
    return (
        f"**{change.outcome}** {escape(change.backend, NAME_LENGTH)} {escape(change.check, NAME_LENGTH)}"
        f" ({escape(change.level, NAME_LENGTH)}): {escape(change.before, NAME_LENGTH)} to"
        f" {escape(change.after, NAME_LENGTH)}{why}{moved}"
    )


def _unfinished(report: Report) -> list[str]:
    notes = [
        f"- {escape(backend, NAME_LENGTH)} {escape(why, TEXT_LENGTH)}"
        for backend, (_, why) in words.notes(report.matrix).items()
    ]
    malformed = report.history.malformed if report.history else 0
    if report.matrix.malformed:
        notes.append(f"- {words.malformed_note(report.matrix)}")
    if malformed > report.matrix.malformed:
        notes.append(f"- {malformed} lines in all of history could not be read and are in its quarantine")
    return [*notes[:FAILURES_SHOWN], ""] if notes else []


def _profiles(verdicts: tuple[ProfileVerdict, ...]) -> list[str]:
    if not verdicts:
        return []
    backends = list(dict.fromkeys(verdict.backend for verdict in verdicts))
    lines = [
        "## Safe for us?",
        "",
        f"| profile | {' | '.join(escape(backend, NAME_LENGTH) for backend in backends)} |",
        f"|{' --- |' * (len(backends) + 1)}",
    ]
    for profile in dict.fromkeys(verdict.profile for verdict in verdicts):
        row = {verdict.backend: verdict for verdict in verdicts if verdict.profile == profile}
        cells = (f"{row[backend].safe} {row[backend].kept}/{row[backend].rules}" for backend in backends)
        lines.append(f"| {escape(profile, NAME_LENGTH)} | {' | '.join(cells)} |")
    lines.append("")
    failing = [(verdict, failure) for verdict in verdicts for failure in verdict.failures]
    for verdict, failure in failing[:FAILURES_SHOWN]:
        lines.append(
            f"- {escape(verdict.backend, NAME_LENGTH)} is not safe for {escape(verdict.profile, NAME_LENGTH)}:"
            f" {escape(failure.scenario, NAME_LENGTH)} {failure.outcome}."
            + (f" {escape(failure.impact, TEXT_LENGTH)}" if failure.impact else "")
        )
    if len(failing) > FAILURES_SHOWN:
        lines.append(f"- and {len(failing) - FAILURES_SHOWN} more rules that are not kept")
    return [*lines, ""] if failing else lines


def _flakes(history: History) -> list[str]:
    flakes = sorted(history.flakes, key=lambda flake: -flake.low)
    if not flakes:
        return []
    lines = ["## Flaky", ""]
    lines += [
        f"- {escape(flake.backend, NAME_LENGTH)} {escape(flake.check, NAME_LENGTH)}: {flake.odd} of {flake.runs} runs"
        f" ({flake.low:.0%} to {flake.high:.0%}), {escape(', '.join(flake.verdicts), NAME_LENGTH)}"
        for flake in flakes[:FLAKES_SHOWN]
    ]
    if len(flakes) > FLAKES_SHOWN:
        lines.append(f"- and {len(flakes) - FLAKES_SHOWN} more")
    return [*lines, ""]
