"""Compaction: the last record of each key stays, and every offset keeps its meaning."""

from __future__ import annotations

import pytest
from logs import Log, done

from broker.log.batches import check_produced, read_header
from broker.refusal import Refusal
from conformance.batches import Codec, Producer, Record, decode_batches, encode_batch

COMPACTED = {"compact": True, "delete": False, "segment_ms": 500, "min_cleanable_dirty_ratio": 0.01}


def keyed(log: Log, *pairs: tuple[str, int]) -> None:
    for key, timestamp in pairs:
        log.append(Record(timestamp, key.encode(), key.encode()))


def test_the_last_record_of_each_key_stays_and_the_segment_being_written_is_left_alone() -> None:
    log = Log(**COMPACTED)
    keyed(log, ("a", 1000), ("b", 2000), ("a", 3000), ("c", 4000), ("c", 5000))
    log.compact()
    assert log.offsets() == [1, 2, 3, 4]
    assert (log.ends().start, log.ends().end) == (0, 5)
    assert log.at(0) == (1, 2000)


def test_a_topic_that_is_not_compacted_keeps_everything() -> None:
    log = Log(segment_ms=500)
    keyed(log, ("a", 1000), ("a", 2000), ("a", 3000))
    log.compact()
    assert log.offsets() == [0, 1, 2]


def test_too_little_new_is_no_reason_to_compact() -> None:
    log = Log(**COMPACTED | {"min_cleanable_dirty_ratio": 0.6})
    keyed(log, ("a", 1000), ("b", 2000), ("c", 3000), ("d", 4000))
    log.compact()
    keyed(log, ("a", 5000), ("z", 6000))
    log.compact()
    assert 0 in log.offsets()
    keyed(log, *((f"new-{number}", 7000 + number * 1000) for number in range(8)))
    log.compact()
    assert 0 not in log.offsets()


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_keeps_its_codec_and_span_when_some_of_its_records_go(codec: Codec) -> None:
    log = Log(**COMPACTED)
    log.append(Record(1000, b"1", b"a"), Record(1001, b"2", b"b"), Record(1002, b"3", b"a"), codec=codec)
    keyed(log, ("b", 2000), ("z", 3000))
    log.compact()
    assert log.offsets() == [2, 3, 4]
    header = read_header(log.read(0).data)
    assert (header.base_offset, header.last_offset, header.record_count) == (0, 2, 1)
    assert header.attributes & 7 == codec
    assert decode_batches(log.read(0).data)[0].value == b"3"


def test_a_read_inside_a_gap_goes_on_behind_it() -> None:
    log = Log(**COMPACTED)
    keyed(log, ("a", 1000), ("a", 2000), ("a", 3000), ("b", 4000), ("z", 5000))
    log.compact()
    assert read_header(log.read(0).data).base_offset == 2


def test_a_tombstone_stays_for_its_time_and_then_goes() -> None:
    log = Log(**COMPACTED, delete_retention_ms=1000)
    keyed(log, ("a", 1000))
    tombstone = encode_batch([Record(2000, None, b"a")])  # type: ignore[arg-type]
    done(log.log.append(check_produced(tombstone, 9, log.settings, log.now), tombstone, log.now))
    keyed(log, ("b", 3000), ("z", 4000))
    log.compact()
    assert log.offsets() == [1, 2, 3]
    log.compact(after_ms=500)
    assert log.offsets() == [1, 2, 3]
    log.compact(after_ms=1000)
    assert log.offsets() == [2, 3]


def test_records_of_aborted_transactions_go_and_markers_stay() -> None:
    log = Log(**COMPACTED)
    producer = Producer(1, 0, transactional=True)
    keyed(log, ("a", 1000))
    log.append(Record(2000, b"no", b"a"), producer=producer, sequence=0)
    log.end_transaction(producer, commit=False)
    keyed(log, ("z", log.now + 10_000))
    log.compact()
    assert log.offsets() == [0, 2, 3]


def test_nothing_at_or_above_an_open_transaction_is_compacted() -> None:
    log = Log(**COMPACTED)
    producer = Producer(1, 0, transactional=True)
    keyed(log, ("a", 1000), ("a", 2000))
    log.append(Record(3000, b"open", b"b"), producer=producer, sequence=0)
    keyed(log, ("a", 4000), ("a", 5000), ("z", 6000))
    log.compact()
    assert log.offsets() == [1, 2, 3, 4, 5]


def test_records_younger_than_the_lag_are_left_alone() -> None:
    log = Log(**COMPACTED, min_compaction_lag_ms=10_000)
    keyed(log, ("a", log.now - 20_000), ("a", log.now - 15_000), ("a", log.now - 5000), ("z", log.now))
    log.compact()
    assert log.offsets() == [1, 2, 3]


def test_a_compacted_topic_takes_no_record_without_a_key() -> None:
    with pytest.raises(Refusal, match="without a key"):
        Log(**COMPACTED).append(Record(1000))


def test_size_counts_what_is_left() -> None:
    log = Log(**COMPACTED)
    keyed(log, ("a", 1000), ("a", 2000), ("a", 3000), ("z", 4000))
    before = log.log.size()
    log.compact()
    assert log.log.size() == before // 2
