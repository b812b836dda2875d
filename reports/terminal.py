"""The matrix for a terminal: plain text, no colour, safe to print whatever a broker sent.

For: `render`, a pure function. Left to others: printing it.
"""

from collections.abc import Sequence
from itertools import groupby

from tabulate import SEPARATING_LINE, tabulate

from reports import summary, words
from reports.changes import one_line
from reports.model import Change, Deviation, History, Matrix, ProfileVerdict, Report
from reports.outcomes import FIXED, NEW, OURS
from reports.words import NAME_LENGTH, TEXT_LENGTH, clean

# What changed for the worse fits on a screen, or the rest is a number.
CHANGES_SHOWN = 20


def render(report: Report) -> str:
    """The whole report as text that ends with a newline."""
    matrix = report.matrix
    parts = [
        f"Offset conformance: {words.summary(matrix)}",
        _scenarios(matrix),
        "\n".join(words.legend(matrix)),
        "\n".join(_footnotes(matrix)),
        "Scenarios by family and level, of all that were seen",
        _tallies(matrix),
        *_deviations(matrix),
        _profiles(report.profiles, _headings(matrix)),
        "\n".join(_changes(report.history)) if report.history else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _scenarios(matrix: Matrix) -> str:
    table: list[list[str] | str] = []
    for family, rows in groupby(matrix.rows, key=lambda row: row.family):
        if table:
            table.append(SEPARATING_LINE)
        table.append([clean(family, NAME_LENGTH).upper(), "", *("" for _ in matrix.columns)])
        for row in rows:
            mark = f" ({words.DISPUTED})" if row.disputed else ""
            cells = (words.cell_text(cell) for cell in row.cells)
            table.append([clean(row.scenario, NAME_LENGTH) + mark, row.level, *cells])
    return _table(["scenario", "level", *_headings(matrix)], table)


def _tallies(matrix: Matrix) -> str:
    table: list[list[str] | str] = [
        [
            clean(tally.family, NAME_LENGTH),
            tally.level,
            str(tally.scenarios),
            *map(words.tally_text, tally.outcomes),
        ]
        for tally in matrix.tallies
    ]
    return _table(["family", "level", "scenarios", *_headings(matrix)], table)


def _headings(matrix: Matrix) -> list[str]:
    """A backend's name over its version, to keep the columns narrow."""
    notes = words.notes(matrix)
    headings = []
    for column in matrix.columns:
        mark = f" [{notes[column.backend][0]}]" if column.backend in notes else ""
        headings.append(clean(column.backend, NAME_LENGTH).replace("@", "\n@", 1) + mark)
    return headings


def _table(headings: list[str], table: list[list[str] | str]) -> str:
    return tabulate(table, headings, tablefmt="simple", disable_numparse=True)


def _footnotes(matrix: Matrix) -> list[str]:
    lines = [
        f"[{number}] {clean(backend, NAME_LENGTH)} {clean(why, TEXT_LENGTH)}"
        for backend, (number, why) in words.notes(matrix).items()
    ]
    if matrix.malformed:
        lines.append(words.malformed_note(matrix))
    return lines


def _deviations(matrix: Matrix) -> list[str]:
    shown, more = words.shown_deviations(matrix)
    disputed = words.disputed_scenarios(matrix)
    blocks = [_deviation(deviation, more_checks, deviation.scenario in disputed) for deviation, more_checks in shown]
    return [*blocks, words.more_deviations(more)] if more else blocks


def _deviation(deviation: Deviation, more_checks: int, disputed: bool) -> str:
    title = (
        f"{words.SYMBOLS['deviates']} {clean(deviation.backend, NAME_LENGTH)} deviates:"
        f" {clean(deviation.check, NAME_LENGTH)}"
        f" ({deviation.level}{', ' + words.DISPUTED if disputed else ''})"
        f"{words.more_checks(more_checks)}"
    )
    fields = words.deviation_fields(deviation)
    width = max(len(label) for label, _ in fields)
    return "\n".join([title, *(f"    {label:<{width}}  {clean(text, TEXT_LENGTH)}" for label, text in fields)])


def _profiles(verdicts: tuple[ProfileVerdict, ...], headings: list[str]) -> str:
    """Who is safe for what, and how many of its rules are kept; summary.md names those that are not."""
    rows: dict[str, list[str]] = {}
    for verdict in verdicts:
        rows.setdefault(verdict.profile, []).append(f"{verdict.safe} {verdict.kept}/{verdict.rules}")
    if not rows:
        return ""
    table: list[list[str] | str] = [[clean(profile, NAME_LENGTH), *cells] for profile, cells in rows.items()]
    return "Safe for us?\n\n" + _table(["profile", *headings], table)


def worse(changes: Sequence[Change]) -> list[tuple[Change, str]]:
    """The changes for the worse, each with its line of text: what is fixed, new or our own doing is not."""
    return [(change, one_line(change)) for change in changes if change.outcome not in (FIXED, NEW, OURS)]


def _changes(history: History) -> list[str]:
    """What changed since the last good night, worst first."""
    lines = [
        f"  {change.outcome}: {clean(change.backend, NAME_LENGTH)} {text}" for change, text in worse(history.changes)
    ]
    more = [f"  and {len(lines) - CHANGES_SHOWN} more"] if len(lines) > CHANGES_SHOWN else []
    return [f"Changed: {summary.headline(history)}", *lines[:CHANGES_SHOWN], *more]
