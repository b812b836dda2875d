"""What deletion leaves behind: retention (by the broker) and DeleteRecords (by a client)."""

from __future__ import annotations

from conformance.answers import NOT_FOUND, Accepted, Between, Observation, answer
from conformance.catalogue import scenario
from conformance.cluster import UNKNOWN_TOPIC_OR_PARTITION
from conformance.partition import OFFSET_OUT_OF_RANGE, Partition
from conformance.specs import EARLIEST, LATEST, at_epoch

REPLAY_OR_LOSS = "Consumers that come back after retention read everything again, or wait for offsets that are gone."


def low_watermark(offset: int) -> Accepted:
    return Accepted({"error": 0, "low_watermark": offset})


@scenario("ret.emptied", impact=REPLAY_OR_LOSS)
def test_earliest_and_latest_meet_at_the_next_offset_when_all_records_expired(partition: Partition) -> None:
    partition.produce(2)
    partition.expire_everything()
    partition.expect(LATEST, answer(offset=2))
    partition.expect(EARLIEST, answer(offset=2))


@scenario("ret.next-offset", impact=REPLAY_OR_LOSS)
def test_the_next_record_keeps_counting_after_retention(partition: Partition) -> None:
    partition.produce(2)
    partition.expire_everything()
    written = partition.produce(1)
    partition.check("produce", "Produce one record", written, Accepted({"error": 0, "base_offset": 2}))


@scenario("ret.ts", impact="Java clients fail with an IllegalArgumentException on an offset without a timestamp.")
def test_no_time_finds_a_record_that_expired(partition: Partition) -> None:
    partition.produce(2)
    partition.expire_everything()
    partition.expect(at_epoch(0), NOT_FOUND)


@scenario("ret.fetch-at-latest", impact="A consumer at the end of an emptied log hangs or fails.")
def test_a_fetch_at_the_end_of_an_emptied_log_waits_for_records(partition: Partition) -> None:
    partition.produce(2)
    partition.expire_everything()
    partition.check("fetch", "Fetch from offset 2", _fetched(partition, 2), _positions(2, 2))


@scenario("ret.fetch-expired", impact="A consumer that is behind reads nothing, and nobody tells it.")
def test_a_fetch_of_an_expired_offset_is_out_of_range(partition: Partition) -> None:
    partition.produce(2)
    partition.expire_everything()
    for offset in (0, 1):
        seen = _fetched(partition, offset)
        partition.check(
            f"fetch-{offset}", f"Fetch from offset {offset}", seen, Accepted({"error": OFFSET_OUT_OF_RANGE})
        )


@scenario("ret.size-based", impact=REPLAY_OR_LOSS)
def test_retention_by_size_leaves_a_readable_start(partition: Partition) -> None:
    partition.created_with({"segment.ms": "500"})
    partition.produce(10)
    partition.configure({"retention.bytes": "250"})
    partition.await_unreadable(0)
    start = partition.expect(EARLIEST, answer(offset=Between(1, 9))).fields.get("offset", 0)
    partition.expect(LATEST, answer(offset=10))
    fetched = partition.fetch(start)
    observed = Observation({"error": fetched.error, "first": fetched.records[0].offset if fetched.records else -1})
    partition.check("fetch", f"Fetch from offset {start}", observed, Accepted({"error": 0, "first": start}))


@scenario("delete.to-offset", impact="Deletion for a customer's request leaves records that were to go.")
def test_records_are_deleted_up_to_an_offset(partition: Partition) -> None:
    partition.produce(10)
    partition.check("delete", "DeleteRecords before 5", partition.delete_records(5), low_watermark(5))
    partition.expect(EARLIEST, answer(offset=5))
    partition.expect(LATEST, answer(offset=10))


@scenario("delete.high-watermark", impact="Deletion for a customer's request leaves records that were to go.")
def test_minus_one_deletes_everything(partition: Partition) -> None:
    partition.produce(10)
    partition.check("delete", "DeleteRecords before -1", partition.delete_records(-1), low_watermark(10))
    partition.expect(EARLIEST, answer(offset=10))
    partition.expect(LATEST, answer(offset=10))


