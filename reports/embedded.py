"""The report as the data that the page carries: small, bounded, and safe inside HTML.

For: shaping values into JSON (`shape`) and writing JSON so that nothing in it ends the element it stands in
(`escaped`). Everything that a result file says is text that others wrote: it is bounded here, and what would not be
seen is made visible, so that the page only has to show it. Texts and answers that repeat are kept once and named by
their place, because twenty columns mostly say the same.

Left to others: the page around it (`reports.page`), and how it looks (`reports/browser`).
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reports import outcomes, words
from reports.details import CheckDetail, Exchange
from reports.model import LEVELS, OUTCOMES, Cell, Column, History, Matrix, ProfileVerdict, Report

# A name that is longer is nobody's: the suite's own have a third of it.
NAME_CHARACTERS: Final = 120

# A sentence, an answer, an error text: what a reader takes in at once. The result file has the rest.
TEXT_CHARACTERS: Final = 600

# A request or a response, which a reader searches rather than reads.
MESSAGE_CHARACTERS: Final = 1000

# Fields of one answer, and answers that are accepted in its place: the suite's longest have half as many.
FIELDS_SHOWN: Final = 24

# Changes, sightings and the like, each: a year of nights of twenty backends, and whoever wants to know more than that
# reads report.json with a program.
ROWS_SHOWN: Final = 8000

# Thirty years; what took longer, or is no number at all, was not measured.
LONGEST_MS: Final = 1e12

# Of a night, which there are so many of, what its chart shows.
_OF_A_NIGHT: Final = ("run_id", "backend", "started", "good", "counts")

# What would end a script element or begin a comment in it, and what some readers of JSON take for a line's end.
_ENDING: Final = "<>&\u2028\u2029"

Json = Any


@dataclass(frozen=True)
class Titles:
    """What areas and profiles are called, by their keys; one without a title is called by its key."""

    areas: Mapping[str, str]
    profiles: Mapping[str, str]


NO_TITLES: Final = Titles({}, {})


def escaped(data: Json) -> str:
    """JSON that can stand in a script element, whatever texts are in it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for char in _ENDING:
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def visible(text: str, length: int) -> str:
    """At most `length` characters, all of which show: the others as the escapes by which programmers know them."""
    if not text.isprintable():  # most are, and a million calls are to cost nothing
        shown = (char if char.isprintable() else char.encode("unicode_escape").decode() for char in text[: length + 1])
        text = "".join(shown)
    return text if len(text) <= length else text[: length - 1] + "…"


class _Pool:
    """Values that repeat, each made and kept once, and known by its place."""

    def __init__(self, make: Callable[[str | None], Json]) -> None:
        self.values: list[Json] = []
        self._make = make
        self._places: dict[str | None, int] = {}

    def place(self, stored: str | None) -> int:
        """The place of what a stored text is made into."""
        place = self._places.get(stored)
        if place is None:
            place = self._places[stored] = len(self.values)
            self.values.append(self._make(stored))
        return place


@dataclass(frozen=True)
class _Pools:
    """What twenty columns mostly say alike."""

    texts: _Pool = field(default_factory=lambda: _Pool(lambda text: visible(text or "", TEXT_CHARACTERS)))
    accepted: _Pool = field(default_factory=lambda: _Pool(_accepted))
    observed: _Pool = field(default_factory=lambda: _Pool(_observed))


def shape(report: Report, checks: Sequence[CheckDetail], titles: Titles) -> dict[str, Json]:
    """Everything that the page shows, ready for `escaped`."""
    matrix = report.matrix
    pools = _Pools()
    places = {column.backend: place for place, column in enumerate(matrix.columns)}
    rows = {row.scenario: place for place, row in enumerate(matrix.rows)}
    asked = sum(cell.checks for row in matrix.rows for cell in row.cells)
    return {
        "summary": words.summary(matrix),
        "outcomes": [[each, words.SYMBOLS[each], words.MEANINGS[each]] for each in OUTCOMES],
        "disputed": words.DISPUTED_MEANS,
        "counts": words.COUNTS_MEAN.partition(": ")[2],
        "levels": LEVELS,
        "changes": list(outcomes.MEANINGS.items()),
        "columns": [_column(column) for column in matrix.columns],
        "areas": _areas(matrix, titles),
        "rows": [
            {
                "scenario": _name(row.scenario),
                "area": _name(row.family),
                "level": row.level,
                "title": visible(row.title, TEXT_CHARACTERS),
                "impact": visible(row.impact, TEXT_CHARACTERS),
                "disputed": row.disputed,
                "cells": [_cell(cell) for cell in row.cells],
            }
            for row in matrix.rows
        ],
        "checks": _checks(checks, rows, places, pools),
        "profiles": _profiles(report.profiles, rows, places, titles),
        "alike": _alike(report, rows, places),
        "history": None if report.history is None else _history(report.history),
        "malformed": words.malformed_note(matrix) if matrix.malformed else "",
        "left_out": {
            "checks": asked - len(checks),
            "exchanges": sum(not each.exchanges and each.exchanged > 0 for each in checks),
        },
        "texts": pools.texts.values,
        "accepted": pools.accepted.values,
        "observed": pools.observed.values,
    }


def _name(text: str) -> str:
    return visible(text, NAME_CHARACTERS)


def _column(column: Column) -> dict[str, Json]:
    return {
        "backend": _name(column.backend),
        "oracle": column.oracle,
        "version": _name(column.version or ""),
        "build": visible(column.build or "", TEXT_CHARACTERS),
        "run": _name(column.run_id),
        "started": column.started or "",
        "status": column.status,
        "reasons": [visible(reason, TEXT_CHARACTERS) for reason in column.reasons],
    }


