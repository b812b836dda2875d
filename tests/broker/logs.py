"""A log to try things on, with a clock that stands still until it is told to move."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from broker.log.batches import check_produced, iter_records, read_header
from broker.log.memory import MemoryLog
from broker.log.partition_log import Appended, Ends, Found, Slice
from broker.log.settings import LogSettings
from conformance.batches import Codec, Producer, Record, encode_batch

V = TypeVar("V")

NOW = 1_700_000_000_000
FOREVER = {"retention_ms": -1}


def done(coroutine: Coroutine[Any, Any, V]) -> V:
    return asyncio.run(coroutine)


class Log:
    """A memory log, called without `await`."""

    def __init__(self, *, leader_epoch: int = 0, **settings: Any) -> None:
        self.settings = LogSettings(**(FOREVER | settings))
        self.log = MemoryLog(self.settings, NOW, leader_epoch=leader_epoch)
        self.now = NOW

    def append(
        self,
        *records: Record,
        codec: Codec = Codec.NONE,
        producer: Producer | None = None,
        sequence: int = -1,
    ) -> Appended:
        batch = encode_batch(records, codec=codec, producer=producer, base_sequence=sequence)
        return done(self.log.append(check_produced(batch, 9, self.settings, self.now), batch, self.now))

    def append_at(self, *timestamps: int) -> None:
        """One batch with one record for each time."""
        for timestamp in timestamps:
            self.append(Record(timestamp))

    def configure(self, **settings: Any) -> None:
        self.settings = LogSettings(**(FOREVER | settings))
        self.log.configure(self.settings)

    def ends(self) -> Ends:
        return done(self.log.ends())

    def at(self, timestamp: int) -> tuple[int, int] | None:
        return _pair(done(self.log.find_by_time(timestamp)))

    def newest(self) -> tuple[int, int] | None:
        return _pair(done(self.log.find_newest()))

    def read(self, offset: int, *, committed: bool = False, max_bytes: int = 2**20) -> Slice:
        return done(self.log.read(offset, max_bytes, committed=committed, at_least_one=True))

    def offsets(self) -> list[int]:
        """The offsets of all records that can be read, segment after segment."""
        found: list[int] = []
        offset = self.ends().start
        while True:
            piece = self.read(offset).data
            if not piece:
                return found
            found += [each for each in offsets_in(piece) if each >= offset]
            offset = _end(piece)

    def delete_up_to(self, offset: int) -> int:
        return done(self.log.delete_up_to(offset))

    def expire(self, after_ms: int = 0) -> None:
        self.now += after_ms
        done(self.log.expire(self.now))

    def compact(self, after_ms: int = 0) -> None:
        self.now += after_ms
        done(self.log.compact(self.now))

    def end_transaction(self, producer: Producer, *, commit: bool) -> int:
        return done(self.log.end_transaction(producer.id, producer.epoch, commit=commit, now=self.now))


def _pair(found: Found | None) -> tuple[int, int] | None:
    return found and (found.offset, found.timestamp)


def offsets_in(data: bytes) -> Iterable[int]:
    position = 0
    while position < len(data):
        header = read_header(data, position)
        batch = data[position : position + header.size]
        yield from (record.offset for record in iter_records(batch, header)[1])
        position += header.size


def _end(data: bytes) -> int:
    position = 0
    while position < len(data):
        header = read_header(data, position)
        position += header.size
    return header.last_offset + 1
