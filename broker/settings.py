"""What can be set, under Kafka's names: the broker's own settings, and those that each topic may override.

A setting is known here or it is refused. Some of Kafka's topic settings mean nothing to a log without files or
followers; they are accepted, checked and shown, so that tools which set them work, and have no effect. They are
marked so below.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kio.schema.errors import ErrorCode

from broker.log.settings import LogSettings
from broker.refusal import Refusal

MAX_LONG = 2**63 - 1
WEEK_MS = 7 * 24 * 3600 * 1000
DAY_MS = 24 * 3600 * 1000


class Kind(IntEnum):
    """The type of a setting, numbered as DescribeConfigs numbers it."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


BOUNDS = {Kind.INT: 2**31 - 1, Kind.SHORT: 2**15 - 1, Kind.LONG: MAX_LONG}


@dataclass(frozen=True)
class Setting:
    """One setting: its name, what it may be, and what it is when nobody says."""

    name: str
    kind: Kind
    default: str
    synonym: str = ""
    least: float | None = None
    most: float | None = None
    choices: frozenset[str] | None = None
    effective: bool = True

    def parse(self, text: str) -> Any:
        """The value that `text` says, or a `Refusal` that names what is allowed."""
        try:
            value = _PARSERS[self.kind](text.strip())
        except ValueError:
            raise self._refusal(text, f"not a {self.kind.name.lower()}") from None
        if isinstance(value, int | float) and not isinstance(value, bool):
            most = BOUNDS.get(self.kind) if self.most is None else self.most
            if self.least is not None and value < self.least:
                raise self._refusal(text, f"value must be at least {self.least}")
            if most is not None and abs(value) > most:
                raise self._refusal(text, f"value must be no more than {most}")
        given = set(value) if isinstance(value, tuple) else {text.strip()}
        if self.choices is not None and not given <= self.choices:
            raise self._refusal(text, f"value must be one of: {', '.join(sorted(self.choices))}")
        return value

    def _refusal(self, text: str, reason: str) -> Refusal:
        return Refusal(ErrorCode.invalid_config, f"Invalid value {text[:100]} for configuration {self.name}: {reason}")


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_PARSERS: Mapping[Kind, Callable[[str], Any]] = {
    Kind.BOOLEAN: _boolean,
    Kind.STRING: str,
    Kind.INT: int,
    Kind.SHORT: int,
    Kind.LONG: int,
    Kind.DOUBLE: float,
    Kind.LIST: _list,
}

# fmt: off
TOPIC_SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in (
    Setting("cleanup.policy", Kind.LIST, "delete", "log.cleanup.policy", choices=frozenset({"delete", "compact"})),
    # Batches are stored as received, so no other value could be kept.
    Setting("compression.type", Kind.STRING, "producer", "compression.type", choices=frozenset({"producer"})),
    Setting("delete.retention.ms", Kind.LONG, str(DAY_MS), "log.cleaner.delete.retention.ms", least=0),
    Setting("max.message.bytes", Kind.INT, "1048588", "message.max.bytes", least=0),
    Setting("message.timestamp.type", Kind.STRING, "CreateTime", "log.message.timestamp.type",
            choices=frozenset({"CreateTime", "LogAppendTime"})),
    Setting("message.timestamp.before.max.ms", Kind.LONG, str(MAX_LONG), "log.message.timestamp.before.max.ms",
            least=0),
    Setting("message.timestamp.after.max.ms", Kind.LONG, "3600000", "log.message.timestamp.after.max.ms", least=0),
    Setting("min.cleanable.dirty.ratio", Kind.DOUBLE, "0.5", "log.cleaner.min.cleanable.ratio", least=0, most=1),
    Setting("min.compaction.lag.ms", Kind.LONG, "0", "log.cleaner.min.compaction.lag.ms", least=0),
    Setting("retention.bytes", Kind.LONG, "-1", "log.retention.bytes"),
    Setting("retention.ms", Kind.LONG, str(WEEK_MS), "log.retention.ms", least=-1),
    Setting("segment.bytes", Kind.INT, str(2**30), "log.segment.bytes", least=2**20),
    Setting("segment.ms", Kind.LONG, str(WEEK_MS), "log.roll.ms", least=1),
    # Kafka's way around the lower bound of segment.bytes, for tests.
    Setting("internal.segment.bytes", Kind.INT, "0", least=0),
    # No effect here: there are no files, no followers and no remote storage.
    Setting("file.delete.delay.ms", Kind.LONG, "60000", "log.segment.delete.delay.ms", least=0, effective=False),
    Setting("flush.messages", Kind.LONG, str(MAX_LONG), "log.flush.interval.messages", least=1, effective=False),
    Setting("flush.ms", Kind.LONG, str(MAX_LONG), "log.flush.interval.ms", least=0, effective=False),
    Setting("index.interval.bytes", Kind.INT, "4096", "log.index.interval.bytes", least=0, effective=False),
    Setting("max.compaction.lag.ms", Kind.LONG, str(MAX_LONG), "log.cleaner.max.compaction.lag.ms", least=1,
            effective=False),
    Setting("min.insync.replicas", Kind.INT, "1", "min.insync.replicas", least=1, effective=False),
    Setting("preallocate", Kind.BOOLEAN, "false", "log.preallocate", effective=False),
    Setting("remote.storage.enable", Kind.BOOLEAN, "false", choices=frozenset({"false"}), effective=False),
    Setting("segment.index.bytes", Kind.INT, "10485760", "log.index.size.max.bytes", least=4, effective=False),
    Setting("segment.jitter.ms", Kind.LONG, "0", "log.roll.jitter.ms", least=0, effective=False),
    Setting("unclean.leader.election.enable", Kind.BOOLEAN, "false", "unclean.leader.election.enable",
            effective=False),
)}

