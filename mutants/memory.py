"""What a proxy learns of each partition from answers that pass: enough for a mutant to be wrong in a plausible way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conformance.batches import CODEC_MASK, BadBatch, decode_batches
from conformance.specs import EARLIEST, EARLIEST_LOCAL, LATEST
from mutants.messages import Answered
from mutants.partitions import Entry, entries

CODEC_AT = 22
"""Where the low byte of a batch's attributes is."""


INSTRUCTIVE = frozenset({"produce", "fetch", "delete_records", "list_offsets"})
"""The answers that something is learnt from."""


@dataclass(frozen=True)
class Batch:
    """An acknowledged batch: its first offset and the timestamp of each of its records."""

    base: int
    times: tuple[int, ...]
    compressed: bool = False

    @property
    def end(self) -> int:
        return self.base + len(self.times)


@dataclass
class Log:
    """One partition.

    `deleted` is where DeleteRecords moved its start, `local` the first offset on local disk as far as anybody asked,
    `fresh` the last batch until somebody asked for it.
    """

    start: int = 0
    end: int = 0
    deleted: int = 0
    local: int = 0
    batches: list[Batch] = field(default_factory=list)
    fresh: Batch | None = None

    @property
    def emptied(self) -> bool:
        return 0 < self.start == self.end

    @property
    def everything(self) -> list[tuple[int, int]]:
        """Offset and timestamp of every record that was ever acknowledged."""
        return [(batch.base + index, time) for batch in self.batches for index, time in enumerate(batch.times)]

    @property
    def records(self) -> list[tuple[int, int]]:
        """Offset and timestamp of every record that can still be read."""
        return [record for record in self.everything if record[0] >= self.start]

    def batch_of(self, offset: int) -> Batch:
        """The batch that holds an offset; a batch of its own for what nobody wrote, such as a transaction's marker."""
        return next((batch for batch in self.batches if batch.base <= offset < batch.end), Batch(offset, (-1,)))

    def time_of(self, offset: int) -> int:
        batch = self.batch_of(offset)
        return batch.times[offset - batch.base]


class Memory:
    """One proxy's. `scratch` is for whatever a mutant wants to keep beside the logs."""

    def __init__(self) -> None:
        self.scratch: dict[Any, Any] = {}
        self._logs: defaultdict[tuple[str, int], Log] = defaultdict(Log)
        self._heard: list[Answered] = []

    def hear(self, answered: Answered) -> None:
        """Keep an answer of the broker, to be looked into when somebody wants to know."""
        if answered.asked.api in INSTRUCTIVE:
            self._heard.append(answered)

    @property
    def logs(self) -> Mapping[tuple[str, int], Log]:
        """What is known of each partition, by topic and number; a partition that is new has an empty log."""
        heard, self._heard = self._heard, []
        for each in heard:
            for entry in entries(each.asked, each.answer):
                if entry.told.error_code == 0 and entry.asked is not None:  # errors teach nothing
                    self._note(each.asked.api, entry)
        return self._logs

    def _note(self, api: str, entry: Entry) -> None:
        log, told = self._logs[entry.place], entry.told
        match api:
            case "produce":
                batch = _batch(int(told.base_offset), bytes(entry.asked.records or b""))
                log.batches.append(batch)
                log.fresh, log.end = batch, max(log.end, batch.end)
            case "fetch":
                log.start = max(log.start, int(getattr(told, "log_start_offset", -1)))
                log.end = max(log.end, int(told.high_watermark))
            case "delete_records":
                log.start = log.deleted = int(told.low_watermark)
            case "list_offsets" if entry.asked.timestamp == EARLIEST.timestamp:
                log.start = max(log.start, int(told.offset))
            case "list_offsets" if entry.asked.timestamp == EARLIEST_LOCAL.timestamp:
                log.local = max(log.local, int(told.offset))
            case "list_offsets" if entry.asked.timestamp == LATEST.timestamp:
                log.end = max(log.end, int(told.offset))


def _batch(base: int, data: bytes) -> Batch:
    try:
        times = tuple(record.timestamp for record in decode_batches(data))
    except BadBatch:
        times = ()
    return Batch(base, times, compressed=bool(data[CODEC_AT] & CODEC_MASK) if len(data) > CODEC_AT else False)
