"""The memory engine's log: offsets, segments, times, deletion and retention."""

from __future__ import annotations

import pytest
from crc32c import crc32c
from kio.schema.errors import ErrorCode
from logs import NOW, Log, done

from broker.log.batches import LOG_APPEND_TIME, read_header
from broker.refusal import Refusal
from conformance.batches import Codec, Record, decode_batches, encode_batch

BATCH = len(encode_batch([Record(0)]))


def test_a_new_log_begins_and_ends_at_zero() -> None:
    ends = Log().ends()
    assert (ends.start, ends.stable, ends.end, ends.leader_epoch, ends.start_epoch) == (0, 0, 0, 0, 0)


def test_offsets_follow_each_other_across_batches() -> None:
    log = Log()
    assert [log.append(Record(1), Record(2)).base_offset for _ in range(3)] == [0, 2, 4]
    assert log.ends().end == 6


def test_a_batch_comes_back_as_it_was_but_for_its_place() -> None:
    log = Log(leader_epoch=5)
    log.append(Record(1))
    log.append(Record(2, b"value", b"key"), codec=Codec.ZSTD)
    stored, sent = log.read(1).data, encode_batch([Record(2, b"value", b"key")], codec=Codec.ZSTD)
    assert stored[16:] == sent[16:]
    assert (read_header(stored).base_offset, read_header(stored).leader_epoch) == (1, 5)
    assert decode_batches(stored)[0].value == b"value"


def test_append_time_is_in_the_batch_and_its_checksum_holds() -> None:
    log = Log(log_append_time=True)
    appended = log.append(Record(1), Record(2))
    stored = log.read(0).data
    assert appended.append_time == read_header(stored).max_timestamp == NOW
    assert read_header(stored).attributes & LOG_APPEND_TIME
    assert [record.timestamp for record in decode_batches(stored)] == [NOW, NOW]
    assert log.at(0) == log.newest() == (0, NOW)


# -- reading


def test_a_read_in_the_middle_of_a_batch_returns_the_whole_batch() -> None:
    log = Log()
    log.append(*(Record(each) for each in range(5)))
    assert read_header(log.read(3).data).base_offset == 0


def test_a_read_returns_whole_batches_up_to_its_limit_and_one_at_least() -> None:
    log = Log()
    log.append_at(*range(10))
    assert len(log.read(0, max_bytes=1).data) == BATCH
    assert len(log.read(0, max_bytes=BATCH * 3).data) == BATCH * 3
    assert len(log.read(0, max_bytes=BATCH * 4 - 1).data) == BATCH * 3
    assert len(log.read(4).data) == BATCH * 6


def test_a_read_at_the_end_is_empty_and_beyond_it_out_of_range() -> None:
    log = Log()
    log.append_at(1, 2)
    assert log.read(2).data == b""
    for offset in (-1, 3):
        with pytest.raises(Refusal) as refused:
            log.read(offset)
        assert refused.value.code is ErrorCode.offset_out_of_range


def test_a_watcher_is_told_of_every_append_until_it_stops() -> None:
    log = Log()
    told: list[int] = []
    stop = log.log.watch(lambda: told.append(1))
    log.append_at(1, 2)
    stop()
    log.append_at(3)
    assert len(told) == 2


# -- segments


