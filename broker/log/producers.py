"""What a partition remembers of idempotent and transactional producers: KIP-98's sequences, KIP-360's epochs.

Pure bookkeeping: `check` says what a batch is before it is appended, `appended` and `ended` record what was.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from broker.log.batches import Header
from broker.refusal import Refusal

REMEMBERED_BATCHES = 5
"""A producer may have five requests in flight, so five batches may be sent again."""

MAX_PRODUCERS = 100_000
"""Nobody runs a hundred thousand producers on one partition; more is somebody making up ids to fill the memory."""


@dataclass(frozen=True, slots=True)
class Written:
    """A batch that is in the log: what its producer called it, and where it went."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    append_time: int


@dataclass(slots=True)
class Producer:
    epoch: int
    seen: int
    batches: deque[Written] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))
    first_open_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Aborted:
    """An aborted transaction: its records are between these offsets, the last being the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int


class ProducerStates:
    """All producers of one partition."""

    def __init__(self) -> None:
        self._producers: dict[int, Producer] = {}
        self._open: dict[int, int] = {}
        """First offset of each open transaction, by producer id; insertion order is offset order."""
        self.aborted: list[Aborted] = []

    @property
    def first_unstable_offset(self) -> int | None:
        return next(iter(self._open.values()), None)

    def check(self, header: Header) -> Written | None:
        """The earlier batch that this one repeats, or None for a new one in sequence; a `Refusal` otherwise."""
        known = self._producers.get(header.producer_id)
        if known is None:
            if len(self._producers) >= MAX_PRODUCERS:
                raise Refusal(ErrorCode.policy_violation, f"more than {MAX_PRODUCERS} producers on one partition")
            return None
        if header.producer_epoch < known.epoch:
            raise Refusal(
                ErrorCode.invalid_producer_epoch,
                f"producer {header.producer_id} has epoch {known.epoch}, the batch {header.producer_epoch}",
            )
        if known.first_open_offset is not None and not header.transactional:
            raise Refusal(ErrorCode.invalid_txn_state, "a plain batch in the middle of a transaction")
        if header.producer_epoch > known.epoch or not known.batches:
            if header.producer_epoch > known.epoch and header.base_sequence != 0:
                raise Refusal(
                    ErrorCode.out_of_order_sequence_number,
                    f"the first batch of an epoch has sequence 0, not {header.base_sequence}",
                )
            return None
        for each in known.batches:
            if (each.first_sequence, each.last_sequence) == (header.base_sequence, header.last_sequence):
                return each
        wanted = (known.batches[-1].last_sequence + 1) & 0x7FFFFFFF
        if header.base_sequence != wanted:
            raise Refusal(
                ErrorCode.out_of_order_sequence_number,
                f"producer {header.producer_id} sent sequence {header.base_sequence}, not {wanted}",
            )
        return None

    def check_marker(self, producer_id: int, epoch: int) -> None:
        """A marker of an epoch that was fenced since may not end anything."""
        known = self._producers.get(producer_id)
        if known and epoch < known.epoch:
            raise Refusal(ErrorCode.invalid_producer_epoch, f"producer {producer_id} has epoch {known.epoch}")

    def appended(self, header: Header, base_offset: int, append_time: int, now: int) -> None:
        """Remember a batch that went into the log."""
        known = self._remember(header.producer_id, header.producer_epoch, now)
        known.batches.append(Written(header.base_sequence, header.last_sequence, base_offset, append_time))
        if header.transactional and known.first_open_offset is None:
            known.first_open_offset = base_offset
            self._open[header.producer_id] = base_offset

    def ended(self, producer_id: int, epoch: int, marker_offset: int, *, commit: bool, now: int) -> None:
        """Remember the marker that ended a producer's transaction."""
        known = self._remember(producer_id, epoch, now)
        first = known.first_open_offset
        known.first_open_offset = None
        self._open.pop(producer_id, None)
        if first is not None and not commit:
            self.aborted.append(Aborted(producer_id, first, marker_offset))

    def _remember(self, producer_id: int, epoch: int, now: int) -> Producer:
        known = self._producers.get(producer_id)
        if known is None:
            known = self._producers[producer_id] = Producer(epoch, now)
        if epoch > known.epoch:
            known.epoch = epoch
            known.batches.clear()
        known.seen = now
        return known

    def aborted_between(self, start: int, end: int) -> list[Aborted]:
        """The aborted transactions that have records in this range of offsets, the end not included."""
        return [each for each in self.aborted if each.last_offset >= start and each.first_offset < end]

    def expire(self, now: int, expiration_ms: int, log_start: int) -> None:
        """Forget producers that were silent for long and have nothing open, and aborts below the log start."""
        for producer_id in [
            producer_id
            for producer_id, each in self._producers.items()
            if each.first_open_offset is None and now - each.seen > expiration_ms
        ]:
            del self._producers[producer_id]
        self.aborted = [each for each in self.aborted if each.last_offset >= log_start]

    def __len__(self) -> int:
        return len(self._producers)
