"""Answers about partitions, whichever API gave them: each partition of an answer beside what was asked about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mutants.messages import Asked


@dataclass(frozen=True)
class Entry:
    """One partition of an answer. `asked` is the request's entry about it, None where nobody asked."""

    topic: str
    partition: int
    asked: Any
    told: Any

    @property
    def place(self) -> tuple[str, int]:
        return self.topic, self.partition


@dataclass(frozen=True)
class Shape:
    """The names under which a message keeps topics, a topic's name, its partitions, and a partition's number."""

    topics: str
    name: str
    partitions: str
    index: str


_USUAL = Shape("topics", "name", "partitions", "partition_index")

SHAPES: Mapping[str, tuple[Shape, Shape]] = {
    "list_offsets": (_USUAL, _USUAL),
    "delete_records": (_USUAL, _USUAL),
    "offset_commit": (_USUAL, _USUAL),
    "produce": (
        Shape("topic_data", "name", "partition_data", "index"),
        Shape("responses", "name", "partition_responses", "index"),
    ),
    "fetch": (
        Shape("topics", "topic", "partitions", "partition"),
        Shape("responses", "topic", "partitions", "partition_index"),
    ),
    "offset_for_leader_epoch": (
        Shape("topics", "topic", "partitions", "partition"),
        Shape("topics", "topic", "partitions", "partition"),
    ),
}
"""For each API whose answers are per partition: the shape of its requests and of its answers."""


def entries(asked: Asked, answer: Any) -> Iterator[Entry]:
    """Every partition of an answer; nothing for APIs that are not about partitions."""
    if asked.api not in SHAPES:
        return
    questions = _questions(asked)
    shape = SHAPES[asked.api][1]
    for topic in getattr(answer, shape.topics):
        name = _name(topic, shape)
        for told in getattr(topic, shape.partitions):
            index = int(getattr(told, shape.index))
            yield Entry(name, index, questions.get((name, index)), told)


def change_entries(asked: Asked, answer: Any, change: Callable[[Entry], Any]) -> Any:
    """The answer with every partition changed; one that becomes None is left out."""
    questions = _questions(asked)
    shape = SHAPES[asked.api][1]
    topics = []
    for topic in getattr(answer, shape.topics):
        name = _name(topic, shape)
        changed = []
        for told in getattr(topic, shape.partitions):
            index = int(getattr(told, shape.index))
            changed.append(change(Entry(name, index, questions.get((name, index)), told)))
        kept = tuple(each for each in changed if each is not None)
        topics.append(dataclasses.replace(topic, **{shape.partitions: kept}))
    return dataclasses.replace(answer, **{shape.topics: tuple(topics)})


def change_questions(asked: Asked, change: Callable[[Any], Any]) -> Any:
    """The request with the entry about every partition changed."""
    shape = SHAPES[asked.api][0]
    topics = [
        dataclasses.replace(
            topic, **{shape.partitions: tuple(change(each) for each in getattr(topic, shape.partitions))}
        )
        for topic in getattr(asked.request, shape.topics)
    ]
    return dataclasses.replace(asked.request, **{shape.topics: tuple(topics)})


def _questions(asked: Asked) -> dict[tuple[str, int], Any]:
    shape = SHAPES[asked.api][0]
    return {
        (_name(topic, shape), int(getattr(entry, shape.index))): entry
        for topic in getattr(asked.request, shape.topics)
        for entry in getattr(topic, shape.partitions)
    }


def _name(topic: Any, shape: Shape) -> str:
    """The topic's name, or its id in versions that have no names."""
    return str(getattr(topic, shape.name, None) or getattr(topic, "topic_id", ""))