@scenario("delete.beyond-hw", impact="A mistyped offset deletes what is there, or reserves what is not.")
def test_deleting_beyond_the_end_is_out_of_range(partition: Partition) -> None:
    partition.produce(10)
    seen = partition.cluster.delete_records(partition.topic, 0, 20)
    wanted = Accepted({"error": OFFSET_OUT_OF_RANGE, "low_watermark": -1})
    partition.check("delete", "DeleteRecords before 20 of 10", seen, wanted)
    partition.expect(EARLIEST, answer(offset=0))


@scenario("delete.below-start", revision=2, impact="A deletion that is repeated fails although nothing is wrong.")
def test_deleting_below_the_start_changes_nothing(partition: Partition) -> None:
    partition.produce(10)
    partition.delete_records(5)
    for before in (0, 5):
        asked = f"DeleteRecords before {before}, the start being 5"
        seen = partition.cluster.delete_records(partition.topic, 0, before)
        partition.check(f"delete-{before}", asked, seen, low_watermark(5))
    partition.expect(EARLIEST, answer(offset=5))


@scenario("delete.negative", impact="A mistyped offset deletes everything.")
def test_a_negative_offset_other_than_minus_one_is_out_of_range(partition: Partition) -> None:
    partition.produce(10)
    seen = partition.cluster.delete_records(partition.topic, 0, -2)
    wanted = Accepted({"error": OFFSET_OUT_OF_RANGE, "low_watermark": -1})
    partition.check("delete", "DeleteRecords before -2", seen, wanted)
    partition.expect(EARLIEST, answer(offset=0))


@scenario("delete.empty-partition", impact="A clean-up job fails on partitions that are only empty.")
def test_deleting_from_an_empty_partition_changes_nothing(partition: Partition) -> None:
    for before in (0, -1):
        seen = partition.cluster.delete_records(partition.topic, 0, before)
        partition.check(f"delete{before}", f"DeleteRecords before {before}", seen, low_watermark(0))


@scenario("delete.unknown", impact="A clean-up job believes that it deleted what it did not.")
def test_deleting_from_an_unknown_partition_is_an_error(partition: Partition) -> None:
    seen = partition.cluster.delete_records(partition.topic, 7, 0)
    wanted = Accepted({"error": UNKNOWN_TOPIC_OR_PARTITION, "low_watermark": -1})
    partition.check("delete", "DeleteRecords of partition 7 of 1", seen, wanted)


@scenario("delete.visible-at-once", impact="Readers are sent to records that are gone already.")
def test_a_deletion_is_visible_everywhere_at_once(partition: Partition) -> None:
    partition.produce(10)
    partition.delete_records(5)
    partition.expect(EARLIEST, answer(offset=5))
    partition.check("fetch-5", "Fetch from offset 5", _fetched(partition, 5), _positions(10, 5))
    gone = Accepted({"error": OFFSET_OUT_OF_RANGE})
    partition.check("fetch-4", "Fetch from offset 4", _fetched(partition, 4), gone)
    written = partition.produce(1)
    partition.check("produce", "Produce one record", written, Accepted({"error": 0, "log_start_offset": 5}))


@scenario("delete.then-produce", impact="Offsets are given twice: consumers skip the records that got them again.")
def test_deleting_everything_does_not_move_the_next_offset(partition: Partition) -> None:
    partition.produce(10)
    partition.delete_records(-1)
    written = partition.produce(1)
    partition.check("produce", "Produce one record", written, Accepted({"error": 0, "base_offset": 10}))


def _fetched(partition: Partition, offset: int) -> Observation:
    fetched = partition.fetch(offset)
    return Observation(
        {
            "error": fetched.error,
            "high_watermark": fetched.high_watermark,
            "log_start_offset": fetched.log_start_offset,
        }
    )


def _positions(high_watermark: int, log_start: int) -> Accepted:
    return Accepted({"error": 0, "high_watermark": high_watermark, "log_start_offset": log_start})