BROKER_SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in (
    Setting("node.id", Kind.INT, "1", least=0),
    Setting("auto.create.topics.enable", Kind.BOOLEAN, "true"),
    Setting("num.partitions", Kind.INT, "1", least=1),
    Setting("log.retention.check.interval.ms", Kind.LONG, "300000", least=1),
    Setting("log.cleaner.backoff.ms", Kind.LONG, "15000", least=1),
    Setting("producer.id.expiration.ms", Kind.INT, str(DAY_MS), least=1),
    Setting("fetch.max.bytes", Kind.INT, str(55 * 2**20), least=1024),
    # Kafka's default is 100 MiB. A request is held in memory whole, and its entries as objects beside it.
    Setting("socket.request.max.bytes", Kind.INT, str(16 * 2**20), least=1024),
    Setting("connections.max.idle.ms", Kind.LONG, "600000", least=1),
    Setting("max.connections", Kind.INT, "100000", least=1),
    # Kafka bounds what waits for its request threads; here it bounds what all connections hold, in and out.
    Setting("queued.max.request.bytes", Kind.LONG, str(256 * 2**20), least=2**20),
    Setting("group.initial.rebalance.delay.ms", Kind.INT, "3000", least=0),
    Setting("group.min.session.timeout.ms", Kind.INT, "6000", least=1),
    Setting("group.max.session.timeout.ms", Kind.INT, "1800000", least=1),
    Setting("group.max.size", Kind.INT, "10000", least=1),
    Setting("offset.metadata.max.bytes", Kind.INT, "4096", least=0),
    Setting("offsets.retention.minutes", Kind.INT, "10080", least=1),
    Setting("transaction.max.timeout.ms", Kind.INT, "900000", least=1),
    Setting("transaction.abort.timed.out.transaction.cleanup.interval.ms", Kind.INT, "10000", least=1),
)}
# fmt: on

_TOPIC_SETTING_OF = {setting.synonym: setting for setting in TOPIC_SETTINGS.values() if setting.synonym}


@dataclass(frozen=True)
class BrokerSettings:
    """The broker's settings as given on the command line; everything else has its default."""

    given: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @staticmethod
    def of(given: Mapping[str, str]) -> BrokerSettings:
        """Checked settings; a `Refusal` for a name or a value that there is not."""
        for name, text in given.items():
            setting = BROKER_SETTINGS.get(name) or _TOPIC_SETTING_OF.get(name)
            if setting is None:
                known = ", ".join(sorted([*BROKER_SETTINGS, *_TOPIC_SETTING_OF]))
                raise Refusal(ErrorCode.invalid_config, f"unknown setting {name}; known are: {known}")
            setting.parse(text)
        return BrokerSettings(dict(given))

    def __getitem__(self, name: str) -> Any:
        setting = BROKER_SETTINGS[name]
        return setting.parse(self.given.get(name, setting.default))

    def topic_default(self, setting: Setting) -> str:
        """What a topic setting is where the topic does not say."""
        return self.given.get(setting.synonym, setting.default)


def topic_setting(name: str) -> Setting:
    if name not in TOPIC_SETTINGS:
        raise Refusal(ErrorCode.invalid_config, f"Unknown topic config name: {name[:100]}")
    return TOPIC_SETTINGS[name]


def log_settings(broker: BrokerSettings, overrides: Mapping[str, str]) -> LogSettings:
    """What a topic's settings mean to its logs; a `Refusal` where one cannot be."""
    for name in overrides:
        topic_setting(name)
    value = {
        name: setting.parse(overrides.get(name, broker.topic_default(setting)))
        for name, setting in TOPIC_SETTINGS.items()
    }
    return LogSettings(
        segment_bytes=value["internal.segment.bytes"] or value["segment.bytes"],
        segment_ms=value["segment.ms"],
        retention_ms=value["retention.ms"],
        retention_bytes=value["retention.bytes"],
        delete="delete" in value["cleanup.policy"],
        compact="compact" in value["cleanup.policy"],
        min_cleanable_dirty_ratio=value["min.cleanable.dirty.ratio"],
        min_compaction_lag_ms=value["min.compaction.lag.ms"],
        delete_retention_ms=value["delete.retention.ms"],
        log_append_time=value["message.timestamp.type"] == "LogAppendTime",
        timestamp_before_max_ms=value["message.timestamp.before.max.ms"],
        timestamp_after_max_ms=value["message.timestamp.after.max.ms"],
        max_message_bytes=value["max.message.bytes"],
        producer_expiration_ms=broker["producer.id.expiration.ms"],
    )
