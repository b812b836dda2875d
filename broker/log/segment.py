"""A stretch of a log in memory: batches end to end in one piece, with an index of eight-byte numbers beside it.

One piece, because a batch as an object of its own would cost as much again as a small record.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from broker.log.batches import Header, read_header


class Segment:
    """Batches of ascending offsets. Only the last segment of a log is added to."""

    __slots__ = ("_newest", "_offsets", "_positions", "base_offset", "created", "data", "first_timestamp", "modified")

    def __init__(self, base_offset: int, now: int) -> None:
        self.base_offset = base_offset
        self.created = now
        self.modified = now
        self.data = bytearray()
        self.first_timestamp: int | None = None
        self._offsets = array("q")
        self._positions = array("q")
        self._newest = array("q")
        """The largest timestamp up to and including each batch. It only grows, so it can be searched by halves."""

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def count(self) -> int:
        return len(self._offsets)

    @property
    def max_timestamp(self) -> int:
        return self._newest[-1] if self._newest else -1

    @property
    def largest_timestamp(self) -> int:
        """What retention compares: the newest record, or the last write where no record has a time."""
        newest = self.max_timestamp
        return newest if newest >= 0 else self.modified

    def append(self, batch: bytes | bytearray, base_offset: int, max_timestamp: int, now: int) -> None:
        if self.first_timestamp is None:
            self.first_timestamp = max_timestamp
        newest = self._newest[-1] if self._newest else max_timestamp
        self._offsets.append(base_offset)
        self._positions.append(len(self.data))
        self._newest.append(max(newest, max_timestamp))
        self.data += batch
        self.modified = now

    def waited_ms(self, timestamp: int, now: int) -> int:
        """How long this segment has been open, as Kafka counts: by record times where there are any."""
        if self.first_timestamp is not None and self.first_timestamp >= 0:
            return timestamp - self.first_timestamp
        return now - self.created

    def header(self, index: int) -> Header:
        return read_header(self.data, self._positions[index])

    def batch(self, index: int) -> bytes:
        start = self._positions[index]
        return bytes(memoryview(self.data)[start : self._end(index)])

    def _end(self, index: int) -> int:
        return self._positions[index + 1] if index + 1 < len(self._positions) else len(self.data)

    def batches(self) -> Iterator[tuple[Header, bytes]]:
        for index in range(self.count):
            yield self.header(index), self.batch(index)

    def index_of(self, offset: int) -> int:
        """The first batch whose last offset is not below `offset`; `count` if there is none."""
        index = bisect_right(self._offsets, offset) - 1
        if index < 0:
            return 0
        return index if self.header(index).last_offset >= offset else index + 1

    def first_newer(self, timestamp: int, start_offset: int) -> Iterator[int]:
        """The batches, in order, that may hold a record at or after both a time and an offset."""
        first = max(bisect_left(self._newest, timestamp), self.index_of(start_offset))
        for index in range(first, self.count):
            if self.header(index).max_timestamp >= timestamp:
                yield index

    def newest_batch(self) -> int | None:
        """The first batch that holds the largest timestamp."""
        return bisect_left(self._newest, self._newest[-1]) if self._newest else None

    def read(self, index: int, max_bytes: int, before: int, *, at_least_one: bool) -> bytes:
        """Whole batches from `index` on that begin before an offset."""
        start = self._positions[index]
        stop = bisect_left(self._offsets, before)
        if stop <= index:
            return b""
        end = self._end(stop - 1)
        if end - start > max_bytes:
            last = bisect_right(self._positions, start + max_bytes, index, stop) - 1
            end = self._positions[last]
            if end == start:
                if not at_least_one:
                    return b""
                end = self._end(index)
        return bytes(memoryview(self.data)[start:end])