def test_a_segment_ends_when_a_record_is_later_than_its_first_by_segment_ms() -> None:
    log = Log(segment_ms=500)
    log.append_at(1000, 1500, 1501, 1000, 3000)
    assert [len(log.read(offset).data) // BATCH for offset in (0, 2, 4)] == [2, 2, 1]


def test_a_segment_ends_when_it_would_grow_beyond_segment_bytes() -> None:
    log = Log(segment_bytes=2 * BATCH)
    log.append_at(*range(5))
    assert [len(log.read(offset).data) // BATCH for offset in (0, 2, 4)] == [2, 2, 1]
    assert log.offsets() == [0, 1, 2, 3, 4]


def test_a_batch_larger_than_a_segment_gets_one_of_its_own() -> None:
    log = Log(segment_bytes=10)
    log.append_at(1, 2)
    assert log.offsets() == [0, 1]


# -- times


def test_the_first_record_that_is_not_older_is_found() -> None:
    log = Log(segment_ms=1000)
    log.append_at(1000, 500, 3000, 2000, 9000)
    assert log.at(0) == (0, 1000)
    assert log.at(1000) == (0, 1000)
    assert log.at(1001) == (2, 3000)
    assert log.at(3001) == (4, 9000)
    assert log.at(9001) is None


@pytest.mark.parametrize("codec", list(Codec))
def test_a_record_inside_a_batch_is_found_whatever_its_codec(codec: Codec) -> None:
    log = Log()
    log.append(Record(10), Record(30), Record(20), codec=codec)
    assert log.at(15) == (1, 30)
    assert log.newest() == (1, 30)


def test_deleted_records_are_not_found_even_in_a_batch_that_stays() -> None:
    log = Log()
    log.append(Record(10), Record(90), Record(30), Record(40))
    log.delete_up_to(2)
    assert log.at(0) == (2, 30)
    assert log.at(35) == (3, 40)
    assert log.at(50) is None


def test_a_record_is_found_behind_a_segment_whose_newest_was_deleted() -> None:
    log = Log(segment_ms=1000)
    log.append_at(9000, 9100, 3000)
    log.append_at(20_000)
    log.delete_up_to(2)
    assert log.at(8000) == (3, 20_000)


def test_the_newest_record_is_the_first_of_the_largest_time() -> None:
    log = Log(segment_ms=1000)
    assert log.newest() is None
    log.append_at(5, 9000, 100, 9000)
    assert log.newest() == (1, 9000)


def test_the_newest_record_is_named_until_its_segment_is_gone() -> None:
    log = Log(segment_ms=1000)
    log.append_at(1000, 9000, 10_500)
    log.delete_up_to(-1)
    log.expire()
    assert log.newest() == (2, 10_500)


def test_a_record_without_a_time_is_the_newest_of_its_kind_and_found_by_none() -> None:
    log = Log()
    log.append(Record(-1))
    assert log.newest() == (0, -1)
    assert log.at(0) is None


def test_a_time_that_no_record_has_is_searched_for_in_vain_without_harm() -> None:
    log = Log()
    lying = bytearray(encode_batch([Record(10), Record(20)]))
    lying[35:43] = (10**12).to_bytes(8, "big")  # a largest timestamp that is none of its records'
    lying[17:21] = crc32c(bytes(lying[21:])).to_bytes(4, "big")
    done(log.log.append(read_header(lying), bytes(lying), NOW))
    log.append_at(30)
    assert log.at(25) == (2, 30)
    assert log.newest() == (1, 10**12)


# -- deletion and retention


def test_deletion_moves_the_start_and_never_back() -> None:
    log = Log()
    log.append_at(*range(10))
    assert log.delete_up_to(5) == 5
    assert log.delete_up_to(3) == 5
    assert log.delete_up_to(-1) == 10
    assert log.ends().end == 10
    assert log.append(Record(1)).base_offset == 10


@pytest.mark.parametrize("offset", [-2, 11])
def test_deletion_outside_the_log_is_refused(offset: int) -> None:
    log = Log()
    log.append_at(*range(10))
    with pytest.raises(Refusal) as refused:
        log.delete_up_to(offset)
    assert refused.value.code is ErrorCode.offset_out_of_range


def test_retention_by_time_drops_old_segments_and_the_last_one_too() -> None:
    log = Log(segment_ms=1000, retention_ms=10_000)
    log.append_at(NOW - 20_000, NOW - 15_000, NOW - 5000)
    log.expire()
    assert log.offsets() == [2]
    log.expire(after_ms=6000)
    assert (log.ends().start, log.ends().end, log.log.size()) == (3, 3, 0)
    assert log.newest() is None
    assert log.append(Record(NOW)).base_offset == 3


def test_retention_by_time_counts_from_the_write_where_records_have_no_time() -> None:
    log = Log(retention_ms=10_000)
    log.append(Record(-1))
    log.expire(after_ms=5000)
    assert log.offsets() == [0]
    log.expire(after_ms=6000)
    assert log.offsets() == []


def test_retention_by_size_keeps_at_least_the_bytes_it_is_told_to() -> None:
    log = Log(segment_bytes=BATCH, retention_bytes=2 * BATCH + 1)
    log.append_at(*range(5))
    log.expire()
    assert log.offsets() == [2, 3, 4]
    assert log.log.size() == 3 * BATCH


def test_retention_for_ever_drops_nothing() -> None:
    log = Log(segment_ms=1)
    log.append_at(0, 1000, 2000)
    log.expire(after_ms=10**12)
    assert log.offsets() == [0, 1, 2]


def test_a_log_that_is_only_compacted_does_not_expire() -> None:
    log = Log(retention_ms=1, delete=False, compact=True)
    log.append(Record(0, key=b"k"))
    log.expire()
    assert log.offsets() == [0]


def test_new_settings_are_followed_from_then_on() -> None:
    log = Log()
    log.append_at(0)
    log.configure(retention_ms=1)
    log.expire()
    assert log.offsets() == []


def test_segments_below_the_start_are_freed() -> None:
    log = Log(segment_bytes=BATCH)
    log.append_at(*range(5))
    log.delete_up_to(3)
    assert log.log.size() == 5 * BATCH
    log.expire()
    assert log.log.size() == 2 * BATCH
    assert log.offsets() == [3, 4]
