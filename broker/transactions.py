"""The transaction coordinator: who may write under a transactional id, and how a transaction ends (KIP-98, KIP-360).

A transaction ends before its EndTxn is answered: markers go to every partition, offsets to their groups, and only
then is the client told. While that happens other requests of the same id are told to come back.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from enum import Enum

from kio.schema.errors import ErrorCode

from broker.groups import Groups
from broker.refusal import Refusal
from broker.settings import BrokerSettings
from broker.topics import Topics

log = logging.getLogger("broker.transactions")

LAST_EPOCH = 2**15 - 2
"""Kafka keeps the largest int16 for fencing; after the one below it a producer gets a new id."""

FORGET_AFTER_MS = 7 * 24 * 3600 * 1000
"""Kafka's transactional.id.expiration.ms: an id that nobody used for a week starts over."""

MAX_IDS = 100_000
"""More transactional ids than any application has: beyond it somebody fills the memory."""


class State(Enum):
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    ENDING = "Ending"
    COMMITTED = "CompleteCommit"
    ABORTED = "CompleteAbort"


@dataclass
class Transaction:
    """What is known of one transactional id: its producer, and its transaction if one is open."""

    producer_id: int
    epoch: int
    timeout_ms: int
    updated: int
    state: State = State.EMPTY
    started: int = 0
    partitions: set[tuple[str, int]] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)


