"""The wording of the matrix that every renderer shares, and the cleaning of text that others wrote.

For: symbols, legend, notes, the fields of a deviation, and `clean`, which takes the teeth out of any text
of a result file. Left to the renderers: layout, and whatever else their own format needs escaped.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Final

from reports.model import COMPLETE, CUT_OFF, MISSING, NOT_RUN, OUTCOMES, Cell, Column, Deviation, Matrix

# A symbol never stands without its word, or without the legend that gives its word.
SYMBOLS: Final[Mapping[str, str]] = {
    "deviates": "✗",
    "broken": "!",
    "inconclusive": "?",
    "conforms": "✓",
    "unsupported": "–",
    "not-applicable": "○",
    MISSING: "·",
    NOT_RUN: "∅",
}

MEANINGS: Final[Mapping[str, str]] = {
    "deviates": "answered, and not as Apache Kafka does",
    "broken": "the suite or the broker fell over",
    "inconclusive": "a deadline passed or a prerequisite did not hold",
    "conforms": "answered as Apache Kafka does",
    "unsupported": "the broker itself declines the question",
    "not-applicable": "the backend declares that it lacks the capability",
    MISSING: "no check of this scenario in the newest run",
    NOT_RUN: "the backend would not start",
}

COUNTS_MEAN: Final = "1/3 after a verdict: so many of the scenario's checks; a cell shows the worst of them"
DISPUTED: Final = "disputed"
DISPUTED_MEANS: Final = "an Apache Kafka deviates here too, so the scenario itself is in doubt"

# What an accepted answer holds beside its numbers.
_REMARKS: Final = frozenset({"grade", "condition", "because"})

# Twenty blocks fill a few screens; past that a reader wants one cell, not a longer list.
DEVIATIONS_SHOWN: Final = 20

# An id, or a backend and its version. Longer ones would push the table off the screen.
NAME_LENGTH: Final = 60

# An answer, or a sentence about it. A broker's error text can run to pages.
TEXT_LENGTH: Final = 300

# Terminal control sequences: CSI (colours, cursor), OSC and its like (titles, links), two-character escapes.
_ESCAPES: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)

# Characters that draw nothing but change what is drawn: control, format (direction marks, joiners),
# surrogate, private use, line and paragraph separator.
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def clean(text: str, length: int) -> str:
    """One printable line of at most `length` characters, whatever the text was."""
    if not text.isprintable():  # most are, and have nothing to take out
        visible = (" " if unicodedata.category(char) in _INVISIBLE else char for char in _ESCAPES.sub(" ", text))
        text = "".join(visible)
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def cell_text(cell: Cell) -> str:
    """Symbol and word; and how many of the checks, when not all of them came out that way."""
    text = f"{SYMBOLS[cell.outcome]} {cell.outcome}"
    agreeing = cell.counts.get(cell.outcome, 0)
    return text if agreeing == cell.checks else f"{text} {agreeing}/{cell.checks}"


def tally_text(outcomes: Mapping[str, int]) -> str:
    """How many scenarios came out how, conforming ones first."""
    order = sorted(OUTCOMES, key=lambda outcome: outcome != "conforms")
    return " ".join(f"{SYMBOLS[outcome]}{outcomes[outcome]}" for outcome in order if outcomes.get(outcome))


def summary(matrix: Matrix) -> str:
    oracles = sum(column.oracle for column in matrix.columns)
    return (
        f"{_count(len(matrix.rows), 'scenario')}, {_count(len(matrix.columns), 'backend')},"
        f" {oracles} of them Apache Kafka itself"
    )


def legend(matrix: Matrix) -> list[str]:
    """What each symbol in this matrix means, and nothing about the others."""
    seen = {cell.outcome for row in matrix.rows for cell in row.cells}
    lines = [f"{SYMBOLS[outcome]} {outcome}: {MEANINGS[outcome]}" for outcome in OUTCOMES if outcome in seen]
    if any(len(cell.counts) > 1 for row in matrix.rows for cell in row.cells):
        lines.append(COUNTS_MEAN)
    if any(row.disputed for row in matrix.rows):
        lines.append(f"{DISPUTED}: {DISPUTED_MEANS}")
    return lines


def notes(matrix: Matrix) -> dict[str, tuple[int, str]]:
    """For each backend whose run is not complete: the number of its footnote, and why, still uncleaned."""
    unfinished = (column for column in matrix.columns if column.status != COMPLETE)
    return {column.backend: (number, _why(column)) for number, column in enumerate(unfinished, 1)}


def _why(column: Column) -> str:
    reasons = "; ".join(column.reasons) or "the run was stopped, or still goes on; every complete line of it is shown"
    return f"{CUT_OFF if column.status == CUT_OFF else NOT_RUN}: {reasons}"


def malformed_note(matrix: Matrix) -> str:
    return (
        f"{matrix.malformed} of {_count(matrix.lines, 'line')} could not be read and count for nothing:"
        " see malformed.ndjson beside this report"
    )


def shown_deviations(matrix: Matrix) -> tuple[list[tuple[Deviation, int]], int]:
    """One deviation of each scenario and backend, with how many more checks of it deviate; and how many such
    scenarios there are beyond those shown. An oracle's are disputes, not findings."""
    found: dict[tuple[str, str], list[Deviation]] = {}
    for deviation in matrix.deviations:
        if not deviation.oracle:
            found.setdefault((deviation.backend, deviation.scenario), []).append(deviation)
    firsts = [(checks[0], len(checks) - 1) for checks in found.values()]
    return firsts[:DEVIATIONS_SHOWN], max(0, len(firsts) - DEVIATIONS_SHOWN)


