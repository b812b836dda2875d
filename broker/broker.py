"""The broker as the APIs see it: topics, groups, transactions and who it says it is. No sockets here."""

from __future__ import annotations

import base64
import time
import uuid
from dataclasses import dataclass, field

from broker.groups import Groups
from broker.log.memory import MemoryLog
from broker.log.settings import LogSettings
from broker.metrics import Metrics
from broker.settings import BrokerSettings
from broker.topics import Topics
from broker.transactions import Transactions


def now_ms() -> int:
    """The broker's clock, in milliseconds."""
    return time.time_ns() // 1_000_000


def _new_memory_log(settings: LogSettings) -> MemoryLog:
    return MemoryLog(settings, now_ms())


def _new_cluster_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


@dataclass
class Broker:
    """Everything that lives as long as the process."""

    settings: BrokerSettings = field(default_factory=BrokerSettings)
    users: dict[str, str] | None = None
    """Passwords by user name; None where anybody may do anything."""
    host: str = "127.0.0.1"
    port: int = 0
    """Where clients are told to connect. Known once the socket is bound."""

    def __post_init__(self) -> None:
        self.cluster_id = _new_cluster_id()
        self.node_id: int = self.settings["node.id"]
        self.metrics = Metrics()
        self.topics = Topics(self.settings, _new_memory_log)
        self.groups = Groups(self.settings)
        self.transactions = Transactions(self.settings, self.topics, self.groups)
