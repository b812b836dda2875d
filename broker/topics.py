"""The topics of the broker: names, ids, settings and the log of each partition."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from broker.log.partition_log import PartitionLog
from broker.log.settings import LogSettings
from broker.refusal import Refusal
from broker.settings import BrokerSettings, log_settings

NewLog = Callable[[LogSettings], PartitionLog]
"""How a storage engine makes the log of a new partition."""

MAX_PARTITIONS = 20_000
"""Of all topics together. Each costs about 2 kB when empty; a request for millions of them is no honest one."""

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass
class Topic:
    name: str
    id: uuid.UUID
    overrides: dict[str, str]
    settings: LogSettings
    partitions: list[PartitionLog] = field(default_factory=list)


class Topics:
    """All topics, by name and by id."""

    def __init__(self, settings: BrokerSettings, new_log: NewLog) -> None:
        self._settings = settings
        self._new_log = new_log
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}
        self.count_partitions = 0

    def all(self) -> list[Topic]:
        return list(self._by_name.values())

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def get_by_id(self, topic_id: uuid.UUID | None) -> Topic | None:
        return self._by_id.get(topic_id) if topic_id else None

    def log(self, name: str, partition: int) -> PartitionLog | None:
        topic = self._by_name.get(name)
        if topic is None or not 0 <= partition < len(topic.partitions):
            return None
        return topic.partitions[partition]

    def create(self, name: str, partitions: int, overrides: Mapping[str, str], *, validate_only: bool = False) -> Topic:
        """A new topic; a `Refusal` where it cannot be. With `validate_only` it is made and not kept."""
        check_name(name)
        if name in self._by_name:
            raise Refusal(ErrorCode.topic_already_exists, f"Topic '{name}' already exists.")
        self._check_count(partitions, partitions)
        topic = Topic(name, uuid.uuid4(), dict(overrides), log_settings(self._settings, overrides))
        if not validate_only:
            self._add_partitions(topic, partitions)
            self._by_name[name] = self._by_id[topic.id] = topic
        return topic

    def grow(self, topic: Topic, count: int, *, validate_only: bool = False) -> None:
        """Add partitions up to `count`."""
        have = len(topic.partitions)
        if count <= have:
            raise Refusal(
                ErrorCode.invalid_partitions, f"The topic {topic.name} has {have} partitions; {count} is not more."
            )
        self._check_count(count, count - have)
        if not validate_only:
            self._add_partitions(topic, count - have)

    def configure(self, topic: Topic, overrides: Mapping[str, str]) -> None:
        """Replace a topic's settings. They are checked by whoever calls."""
        topic.overrides = dict(overrides)
        topic.settings = log_settings(self._settings, overrides)
        for log in topic.partitions:
            log.configure(topic.settings)

    def delete(self, topic: Topic) -> None:
        del self._by_name[topic.name], self._by_id[topic.id]
        self.count_partitions -= len(topic.partitions)

    def _check_count(self, count: int, more: int) -> None:
        if count < 1:
            raise Refusal(ErrorCode.invalid_partitions, "Number of partitions must be larger than 0.")
        if self.count_partitions + more > MAX_PARTITIONS:
            raise Refusal(ErrorCode.policy_violation, f"This broker has at most {MAX_PARTITIONS} partitions.")

    def _add_partitions(self, topic: Topic, count: int) -> None:
        topic.partitions += [self._new_log(topic.settings) for _ in range(count)]
        self.count_partitions += count


def check_name(name: str) -> None:
    """Kafka's rules for topic names."""
    if name in (".", "..") or not _LEGAL_NAME.fullmatch(name):
        raise Refusal(
            ErrorCode.invalid_topic_exception,
            f"Topic name {name[:249]!r} is illegal: it has 1 to 249 ASCII letters, digits, '.', '_' and '-', "
            "and is not '.' or '..'",
        )