def more_checks(count: int) -> str:
    """What stands behind the title of a deviation that is not the only one of its scenario."""
    return f", with {_count(count, 'more check')} of the scenario" if count else ""


def more_deviations(count: int) -> str:
    return f"and {_count(count, 'more scenario')}: offsets show RUN SCENARIO BACKEND tells one, matrix.json has all"


def deviation_fields(deviation: Deviation) -> list[tuple[str, str]]:
    """Label and uncleaned text of everything known about a deviation; what is not known is left out."""
    oracle = f"{deviation.oracle_backend} answered {answer_text(deviation.oracle_observed or '')}"
    fields = [
        ("asked", deviation.asked),
        ("accepted", answer_text(deviation.accepted)),
        ("observed", answer_text(deviation.observed) if deviation.observed else "no answer"),
        ("Apache Kafka", oracle if deviation.oracle_observed else ""),
        ("reason", deviation.reason),
        ("impact", deviation.impact),
        ("sources", ", ".join(deviation.sources)),
    ]
    return [(label, text) for label, text in fields if text]


def answer_text(stored: str) -> str:
    """One answer, or several that are accepted, as a result line stores them, in words."""
    return " or ".join(answer_texts(stored))


def answer_texts(stored: str) -> list[str]:
    """The same, each answer by itself."""
    try:
        value = json.loads(stored)
    except (ValueError, RecursionError):
        return [stored]
    return list(map(_one_answer, value if isinstance(value, list) else [value]))


def _one_answer(answer: object) -> str:
    if not isinstance(answer, dict):
        return str(answer)
    numbers = [f"{name}={_number(value)}" for name, value in answer.items() if name not in _REMARKS]
    legal = ["legal"] if answer.get("grade") == "legal" else []
    remarks = [*legal, *(str(answer[name]) for name in ("condition", "because") if answer.get(name))]
    return (" ".join(numbers) or "anything") + (f" ({'; '.join(remarks)})" if remarks else "")


def _number(value: object) -> str:
    """A number, or a range of them with one end that may be open."""
    if not isinstance(value, dict):
        return str(value)
    low, high = value.get("low"), value.get("high")
    return f"{'' if low is None else low}..{'' if high is None else high}"


def disputed_scenarios(matrix: Matrix) -> frozenset[str]:
    return frozenset(row.scenario for row in matrix.rows if row.disputed)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
