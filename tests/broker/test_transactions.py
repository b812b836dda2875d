"""The transaction coordinator by itself: epochs, fencing, and what ends a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from kio.schema.errors import ErrorCode

from broker.broker import Broker
from broker.log.batches import read_header
from broker.refusal import Refusal
from broker.transactions import LAST_EPOCH, MAX_IDS
from conformance.batches import Producer, Record, encode_batch

V = TypeVar("V")
ID = "orders"
PARTITION = ("t", 0)


def done(coroutine: Coroutine[Any, Any, V]) -> V:
    return asyncio.run(coroutine)


class Coordinator:
    """The transactions of a broker with one topic, called without `await`."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.broker.topics.create("t", 1, {})
        self.transactions = self.broker.transactions

    def init(self, producer_id: int = -1, epoch: int = -1, *, name: str | None = ID, now: int = 0) -> tuple[int, int]:
        return done(self.transactions.init_producer(name, 1000, producer_id, epoch, now))

    def add(self, producer: tuple[int, int], *, now: int = 0) -> None:
        self.transactions.add_partitions(ID, *producer, {PARTITION}, now)

    def end(self, producer: tuple[int, int], *, commit: bool = True) -> None:
        done(self.transactions.end(ID, *producer, commit=commit, now=0))

    def log_end(self) -> int:
        log = self.broker.topics.log(*PARTITION)
        assert log is not None
        return done(log.ends()).end


def refused(code: ErrorCode, call: Any, *arguments: Any, **named: Any) -> None:
    with pytest.raises(Refusal) as refusal:
        call(*arguments, **named)
    assert refusal.value.code is code


def test_a_transactional_id_keeps_its_producer_id_and_counts_epochs() -> None:
    some = Coordinator()
    assert [some.init() for _ in range(3)] == [(0, 0), (0, 1), (0, 2)]
    assert some.init(name="other") == (1, 0)


def test_after_the_last_epoch_there_is_a_new_producer_id() -> None:
    some = Coordinator()

    async def use_up_all_epochs() -> tuple[int, int]:
        for _ in range(LAST_EPOCH):
            await some.transactions.init_producer(ID, 1000, -1, -1, 0)
        return await some.transactions.init_producer(ID, 1000, -1, -1, 0)

    assert done(use_up_all_epochs()) == (0, LAST_EPOCH)
    assert some.init() == (1, 0)


def test_an_older_epoch_may_do_nothing() -> None:
    some = Coordinator()
    old, new = some.init(), some.init()
    refused(ErrorCode.producer_fenced, some.add, old)
    refused(ErrorCode.producer_fenced, some.end, old)
    refused(ErrorCode.producer_fenced, some.init, *old)
    refused(ErrorCode.invalid_producer_epoch, some.transactions.check_write, ID, *old, PARTITION, 0, may_add=True)
    some.add(new)
    some.transactions.check_write(ID, *new, PARTITION, 0, may_add=False)


def test_another_producer_id_is_not_the_owner() -> None:
    some = Coordinator()
    some.init()
    refused(ErrorCode.invalid_producer_id_mapping, some.add, (77, 0))


def test_a_transaction_ends_once_and_a_repeated_end_is_answered_alike() -> None:
    some = Coordinator()
    producer = some.init()
    refused(ErrorCode.invalid_txn_state, some.end, producer)
    some.add(producer)
    some.end(producer)
    some.end(producer)
    refused(ErrorCode.invalid_txn_state, some.end, producer, commit=False)
    assert some.log_end() == 1  # one marker


def test_a_new_epoch_aborts_what_the_old_one_left_open() -> None:
    some = Coordinator()
    some.add(some.init())
    some.init()
    assert some.log_end() == 1


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() -> None:
    some = Coordinator()
    producer = some.init()
    some.add(producer, now=0)
    done(some.transactions.expire(1000))
    assert some.log_end() == 0
    done(some.transactions.expire(1001))
    assert some.log_end() == 1
    refused(ErrorCode.producer_fenced, some.end, producer)


def test_a_topic_that_was_deleted_does_not_keep_a_transaction_from_ending() -> None:
    some = Coordinator()
    producer = some.init()
    some.add(producer)
    topic = some.broker.topics.get("t")
    assert topic is not None
    some.broker.topics.delete(topic)
    some.end(producer)


def test_a_made_up_epoch_in_a_partition_does_not_keep_a_transaction_from_ending() -> None:
    some = Coordinator()
    producer = some.init()
    some.add(producer)
    log = some.broker.topics.log(*PARTITION)
    assert log is not None
    batch = encode_batch([Record(0)], producer=Producer(producer[0], 99), base_sequence=0)
    done(log.append(read_header(batch), batch, 0))
    some.end(producer)
    some.add(producer)


def test_an_id_that_nobody_used_for_a_week_starts_over() -> None:
    some = Coordinator()
    some.init()
    some.init()
    done(some.transactions.expire(8 * 24 * 3600 * 1000))
    assert some.init() == (1, 0)


def test_made_up_ids_are_only_taken_up_to_a_bound() -> None:
    some = Coordinator()

    async def fill() -> None:
        for number in range(MAX_IDS):
            await some.transactions.init_producer(str(number), 1000, -1, -1, 0)

    done(fill())
    refused(ErrorCode.policy_violation, some.init)