def _areas(matrix: Matrix, titles: Titles) -> list[tuple[str, str]]:
    """The areas of the matrix in the order of the catalogue; what it does not know comes last."""
    present = dict.fromkeys(row.family for row in matrix.rows)
    known = [area for area in titles.areas if area in present]
    return [
        (_name(area), _name(titles.areas.get(area, area)))
        for area in (*known, *(area for area in present if area not in titles.areas))
    ]


def _cell(cell: Cell) -> list[int]:
    """Outcome, checks that came out that way, checks in all."""
    return [OUTCOMES.index(cell.outcome), cell.counts.get(cell.outcome, 0), cell.checks]


def _checks(
    checks: Sequence[CheckDetail], rows: Mapping[str, int], places: Mapping[str, int], pools: _Pools
) -> dict[int, dict[int, list[Json]]]:
    """By row and column. A check is a list, because its field names would be half of the page."""
    found: dict[int, dict[int, list[Json]]] = defaultdict(dict)
    for each in checks:
        if each.scenario in rows and each.backend in places:
            cell = found[rows[each.scenario]].setdefault(places[each.backend], [])
            cell.append(_check(each, pools))
    return found


def _check(check: CheckDetail, pools: _Pools) -> list[Json]:
    """In the order of `CHECK_FIELDS` in reports/browser/report.js."""
    text = pools.texts.place
    return [
        text(check.check),
        check.revision,
        OUTCOMES.index(check.verdict),
        check.grade == "legal",
        text(check.reason),
        text(check.asked),
        pools.accepted.place(check.accepted),
        pools.observed.place(check.observed),
        [text(source) for source in check.sources],
        text(check.test),
        _milliseconds(check.duration_ms),
        text(check.oracle_backend),
        pools.observed.place(check.oracle_observed),
        check.exchanged,
        [_exchange(each, pools) for each in check.exchanges],
    ]


def _exchange(exchange: Exchange, pools: _Pools) -> list[Json]:
    """In the order of `EXCHANGE_FIELDS` in reports/browser/report.js. Hardly two messages are the same."""
    return [
        pools.texts.place(exchange.api),
        exchange.version,
        pools.texts.place(exchange.node),
        _milliseconds(exchange.ms),
        visible(exchange.request, MESSAGE_CHARACTERS),
        visible(exchange.response, MESSAGE_CHARACTERS),
    ]


def _milliseconds(value: float) -> float:
    return round(value, 1) if abs(value) < LONGEST_MS else 0.0


def _accepted(stored: str | None) -> list[str]:
    """The accepted answers in words."""
    return [visible(each, TEXT_CHARACTERS) for each in words.answer_texts(stored or "[]")[:FIELDS_SHOWN]]


def _observed(stored: str | None) -> list[tuple[str, str]] | None:
    """The fields of an answer, each as (name, value): as texts, since a browser's numbers end at 53 bits."""
    if stored is None:
        return None
    try:
        value = json.loads(stored)
    except (ValueError, RecursionError):
        value = {"": stored}
    fields = value.items() if isinstance(value, dict) else [("", value)]
    return [(_name(name), visible(str(each), TEXT_CHARACTERS)) for name, each in list(fields)[:FIELDS_SHOWN]]


def _profiles(
    verdicts: Sequence[ProfileVerdict], rows: Mapping[str, int], places: Mapping[str, int], titles: Titles
) -> list[dict[str, Json]]:
    profiles: dict[str, list[Json]] = defaultdict(list)
    for each in verdicts:
        profiles[each.profile].append(
            {
                "column": places[each.backend],
                "safe": each.safe,
                "rules": each.rules,
                "kept": each.kept,
                **{
                    kind: [[rows.get(rule.scenario, -1), _name(rule.scenario), rule.outcome] for rule in found]
                    for kind, found in (("failures", each.failures), ("unknown", each.unknown))
                },
            }
        )
    return [
        {"name": _name(name), "about": visible(titles.profiles.get(name, ""), TEXT_CHARACTERS), "verdicts": found}
        for name, found in profiles.items()
    ]


def _alike(report: Report, rows: Mapping[str, int], places: Mapping[str, int]) -> dict[int, list[Json]]:
    """By row: the groups of columns that answered alike, and whether each is one against all others."""
    found: dict[int, list[Json]] = defaultdict(list)
    for each in report.fingerprints:
        columns = [places[backend] for backend in each.backends if backend in places]
        if each.scenario in rows and columns:
            found[rows[each.scenario]].append([columns, each.odd])
    return found


def _history(history: History) -> dict[str, Json]:
    """What history tells, under the names of `reports.model`, the first ones where there is too much."""
    parts = {
        "changes": history.changes,
        "deviations": history.deviations,
        "flakes": history.flakes,
        "versions": history.versions,
        "sightings": history.sightings,
        "nights": history.nights,
    }
    told = {name: [_shown(vars(each)) for each in part[:ROWS_SHOWN]] for name, part in parts.items()}
    told["nights"] = [{name: night[name] for name in _OF_A_NIGHT} for night in told["nights"]]
    return {
        "compared": {_name(backend): _name(run) for backend, run in history.compared.items()},
        "malformed": history.malformed,
        "left_out": sum(max(0, len(part) - ROWS_SHOWN) for part in parts.values()),
        **told,
    }


def _shown(value: Json) -> Json:
    """A value of the model with its texts bounded and visible."""
    if isinstance(value, str):
        return visible(value, TEXT_CHARACTERS)
    if isinstance(value, Mapping):
        return {name: _shown(each) for name, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, tuple | list) else value
