"""A bending: what one mutant or one legal variation does to requests, answers and their delivery.

Bug or liberty, it is a name, a sentence, and small pure functions from a question and its answer to another answer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from mutants.memory import Log, Memory
from mutants.messages import Answered, Asked, Undecodable
from mutants.partitions import Entry, change_entries, change_questions


class Cut(Enum):
    CUT = "cut"


CUT = Cut.CUT
"""In a delivery: close the connection here."""

Part = bytes | float | Cut
"""In a delivery: bytes to send, seconds to wait, or the end of the connection."""

Ask = Callable[[Asked, Memory], Asked | None]
Change = Callable[[Asked, Any, Memory], Any]
Deliver = Callable[[Asked, bytes, Memory], list[Part] | None]


@dataclass(frozen=True)
class Bending:
    """One way to be another broker.

    `why` is for people: what the bug does to a user, or why the variation is legal. `answers` changes decoded answers
    by API; `ask` changes a request, or closes the connection with None; `deliver` says how the bytes of an answer go
    out, None meaning as usual. `needs` are capabilities of a backend without which nothing of it can be seen. `alone`
    is for legal variations that hide others, or get in their way; the rest are told together.
    """

    name: str
    why: str
    answers: Mapping[str, Change] = field(default_factory=dict)
    ask: Ask | None = None
    deliver: Deliver | None = None
    needs: frozenset[str] = frozenset()
    alone: bool = False

    def bend(self, answered: Answered, memory: Memory) -> Any | None:
        """The answer to send instead; None where the broker's own is to be passed on."""
        memory.hear(answered)
        change = self.answers.get(answered.asked.api)
        if change is None:
            return None
        bent = change(answered.asked, answered.answer, memory)
        return None if bent == answered.answer else bent

    def touches(self, answered: Answered, memory: Memory) -> bool:
        """Whether anybody would see anything of it in this exchange."""
        asked = answered.asked
        try:
            return bool(
                (self.ask is not None and self.ask(asked, memory) is not asked)
                or self.bend(answered, memory) is not None
                or (self.deliver is not None and self.deliver(asked, answered.frame, memory) is not None)
            )
        except Undecodable:
            return False


UNBENT = Bending("unbent", "passes everything on")


def together(bendings: Sequence[Bending]) -> Bending:
    """One bending that does what all of them do, in their order."""
    if len(bendings) == 1:
        return bendings[0]

    def change(asked: Asked, answer: Any, memory: Memory) -> Any:
        for each in bendings:
            if asked.api in each.answers:
                answer = each.answers[asked.api](asked, answer, memory)
        return answer

    def ask(asked: Asked, memory: Memory) -> Asked | None:
        passed: Asked | None = asked
        for each in bendings:
            if each.ask is not None and passed is not None:
                passed = each.ask(passed, memory)
        return passed

    def deliver(asked: Asked, whole: bytes, memory: Memory) -> list[Part] | None:
        parts: list[Part] = [whole]
        for each in bendings:
            if each.deliver is not None and len(parts) == 1 and isinstance(parts[0], bytes):
                parts = each.deliver(asked, parts[0], memory) or parts
        return parts

    apis = {api for each in bendings for api in each.answers}
    return Bending("several", "", dict.fromkeys(apis, change), ask, deliver)


@dataclass(frozen=True)
class About:
    """What a mutant may look at beside one partition's answer."""

    entry: Entry
    exchange: Asked
    memory: Memory

    @property
    def asked(self) -> Any:
        """The request's own entry about this partition."""
        return self.entry.asked

    @property
    def time(self) -> int:
        """What ListOffsets was asked for: a special number, or a time."""
        return int(self.asked.timestamp)

    @property
    def committed(self) -> bool:
        """Whether a reader of committed records asks."""
        return bool(getattr(self.exchange.request, "isolation_level", 0))

    @property
    def log(self) -> Log:
        return self.memory.logs[self.entry.place]


Told = Any
"""One partition's answer, as the codec's frozen value."""

Bend = Callable[[About, Told], Told]


def but(told: Told, **fields: object) -> Told:
    """The same answer with some fields changed; a field that the version does not have is passed over."""
    return dataclasses.replace(told, **{name: value for name, value in fields.items() if hasattr(told, name)})


def per_partition(bend: Bend) -> Change:
    """Bends each partition of an answer by itself; an answer that becomes None is left out."""

    def change(asked: Asked, answer: Any, memory: Memory) -> Any:
        def one(entry: Entry) -> Any:
            return entry.told if entry.asked is None else bend(About(entry, asked, memory), entry.told)

        return change_entries(asked, answer, one)

    return change


def per_question(api: str, change: Callable[[Any], Any]) -> Ask:
    """Asks the broker something else about each partition."""

    def ask(asked: Asked, _memory: Memory) -> Asked:
        if asked.api != api:
            return asked
        request = change_questions(asked, change)
        return asked if request == asked.request else asked.bent(request)

    return ask


def with_request(api: str, **fields: object) -> Ask:
    """Asks the broker with other fields of the request itself."""

    def ask(asked: Asked, _memory: Memory) -> Asked:
        if asked.api != api:
            return asked
        request = but(asked.request, **fields)
        return asked if request == asked.request else asked.bent(request)

    return ask


def everywhere(entity: Any, field_name: str, change: Callable[[Any], Any]) -> Any:
    """The entity with a field changed in it and in everything that it holds."""
    changed: dict[str, Any] = {}
    for each in dataclasses.fields(entity):
        value = getattr(entity, each.name)
        if each.name == field_name:
            changed[each.name] = change(value)
        elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            changed[each.name] = tuple(everywhere(entry, field_name, change) for entry in value)
    return dataclasses.replace(entity, **changed) if changed else entity


def asks_for(asked: Asked, *times: int) -> bool:
    """Whether this is a ListOffsets request with one of these special numbers or times."""
    return asked.api == "list_offsets" and any(
        entry.timestamp in times for topic in asked.request.topics for entry in topic.partitions
    )
