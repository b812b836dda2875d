"""The matrix as GitHub Markdown, inert whatever a broker sent.

For: `render`, a pure function. Left to others: writing the file.
"""

import re
from collections.abc import Iterable
from itertools import groupby

from reports import words
from reports.model import Deviation, Matrix
from reports.words import NAME_LENGTH, TEXT_LENGTH, clean

# Whatever begins markup, a table cell, a mention, an issue link or an address. As a character reference it
# shows the same and begins nothing. Quotes are harmless outside a tag, and answers are full of them.
_MARKUP = re.compile(r"[\\`*_~<>&|\[\]@#$]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def render(matrix: Matrix) -> str:
    """The whole report as Markdown that ends with a newline."""
    parts = [
        "# Offset conformance",
        words.summary(matrix),
        *_scenarios(matrix),
        _list([*words.legend(matrix), *_footnotes(matrix)]),
        "## Scenarios by family and level, of all that were seen",
        _tallies(matrix),
        *_deviations(matrix),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: str, length: int) -> str:
    """Text that others wrote, as code on one line: nothing in it is markup, a mention or a link."""
    return "<code>" + _MARKUP.sub(lambda char: f"&#{ord(char[0])};", clean(text, length)) + "</code>"


def _scenarios(matrix: Matrix) -> list[str]:
    """One table per family."""
    parts = []
    for family, rows in groupby(matrix.rows, key=lambda row: row.family):
        table = []
        for row in rows:
            mark = f" ({words.DISPUTED})" if row.disputed else ""
            cells = (words.cell_text(cell) for cell in row.cells)
            table.append([escape(row.scenario, NAME_LENGTH) + mark, row.level, *cells])
        parts += [
            f"## {escape(family, NAME_LENGTH)}",
            _table(["scenario", "level", *_headings(matrix)], table),
        ]
    return parts


def _tallies(matrix: Matrix) -> str:
    table = [
        [
            escape(tally.family, NAME_LENGTH),
            tally.level,
            str(tally.scenarios),
            *map(words.tally_text, tally.outcomes),
        ]
        for tally in matrix.tallies
    ]
    return _table(["family", "level", "scenarios", *_headings(matrix)], table)


def _headings(matrix: Matrix) -> list[str]:
    notes = words.notes(matrix)
    return [
        escape(column.backend, NAME_LENGTH) + (f" ({notes[column.backend][0]})" if column.backend in notes else "")
        for column in matrix.columns
    ]


def _table(headings: list[str], rows: Iterable[list[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _footnotes(matrix: Matrix) -> list[str]:
    lines = [
        f"({number}) {escape(backend, NAME_LENGTH)} {escape(why, TEXT_LENGTH)}"
        for backend, (number, why) in words.notes(matrix).items()
    ]
    if matrix.malformed:
        lines.append(words.malformed_note(matrix))
    return lines


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _deviations(matrix: Matrix) -> list[str]:
    shown, more = words.shown_deviations(matrix)
    disputed = words.disputed_scenarios(matrix)
    parts = ["## Deviations"] if shown else []
    parts += [_deviation(deviation, more_checks, deviation.scenario in disputed) for deviation, more_checks in shown]
    return [*parts, words.more_deviations(more)] if more else parts


def _deviation(deviation: Deviation, more_checks: int, disputed: bool) -> str:
    title = (
        f"{words.SYMBOLS['deviates']} {escape(deviation.backend, NAME_LENGTH)} deviates:"
        f" {escape(deviation.check, NAME_LENGTH)}"
        f" ({deviation.level}{', ' + words.DISPUTED if disputed else ''})"
        f"{words.more_checks(more_checks)}"
    )
    fields = [f"{label}: {escape(text, TEXT_LENGTH)}" for label, text in words.deviation_fields(deviation)]
    return f"{title}\n\n{_list(fields)}"
