"""The catalogue of scenarios: what each is about, how binding it is, and where that is written.

`catalogue.json` is the one place for titles, levels, capabilities and sources. It lists more scenarios than
are written; `offsets list scenarios` tells which are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TypeVar

Told = TypeVar("Told", bound=Callable[..., None])

MARK = "__scenario__"
"""The attribute of a test function that holds its scenario; decorators of pytest leave it in place."""


class Level(StrEnum):
    """MUST: a KIP, the protocol or a mainstream client breaks otherwise. SHOULD: every current Kafka does it
    and tools rely on it. MAY: a quirk of Kafka or an option; recorded, and legal either way."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


@dataclass(frozen=True)
class Entry:
    """One row of the catalogue."""

    id: str
    family: str
    title: str
    level: Level
    needs: tuple[str, ...]
    precondition: str
    steps: str
    expected: str
    source: str


@cache
def catalogue() -> dict[str, Entry]:
    """Every entry by id, in the order of the file."""
    data = json.loads((Path(__file__).parent / "catalogue.json").read_text())
    return {
        row["id"]: Entry(
            row["id"],
            row["family"],
            row["title"],
            Level(row["level"]),
            tuple(need for need in row["cap"].split(",") if need != "core"),
            row["pre"],
            row["steps"],
            row["expect"],
            row["source"],
        )
        for row in data["scenarios"]
    }


@cache
def families() -> dict[str, str]:
    """Each family's key and title, in the order in which reports show them."""
    data = json.loads((Path(__file__).parent / "catalogue.json").read_text())
    return {row["key"]: row["title"] for row in data["families"]}


@dataclass(frozen=True)
class Scenario:
    """A catalogue entry with the story that checks it.

    `revision` rises when what the story accepts changes, so that a comparison of two runs can tell a change
    of ours from a change of the broker's.
    """

    entry: Entry
    impact: str
    revision: int
    sources: tuple[str, ...]

    @property
    def id(self) -> str:
        return self.entry.id

    @property
    def needs(self) -> tuple[str, ...]:
        return self.entry.needs

    @property
    def level(self) -> Level:
        return self.entry.level


def scenario(id: str, *, impact: str, revision: int = 1, sources: tuple[str, ...] = ()) -> Callable[[Told], Told]:
    """Mark a test function as the story of a catalogue entry.

    Required: an id of the catalogue, and what a wrong answer would do to a user. `sources` adds to the
    catalogue's own.
    """
    if id not in catalogue():
        raise ValueError(f"{id} is not in conformance/catalogue.json; add it there first, with its source")
    entry = catalogue()[id]
    marked = Scenario(entry, impact, revision, (entry.source, *sources))

    def mark(function: Told) -> Told:
        setattr(function, MARK, marked)
        return function

    return mark


def scenario_of(function: object) -> Scenario | None:
    """The scenario that a test function tells, if it is one."""
    return getattr(function, MARK, None)
