"""Times (0 and above): the first record at or after a moment, with that record's own timestamp."""

from __future__ import annotations

import itertools

import pytest

from conformance.answers import NOT_FOUND, Accepted, Observation, answer, found
from conformance.batches import Codec
from conformance.catalogue import scenario
from conformance.partition import Partition
from conformance.specs import END_OF_TIME, LATEST, NO_TIMESTAMP, T, at, at_epoch
from conformance.tour import STORY_MS, stamped_now

REPLAY = "A replay that starts at a point in time skips records of that time, or reads the whole partition again."

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


@scenario("ts.exact", impact=REPLAY)
def test_a_time_that_is_a_records_own_finds_that_record(partition: Partition) -> None:
    partition.produce_at(100, 200, 300)
    partition.expect(at(200), found(1, T + 200))


@scenario("ts.exact-first", impact=REPLAY)
def test_the_time_of_the_first_record_finds_the_first_record(partition: Partition) -> None:
    partition.produce_at(100, 200, 300)
    partition.expect(at(100), found(0, T + 100))


@scenario("ts.exact-last", impact=REPLAY)
def test_the_time_of_the_last_record_finds_the_last_record(partition: Partition) -> None:
    partition.produce_at(100, 200, 300)
    partition.expect(at(300), found(2, T + 300))


@scenario("ts.between", impact=REPLAY)
def test_a_time_between_two_records_finds_the_later(partition: Partition) -> None:
    partition.produce_at(100, 200, 300)
    partition.expect(at(150), found(1, T + 200))


@scenario("ts.before-first", impact=REPLAY)
def test_a_time_before_all_records_finds_the_first(partition: Partition) -> None:
    partition.produce_at(100, 200, 300)
    partition.expect(at(1), found(0, T + 100))


@scenario("ts.zero", impact=REPLAY)
def test_time_zero_finds_the_first_record(partition: Partition) -> None:
    partition.produce_at(100, 200, 300)
    partition.expect(at_epoch(0), found(0, T + 100))


@scenario("ts.after-last", impact="A client that is told 0 reads the whole topic again; one that is told latest skips.")
def test_a_time_after_all_records_finds_nothing(partition: Partition) -> None:
    partition.produce_at(100, 200, 300)
    partition.expect(at(301), NOT_FOUND)


@scenario("ts.far-future", impact=REPLAY)
def test_the_end_of_time_finds_nothing(partition: Partition) -> None:
    partition.produce_at(100, 200, 300)
    partition.expect(END_OF_TIME, NOT_FOUND)


@scenario("ts.empty-partition", impact="A client fails on a partition that is only empty.")
def test_an_empty_partition_has_no_record_at_any_time(partition: Partition) -> None:
    partition.expect(at_epoch(0), NOT_FOUND)
    partition.expect(at(1000), NOT_FOUND)


@scenario("ts.returned-is-record-time", impact="A client that trusts the timestamp dates records wrongly.")
def test_the_answer_carries_the_records_time_and_not_the_asked_one(partition: Partition) -> None:
    partition.produce_at(100, 200, 300)
    partition.expect(at(101), answer(timestamp=T + 200))


@scenario("ts.duplicates", impact=REPLAY)
def test_equal_times_find_the_first_of_them(partition: Partition) -> None:
    partition.produce_at(10, 10, 10)
    partition.expect(at(10), found(0, T + 10))


@scenario("ts.within-batch", impact=REPLAY)
def test_a_record_inside_a_batch_is_found(partition: Partition) -> None:
    partition.produce_batch(0, 10, 10, 20)
    partition.expect(at(5), found(1, T + 10))
    partition.expect(at(10), found(1, T + 10))


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
@scenario("ts.within-compressed-batch", impact=REPLAY)
def test_a_record_inside_a_compressed_batch_is_found(partition: Partition, codec: Codec) -> None:
    partition.produce_batch(0, 10, 10, 20, codec=codec)
    for millis, accepted in ((5, found(1, T + 10)), (10, found(1, T + 10)), (11, found(3, T + 20))):
        partition.expect(at(millis), accepted, check=f"{codec.name.lower()}-at+{millis}")


@scenario("ts.batch-not-record-granularity", impact=REPLAY)
def test_the_record_is_found_and_not_the_batch_that_holds_it(partition: Partition) -> None:
    partition.produce_batch(*range(100, 200))
    partition.expect(at(150), found(50, T + 150))


@scenario("ts.unordered-in-batch", impact=REPLAY)
def test_times_out_of_order_in_a_batch_find_the_first_by_offset(partition: Partition) -> None:
    partition.produce_batch(30, 10, 20)
    partition.expect(at(15), found(0, T + 30))


@scenario("ts.unordered-across-batches", impact=REPLAY)
def test_times_that_go_back_find_the_first_by_offset(partition: Partition) -> None:
    partition.produce_at(100, 50, 200)
    partition.expect(at(60), found(0, T + 100))
    partition.expect(at(101), found(2, T + 200))
    partition.expect(at(50), found(0, T + 100))


@scenario("ts.high-then-low", impact=REPLAY)
def test_an_early_spike_is_not_skipped(partition: Partition) -> None:
    partition.produce_batch(10, 500)
    partition.produce_batch(20, 30)
    partition.expect(at(25), found(1, T + 500))


