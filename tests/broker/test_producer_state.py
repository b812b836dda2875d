"""Idempotent and transactional producers, as one partition sees them."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode
from logs import NOW, Log

from broker.log.batches import read_header
from broker.refusal import Refusal
from conformance.batches import Producer, Record, decode_batches

ONE, TWO = Producer(1, 0), Producer(2, 0)
IN_TRANSACTION = Producer(1, 0, transactional=True)
OTHER_TRANSACTION = Producer(2, 0, transactional=True)


def refused(code: ErrorCode, log: Log, producer: Producer, sequence: int) -> None:
    end = log.ends().end
    with pytest.raises(Refusal) as refusal:
        log.append(Record(0), producer=producer, sequence=sequence)
    assert refusal.value.code is code
    assert log.ends().end == end


def test_a_batch_that_is_sent_again_is_answered_with_its_first_offset() -> None:
    log = Log()
    for sequence in range(7):
        assert log.append(Record(0), producer=ONE, sequence=sequence).base_offset == sequence
    for sequence in range(2, 7):  # the last five
        assert log.append(Record(0), producer=ONE, sequence=sequence).base_offset == sequence
    assert log.ends().end == 7
    refused(ErrorCode.out_of_order_sequence_number, log, ONE, 1)


def test_a_gap_in_the_sequence_is_refused() -> None:
    log = Log()
    log.append(Record(0), Record(1), producer=ONE, sequence=0)
    refused(ErrorCode.out_of_order_sequence_number, log, ONE, 3)
    assert log.append(Record(0), producer=ONE, sequence=2).base_offset == 2


def test_producers_do_not_disturb_each_other() -> None:
    log = Log()
    log.append(Record(0), producer=ONE, sequence=0)
    log.append(Record(0), producer=TWO, sequence=0)
    assert log.append(Record(0), producer=ONE, sequence=1).base_offset == 2


def test_sequences_start_over_after_the_largest() -> None:
    log = Log()
    log.append(Record(0), Record(1), producer=ONE, sequence=2**31 - 2)
    assert log.append(Record(0), producer=ONE, sequence=0).base_offset == 2
    log = Log()
    log.append(Record(0), Record(1), Record(2), producer=ONE, sequence=2**31 - 2)
    assert log.append(Record(0), producer=ONE, sequence=1).base_offset == 3


def test_a_producer_that_is_not_known_may_begin_anywhere() -> None:
    log = Log()
    assert log.append(Record(0), producer=ONE, sequence=42).base_offset == 0


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero() -> None:
    log = Log()
    log.append(Record(0), producer=Producer(1, 3), sequence=0)
    refused(ErrorCode.invalid_producer_epoch, log, Producer(1, 2), 1)
    refused(ErrorCode.out_of_order_sequence_number, log, Producer(1, 4), 1)
    assert log.append(Record(0), producer=Producer(1, 4), sequence=0).base_offset == 1


def test_a_producer_that_fell_silent_is_forgotten() -> None:
    log = Log(producer_expiration_ms=1000)
    log.append(Record(0), producer=ONE, sequence=0)
    log.expire(after_ms=1001)
    assert log.append(Record(0), producer=ONE, sequence=42).base_offset == 1


# -- transactions


def test_the_stable_offset_waits_for_the_oldest_transaction() -> None:
    log = Log()
    log.append_at(1)
    log.append(Record(2), producer=IN_TRANSACTION, sequence=0)
    log.append(Record(3), producer=OTHER_TRANSACTION, sequence=0)
    log.append_at(4)
    assert log.ends().stable == 1
    assert log.end_transaction(IN_TRANSACTION, commit=True) == 4
    assert log.ends().stable == 2
    assert log.end_transaction(OTHER_TRANSACTION, commit=True) == 5
    assert log.ends().stable == log.ends().end == 6


def test_committed_reads_stop_at_the_stable_offset() -> None:
    log = Log()
    log.append_at(1)
    log.append(Record(2), producer=IN_TRANSACTION, sequence=0)
    assert [record.offset for record in decode_batches(log.read(0, committed=True).data)] == [0]
    assert log.read(1, committed=True).data == b""
    assert len(decode_batches(log.read(0).data)) == 2


def test_committed_reads_are_told_of_the_aborted_transactions_in_them() -> None:
    log = Log()
    log.append(Record(1), producer=IN_TRANSACTION, sequence=0)
    log.end_transaction(IN_TRANSACTION, commit=False)
    log.append(Record(2), producer=OTHER_TRANSACTION, sequence=0)
    log.end_transaction(OTHER_TRANSACTION, commit=True)
    (aborted,) = log.read(0, committed=True).aborted
    assert (aborted.producer_id, aborted.first_offset, aborted.last_offset) == (1, 0, 1)
    assert log.read(2, committed=True).aborted == ()
    assert log.read(0).aborted == ()


def test_a_marker_is_a_control_batch_with_the_brokers_time() -> None:
    log = Log()
    log.append(Record(1), producer=IN_TRANSACTION, sequence=0)
    log.end_transaction(IN_TRANSACTION, commit=True)
    piece = log.read(1).data
    header = read_header(piece)
    assert header.control
    assert header.transactional
    assert (header.producer_id, header.max_timestamp) == (1, NOW)
    (record,) = decode_batches(piece)
    assert record.key == b"\x00\x00\x00\x01"
    assert record.control


def test_a_marker_of_a_fenced_epoch_is_refused() -> None:
    log = Log()
    log.append(Record(1), producer=Producer(1, 5, transactional=True), sequence=0)
    with pytest.raises(Refusal):
        log.end_transaction(Producer(1, 4), commit=True)
    assert log.ends().stable == 0


def test_a_marker_with_a_newer_epoch_fences_the_producer() -> None:
    log = Log()
    log.append(Record(1), producer=IN_TRANSACTION, sequence=0)
    log.end_transaction(Producer(1, 1), commit=False)
    refused(ErrorCode.invalid_producer_epoch, log, IN_TRANSACTION, 1)
    assert log.append(Record(0), producer=Producer(1, 1), sequence=0).base_offset == 2


def test_a_plain_batch_in_the_middle_of_a_transaction_is_refused() -> None:
    log = Log()
    log.append(Record(1), producer=IN_TRANSACTION, sequence=0)
    refused(ErrorCode.invalid_txn_state, log, ONE, 1)


def test_deletion_beyond_an_open_transaction_moves_the_stable_offset_with_the_start() -> None:
    log = Log()
    log.append(Record(1), Record(2), producer=IN_TRANSACTION, sequence=0)
    log.delete_up_to(-1)
    assert log.ends().stable == 2
    log.end_transaction(IN_TRANSACTION, commit=True)
    assert log.ends().stable == 3


def test_a_producer_with_an_open_transaction_is_not_forgotten() -> None:
    log = Log(producer_expiration_ms=1000)
    log.append(Record(1), producer=IN_TRANSACTION, sequence=0)
    log.expire(after_ms=5000)
    assert log.ends().stable == 0
