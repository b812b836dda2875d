"""`PartitionLog`: what the protocol front needs of a storage engine, and what an engine promises.

Promises that every engine makes:

Offsets   The first record of a log has offset 0. Each appended batch gets the offsets that follow those before it,
          for ever: neither deletion nor expiry gives an offset a second time.
Atomic    `append` and `end_transaction` happen whole or not at all. A batch is never seen in part.
Durable   What `append` returned for is kept as well as the engine keeps anything: `durability` says how well.
          A batch that was refused, or whose `append` was cancelled before it returned, may not be assumed to be
          absent unless it was a `Refusal`.
Ordered   Any number of calls may run at once. Each takes effect at one moment between call and return, the same
          for all callers: what one caller was told, the next one sees (linearizable). The front holds no lock.
Verbatim  Batches are returned as they were appended, but for base offset, leader epoch, and, on topics that want
          it, the time of arrival. Compaction alone may leave records out; what it leaves keeps its offsets.
Checked   `append` is handed batches that `batches.check_produced` let pass. The engine does not check them again,
          but for what only the log can know: sequence numbers and producer epochs.

Not promised: that deleted records are freed at once, or that expiry happens before somebody calls `expire`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from broker.log.batches import Header
from broker.log.producers import Aborted
from broker.log.settings import LogSettings


class Ends(NamedTuple):
    """The offsets that say where a log begins and ends."""

    start: int
    """The first offset that can be read."""
    stable: int
    """Where readers of committed records stop: the first offset of the oldest open transaction, or the end."""
    end: int
    """The offset that the next record gets. There is one copy of the log, so it is the high watermark too."""
    leader_epoch: int
    """The epoch in which the next record is written."""
    start_epoch: int
    """The epoch in which the record at the start was written, or will be."""


class Found(NamedTuple):
    """A record that a lookup found."""

    offset: int
    timestamp: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a batch went; for a batch that was there already, where it went the first time."""

    base_offset: int
    append_time: int
    log_start: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Whole batches from a log, in order, as one piece of bytes; and the ends of the log at that moment."""

    data: bytes
    ends: Ends
    aborted: tuple[Aborted, ...]


class PartitionLog(ABC):
    """One partition's records. Engines are free in how they keep them; see the module for what they promise."""

    durability: str
    """How well appended records are kept, in a few words: what a restart or a crash leaves of them."""

    @abstractmethod
    async def append(self, header: Header, batch: bytes, now: int) -> Appended:
        """Add a checked batch. A batch that repeats one of its producer's last five is answered, not added.

        Raises `Refusal`: out_of_order_sequence_number, invalid_producer_epoch.
        """

    @abstractmethod
    async def end_transaction(self, producer_id: int, producer_epoch: int, *, commit: bool, now: int) -> int:
        """Write the marker that ends a producer's transaction here; its offset. It need not have written any."""

    @abstractmethod
    async def read(self, offset: int, max_bytes: int, *, committed: bool, at_least_one: bool) -> Slice:
        """Batches from the one that holds `offset` on, up to `max_bytes`, or one batch if that is larger.

        With `committed`, nothing at or above the stable offset, and the aborted transactions of what is returned.
        It may return less than there is. Raises `Refusal` offset_out_of_range.
        """

    @abstractmethod
    async def ends(self) -> Ends: ...

    @abstractmethod
    async def find_by_time(self, timestamp: int) -> Found | None:
        """The first record, in offset order and from the start on, that is not older than `timestamp`."""

    @abstractmethod
    async def find_newest(self) -> Found | None:
        """The first of the records with the largest timestamp.

        As in Kafka, a record below the start is still named until its segment is gone.
        """

    @abstractmethod
    async def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """KIP-320: the largest epoch not above `epoch`, and the offset behind its last record; -1 twice if none."""

    @abstractmethod
    async def delete_up_to(self, offset: int) -> int:
        """Make everything before `offset` unreadable; -1 means up to the end. The start afterwards.

        An offset below the start changes nothing. Raises `Refusal` offset_out_of_range above the end.
        """

    @abstractmethod
    async def expire(self, now: int) -> None:
        """Do what retention by time and size asks for, and forget producers that fell silent."""

    @abstractmethod
    async def compact(self, now: int) -> None:
        """Leave the last record of each key, if the topic is compacted and enough has been written since."""

    @abstractmethod
    def configure(self, settings: LogSettings) -> None:
        """Follow new settings from now on."""

    @abstractmethod
    def size(self) -> int:
        """The bytes that the log holds, for retention and for people."""

    @abstractmethod
    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` after each change that a waiting reader may care about; returns how to stop that."""