@scenario("ts.across-segments", impact=REPLAY)
def test_every_segment_boundary_is_found(partition: Partition) -> None:
    partition.created_with({"segment.ms": "500"})
    partition.produce_at(*(index * 1000 for index in range(8)))
    for index in range(1, 8):
        partition.expect(at(index * 1000), found(index, T + index * 1000))
        partition.expect(at(index * 1000 - 500), found(index, T + index * 1000))


@scenario("ts.no-timestamp-records", impact=REPLAY)
def test_a_record_without_a_timestamp_is_never_found_by_time(partition: Partition) -> None:
    partition.produce_batch(NO_TIMESTAMP - T)
    partition.expect(at_epoch(0), NOT_FOUND, answer(offset=0).legal("a broker may stamp such a record itself"))


@scenario("ts.log-append-time", impact=REPLAY)
def test_append_time_replaces_the_clients_time(partition: Partition) -> None:
    partition.created_with({"message.timestamp.type": "LogAppendTime"})
    partition.produce_at(100)
    stamp = stamped_now()
    assert stamp.low is not None
    assert stamp.high is not None
    partition.expect(at_epoch(stamp.low), answer(offset=0, timestamp=stamp), check="before")
    partition.expect(at_epoch(stamp.high + STORY_MS), NOT_FOUND, check="after")


@scenario("ts.log-append-time-batch", impact=REPLAY)
def test_all_records_of_a_batch_share_its_append_time(partition: Partition) -> None:
    partition.created_with({"message.timestamp.type": "LogAppendTime"})
    partition.produce_batch(100, 200, 300)
    stored = {record.timestamp for record in partition.read_all()}
    partition.check("stored", "Fetch the batch", Observation({"timestamps": len(stored)}), Accepted({"timestamps": 1}))
    partition.expect(at_epoch(min(stored)), found(0, min(stored)), check="at-append-time")


@scenario("ts.not-found-epoch", impact="A client remembers an epoch for an offset that it was not given.")
def test_an_answer_that_names_no_record_carries_no_epoch(partition: Partition) -> None:
    partition.produce_at(100, 200, 300)
    version = partition.cluster.highest("list_offsets")
    epoch = -1 if version >= 4 else None  # earlier versions have no such field
    partition.expect(at(301), answer(offset=-1, timestamp=-1, leader_epoch=epoch))


@scenario("ts.after-delete-records", impact=REPLAY)
def test_deleted_records_are_not_found(partition: Partition) -> None:
    partition.produce(10)
    partition.delete_records(5)
    partition.expect(at_epoch(0), found(5, T + 6000))


@scenario("ts.after-delete-all", impact=REPLAY)
def test_nothing_is_found_when_all_records_were_deleted(partition: Partition) -> None:
    partition.produce(10)
    partition.delete_records(-1)
    partition.expect(at_epoch(0), NOT_FOUND)


@scenario("ts.delete-mid-batch", impact=REPLAY)
def test_deletion_inside_the_matching_batch_is_respected(partition: Partition) -> None:
    partition.produce_batch(100, 200, 300)
    partition.delete_records(1)
    partition.expect(at(50), found(1, T + 200))
    partition.expect(at(100), found(1, T + 200))


@scenario("ts.lt-latest", impact="A reader is sent beyond the end of the log and waits.")
def test_a_time_never_finds_an_offset_at_or_above_latest(partition: Partition) -> None:
    partition.produce_at(500, 100, 900, 300)
    latest = partition.ask(LATEST).fields.get("offset", 0)
    for millis in range(0, 1000, 100):
        seen = partition.ask(at(millis))
        if not seen.fields.get("offset", latest) < latest or millis == 900:
            below = Accepted({"error": 0, "below_latest": 1})
            observed = Observation({**seen.fields, "below_latest": int(seen.fields.get("offset", latest) < latest)})
            partition.check("below-latest", f"ListOffsets at T+{millis}", observed, below)
            break


@scenario("ts.visible-after-ack", impact="Mimir's reader, told that nothing is newer, skipped records (PR 16161).")
def test_an_acknowledged_record_is_found_at_once(partition: Partition) -> None:
    partition.produce_at(1000)
    partition.expect(at(0), found(0, T + 1000))


@scenario("ts.monotone", impact="Block builders that probe hour by hour build overlapping blocks, or leave gaps.")
def test_a_later_time_never_finds_a_smaller_offset(partition: Partition) -> None:
    partition.produce_at(500, 100, 900, 300, 700)
    offsets = [partition.ask(at(millis)).fields.get("offset", -2) for millis in range(0, 1001, 50)]
    positions = [2**62 if offset == -1 else offset for offset in offsets]
    steps_back = sum(later < earlier for earlier, later in itertools.pairwise(positions))
    observed = Observation({"steps_back": steps_back, "unanswered": offsets.count(-2)})
    asked = "ListOffsets at 21 times, 50 ms apart"
    partition.check("steps-back", asked, observed, Accepted({"steps_back": 0, "unanswered": 0}))


@scenario("ts.result-is-first", impact=REPLAY)
def test_every_answer_equals_a_scan_of_the_log(partition: Partition) -> None:
    partition.produce_batch(500, 100, 900)
    partition.produce_batch(300, 700, codec=Codec.GZIP)
    partition.produce_at(50, 1200)
    records = partition.read_all()
    for millis in range(0, 1300, 100):
        first = next((record for record in records if record.timestamp >= T + millis), None)
        partition.expect(at(millis), found(first.offset, first.timestamp) if first else NOT_FOUND)