class Transactions:
    """All transactional ids, and the numbering of producers."""

    def __init__(self, settings: BrokerSettings, topics: Topics, groups: Groups) -> None:
        self._settings = settings
        self._topics = topics
        self._groups = groups
        self._by_id: dict[str, Transaction] = {}
        self._next_producer_id = 0

    @staticmethod
    def fencing_error(code: ErrorCode, knows_fencing: bool) -> ErrorCode:
        """Clients from before KIP-588 know a fenced producer under another name."""
        fenced = code is ErrorCode.producer_fenced and not knows_fencing
        return ErrorCode.invalid_producer_epoch if fenced else code

    def _new_producer_id(self) -> int:
        self._next_producer_id += 1
        return self._next_producer_id - 1

    async def init_producer(
        self, transactional_id: str | None, timeout_ms: int, producer_id: int, epoch: int, now: int
    ) -> tuple[int, int]:
        """A producer id and epoch to write under. Whoever wrote under the transactional id before is fenced."""
        if transactional_id is None:
            return self._new_producer_id(), 0
        if not transactional_id:
            raise Refusal(ErrorCode.invalid_request, "the transactional id is empty")
        if not 0 < timeout_ms <= self._settings["transaction.max.timeout.ms"]:
            raise Refusal(ErrorCode.invalid_transaction_timeout, f"a transaction timeout of {timeout_ms} ms")
        known = self._by_id.get(transactional_id)
        if known is None:
            if len(self._by_id) >= MAX_IDS:
                raise Refusal(ErrorCode.policy_violation, f"more than {MAX_IDS} transactional ids")
            known = Transaction(self._new_producer_id(), 0, timeout_ms, now)
            self._by_id[transactional_id] = known
            return known.producer_id, known.epoch
        if known.state is State.ENDING:
            raise Refusal(ErrorCode.concurrent_transactions, "the transaction before is just being ended")
        if producer_id != -1 and (producer_id, epoch) != (known.producer_id, known.epoch):
            raise Refusal(ErrorCode.producer_fenced, "there is a newer producer with this transactional id")
        if known.epoch >= LAST_EPOCH:
            if known.state is State.ONGOING:
                await self._end(known, commit=False, now=now)
            known.producer_id, known.epoch = self._new_producer_id(), -1
        known.epoch += 1
        known.timeout_ms = timeout_ms
        known.updated = now
        if known.state is State.ONGOING:
            await self._end(known, commit=False, now=now)  # with the new epoch, which fences the old producer
        known.state = State.EMPTY
        return known.producer_id, known.epoch

    def _find(self, transactional_id: str, producer_id: int, epoch: int) -> Transaction:
        known = self._by_id.get(transactional_id)
        if known is None or known.producer_id != producer_id:
            raise Refusal(ErrorCode.invalid_producer_id_mapping, "this transactional id has another producer id")
        if known.epoch != epoch:
            raise Refusal(ErrorCode.producer_fenced, "there is a newer producer with this transactional id")
        if known.state is State.ENDING:
            raise Refusal(ErrorCode.concurrent_transactions, "the transaction is just being ended")
        return known

    def _begin(self, known: Transaction, now: int) -> None:
        if known.state is not State.ONGOING:
            known.state = State.ONGOING
            known.started = now
        known.updated = now

    def add_partitions(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: set[tuple[str, int]], now: int
    ) -> None:
        known = self._find(transactional_id, producer_id, epoch)
        self._begin(known, now)
        known.partitions |= partitions

    def add_group(self, transactional_id: str, producer_id: int, epoch: int, group: str, now: int) -> None:
        known = self._find(transactional_id, producer_id, epoch)
        self._begin(known, now)
        known.groups.add(group)

    def check_write(
        self,
        transactional_id: str | None,
        producer_id: int,
        epoch: int,
        partition: tuple[str, int],
        now: int,
        *,
        may_add: bool,
    ) -> None:
        """A transactional batch is only let in as part of an open transaction that knows of the partition (KIP-890)."""
        if transactional_id is None:
            raise Refusal(
                ErrorCode.transactional_id_authorization_failed, "a transactional batch without a transactional id"
            )
        try:
            known = self._find(transactional_id, producer_id, epoch)
        except Refusal as refusal:
            raise Refusal(self.fencing_error(refusal.code, False), refusal.message) from None
        if known.state is State.ONGOING and partition in known.partitions:
            return
        if not may_add:
            raise Refusal(ErrorCode.invalid_txn_state, "the partition was not added to the transaction")
        self.add_partitions(transactional_id, producer_id, epoch, {partition}, now)

    def check_group_write(self, transactional_id: str, producer_id: int, epoch: int, group: str) -> None:
        """Offsets are only taken for a group that was added to the open transaction."""
        known = self._find(transactional_id, producer_id, epoch)
        if known.state is not State.ONGOING or group not in known.groups:
            raise Refusal(ErrorCode.invalid_txn_state, "the group was not added to the transaction")

    async def end(self, transactional_id: str, producer_id: int, epoch: int, *, commit: bool, now: int) -> None:
        known = self._find(transactional_id, producer_id, epoch)
        if known.state is State.ONGOING:
            # Half an end would be worse than none: it goes on when the client that asked for it is gone.
            await asyncio.shield(self._end(known, commit=commit, now=now))
        elif known.state is not (State.COMMITTED if commit else State.ABORTED):
            raise Refusal(ErrorCode.invalid_txn_state, f"there is nothing to end: the state is {known.state.value}")

    async def _end(self, known: Transaction, *, commit: bool, now: int) -> None:
        known.state = State.ENDING
        for name, index in sorted(known.partitions):
            partition = self._topics.log(name, index)
            if partition is None:
                continue  # the topic was deleted meanwhile
            try:
                await partition.end_transaction(known.producer_id, known.epoch, commit=commit, now=now)
            except Refusal as refusal:
                # Somebody wrote there under this producer's id with an epoch that was never given out.
                log.warning("no marker written", extra={"topic": name, "partition": index, "reason": refusal.message})
        for group in known.groups:
            self._groups.end_transaction(group, known.producer_id, commit=commit, now=now)
        known.partitions.clear()
        known.groups.clear()
        known.updated = now
        known.state = State.COMMITTED if commit else State.ABORTED

    async def expire(self, now: int) -> None:
        """Abort transactions that took longer than their producer allowed, and forget ids that nobody uses."""
        for transactional_id, known in list(self._by_id.items()):
            if known.state is State.ONGOING:
                if now - known.started > known.timeout_ms:
                    known.epoch += 1  # fences the producer, which may still believe in its transaction
                    await self._end(known, commit=False, now=now)
            elif known.state is not State.ENDING and now - known.updated > FORGET_AFTER_MS:
                del self._by_id[transactional_id]
