"""Compaction: of each key the last record stays. What stays keeps its offset, and its batch its span of offsets.

The segment being written is never touched, nor anything at or above the oldest open transaction. Records of
aborted transactions go; transaction markers stay. A record without a value (a tombstone) stays for
delete.retention.ms after the first compaction that saw it, so that readers learn of the deletion.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from broker.log.batches import Header, Record, iter_records, with_records
from broker.log.producers import Aborted
from broker.log.segment import Segment
from broker.log.settings import LogSettings


@dataclass
class Compactor:
    """What compaction remembers of one log: how far it has come, and which tombstones it has seen since when."""

    clean_up_to: int = 0
    tombstones: dict[int, int] = field(default_factory=dict)

    def compact(
        self, segments: list[Segment], settings: LogSettings, aborted: list[Aborted], stable: int, now: int
    ) -> list[Segment]:
        """The segments after compaction: the same list if too little was written since the last time."""
        cleanable = self._cleanable(segments, settings, stable, now)
        dirty = [segment for segment in cleanable if segment.base_offset >= self.clean_up_to]
        dirty_bytes, all_bytes = (sum(each.size for each in part) for part in (dirty, cleanable))
        due = self._tombstones_due(settings, now)
        if not due and (not dirty_bytes or dirty_bytes / all_bytes <= settings.min_cleanable_dirty_ratio):
            return segments
        rest = segments[len(cleanable) :]
        self.clean_up_to = rest[0].base_offset
        return [*self._rewrite(cleanable, settings, aborted, due, now), *rest]

    def _cleanable(self, segments: list[Segment], settings: LogSettings, stable: int, now: int) -> list[Segment]:
        count = 0
        for segment, following in pairwise(segments):
            young = now - segment.largest_timestamp < settings.min_compaction_lag_ms
            if following.base_offset > stable or (settings.min_compaction_lag_ms and young):
                break
            count += 1
        return segments[:count]

    def _tombstones_due(self, settings: LogSettings, now: int) -> set[int]:
        return {offset for offset, seen in self.tombstones.items() if now - seen > settings.delete_retention_ms}

    def _rewrite(
        self, segments: list[Segment], settings: LogSettings, aborted: list[Aborted], due: set[int], now: int
    ) -> list[Segment]:
        last_of_key = {
            record.key: record.offset
            for segment in segments
            for header, batch in segment.batches()
            if not header.control
            for record in iter_records(batch, header)[1]
            if not _was_aborted(header, record, aborted)
        }
        rewritten: list[Segment] = []
        seen: dict[int, int] = {}
        for segment in segments:
            if not rewritten or rewritten[-1].size + segment.size > settings.segment_bytes:
                rewritten.append(Segment(segment.base_offset, segment.created))
            target = rewritten[-1]
            for header, batch in segment.batches():
                kept_batch = batch
                if not header.control:
                    payload, records = iter_records(batch, header)
                    everything = list(records)
                    kept = [
                        record
                        for record in everything
                        if last_of_key.get(record.key) == record.offset
                        and not _was_aborted(header, record, aborted)
                        and record.offset not in due
                    ]
                    seen |= {each.offset: self.tombstones.get(each.offset, now) for each in kept if not each.has_value}
                    if not kept:
                        continue
                    if len(kept) < len(everything):
                        kept_batch = with_records(header, payload, kept)
                        header = header._replace(max_timestamp=max(record.timestamp for record in kept))
                target.append(kept_batch, header.base_offset, header.max_timestamp, segment.modified)
        self.tombstones = seen
        return rewritten


def _was_aborted(header: Header, record: Record, aborted: list[Aborted]) -> bool:
    return header.transactional and any(
        each.producer_id == header.producer_id and each.first_offset <= record.offset < each.last_offset
        for each in aborted
    )
