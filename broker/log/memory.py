"""The memory engine: a partition as a list of segments in this process. Nothing survives the process."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from kio.schema.errors import ErrorCode

from broker.log.batches import LOG_APPEND_TIME, Header, iter_records, marker, patch, read_header
from broker.log.compaction import Compactor
from broker.log.epochs import LeaderEpochs
from broker.log.partition_log import Appended, Ends, Found, PartitionLog, Slice
from broker.log.producers import ProducerStates
from broker.log.segment import Segment
from broker.log.settings import LogSettings
from broker.refusal import Refusal


class MemoryLog(PartitionLog):
    """No method suspends, so each is atomic on the event loop that all callers share. Not safe across threads."""

    durability = "memory: as long as the process"

    def __init__(self, settings: LogSettings, now: int, *, leader_epoch: int = 0) -> None:
        self._settings = settings
        self._segments = [Segment(0, now)]
        self._start = 0
        self._end = 0
        self._producers = ProducerStates()
        self._epochs = LeaderEpochs()
        self._epochs.begin(leader_epoch, 0)
        self._compactor = Compactor()
        self._watchers: set[Callable[[], None]] = set()
        self._size = 0
        self._known_ends: Ends | None = None
        """The ends since the last change, because they are asked for far more often than they move."""

    def configure(self, settings: LogSettings) -> None:
        self._settings = settings

    def size(self) -> int:
        return self._size

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        self._watchers.add(changed)
        return lambda: self._watchers.discard(changed)

    def begin_epoch(self, epoch: int) -> None:
        """A new leader writes from here on."""
        self._epochs.begin(epoch, self._end)
        self._changed()

    # -- writing

    async def append(self, header: Header, batch: bytes, now: int) -> Appended:
        if header.producer_id >= 0:
            repeated = self._producers.check(header)
            if repeated:
                return Appended(repeated.base_offset, repeated.append_time, self._start)
        base_offset = self._end
        append_time = now if self._settings.log_append_time else -1
        self._write(header, bytearray(batch), now, append_time)
        if header.producer_id >= 0:
            self._producers.appended(header, base_offset, append_time, now)
        self._changed()
        return Appended(base_offset, append_time, self._start)

    async def end_transaction(self, producer_id: int, producer_epoch: int, *, commit: bool, now: int) -> int:
        self._producers.check_marker(producer_id, producer_epoch)
        batch = marker(producer_id, producer_epoch, commit=commit, timestamp=now)
        offset = self._end
        self._write(read_header(batch), batch, now, -1)
        self._producers.ended(producer_id, producer_epoch, offset, commit=commit, now=now)
        self._changed()
        return offset

    def _write(self, header: Header, batch: bytearray, now: int, append_time: int) -> None:
        max_timestamp = header.max_timestamp if append_time < 0 else append_time
        self._roll_if_due(len(batch), max_timestamp, now)
        patch(batch, self._end, self._epochs.latest, None if append_time < 0 else append_time)
        self._segments[-1].append(batch, self._end, max_timestamp, now)
        self._end += header.last_offset_delta + 1
        self._size += len(batch)

    def _roll_if_due(self, size: int, timestamp: int, now: int) -> None:
        active = self._segments[-1]
        full = active.size + size > self._settings.segment_bytes
        old = active.waited_ms(timestamp, now) > self._settings.segment_ms
        if active.size and (full or old):
            self._segments.append(Segment(self._end, now))

    def _changed(self) -> None:
        self._known_ends = None
        for changed in tuple(self._watchers):
            changed()

    # -- reading

    async def ends(self) -> Ends:
        return self._ends()

    def _ends(self) -> Ends:
        if self._known_ends is None:
            unstable = self._producers.first_unstable_offset
            stable = self._end if unstable is None else max(unstable, self._start)
            self._known_ends = Ends(self._start, stable, self._end, self._epochs.latest, self._epochs.at(self._start))
        return self._known_ends

    async def read(self, offset: int, max_bytes: int, *, committed: bool, at_least_one: bool) -> Slice:
        ends = self._ends()
        if not self._start <= offset <= self._end:
            raise Refusal(ErrorCode.offset_out_of_range, f"{offset} is not in {self._start} to {self._end}")
        before = ends.stable if committed else ends.end
        data = b""
        for segment in self._segments[self._segment_of(offset) :]:
            index = segment.index_of(offset)
            if index < segment.count:
                data = segment.read(index, max_bytes, before, at_least_one=at_least_one)
                break
        aborted = []
        if committed and data and self._producers.aborted:
            aborted = self._producers.aborted_between(offset, _end_of(data))
        return Slice(data, ends, tuple(aborted))

    def _segment_of(self, offset: int) -> int:
        return max(bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1, 0)

    async def find_by_time(self, timestamp: int) -> Found | None:
        for segment in self._segments[self._segment_of(self._start) :]:
            if segment.max_timestamp < timestamp:
                continue
            for index in segment.first_newer(timestamp, self._start):
                header = segment.header(index)
                found = _first_record(header, segment.batch(index), timestamp, self._start)
                if found:
                    return found
        return None

    async def find_newest(self) -> Found | None:
        segment = max(self._segments, key=lambda each: each.max_timestamp)
        index = segment.newest_batch()
        if index is None:
            return None
        header = segment.header(index)
        found = _first_record(header, segment.batch(index), header.max_timestamp, header.base_offset)
        # A producer may claim a time that none of its records has; Kafka then names the batch's last record.
        return found or Found(header.last_offset, header.max_timestamp, header.leader_epoch)

    async def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        return self._epochs.end_of(epoch, self._end)

    # -- deleting

    async def delete_up_to(self, offset: int) -> int:
        if offset == -1:
            offset = self._end
        if not 0 <= offset <= self._end:
            raise Refusal(ErrorCode.offset_out_of_range, f"{offset} is not in 0 to {self._end}")
        self._move_start(offset)
        return self._start

    def _move_start(self, offset: int) -> None:
        if offset > self._start:
            self._start = offset
            self._epochs.forget_before(offset)
            self._changed()

    async def expire(self, now: int) -> None:
        settings = self._settings
        if settings.delete:
            if settings.retention_ms >= 0:
                self._drop_while(lambda segment: now - segment.largest_timestamp > settings.retention_ms, now)
            if settings.retention_bytes >= 0:
                # A segment goes when all the others still hold as many bytes as are to be kept.
                self._drop_while(lambda segment: self.size() - segment.size >= settings.retention_bytes, now)
        while len(self._segments) > 1 and self._segments[1].base_offset <= self._start:
            self._drop_first()
        self._producers.expire(now, settings.producer_expiration_ms, self._start)

    def _drop_while(self, expired: Callable[[Segment], bool], now: int) -> None:
        """Drop segments, oldest first. The last one may go too: an empty one at the end takes its place."""
        while self._segments[0].size and expired(self._segments[0]):
            if len(self._segments) == 1:
                self._segments.append(Segment(self._end, now))
            self._drop_first()
            self._move_start(self._segments[0].base_offset)

    def _drop_first(self) -> None:
        self._size -= self._segments[0].size
        del self._segments[0]

    async def compact(self, now: int) -> None:
        if self._settings.compact:
            ends = self._ends()
            self._segments = self._compactor.compact(
                self._segments, self._settings, self._producers.aborted, ends.stable, now
            )
            self._size = sum(segment.size for segment in self._segments)


def _end_of(data: bytes) -> int:
    """The offset behind the last of some whole batches."""
    position = 0
    while position < len(data):
        header = read_header(data, position)
        position += header.size
    return header.last_offset + 1


def _first_record(header: Header, batch: bytes, timestamp: int, start: int) -> Found | None:
    """The first record of a batch that is not older than a time and not below an offset."""
    if header.attributes & LOG_APPEND_TIME:
        # All its records were stamped alike, so the batch need not be opened.
        offset = max(header.base_offset, start)
        return Found(offset, header.max_timestamp, header.leader_epoch) if header.max_timestamp >= timestamp else None
    for record in iter_records(batch, header)[1]:
        if record.timestamp >= timestamp and record.offset >= start:
            return Found(record.offset, record.timestamp, header.leader_epoch)
    return None
