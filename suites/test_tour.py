"""Every offset question in every state that a partition can be brought into with one broker.

The states are those of the golden answers under tests/golden, so that what a broker answers today can be laid
beside what nine releases of Apache Kafka answered.
"""

from __future__ import annotations

import time

from conformance.answers import NOT_FOUND, Between, answer, found, kafka_before
from conformance.batches import Codec, Record, encode_batch
from conformance.catalogue import scenario
from conformance.cluster import UNKNOWN_TOPIC_OR_PARTITION
from conformance.partition import Partition
from conformance.specs import NO_TIMESTAMP, T, at, at_epoch
from conformance.tour import committed_tour, stamped_now, tour, tour_of_errors
from conformance.waiting import eventually

SMALL_SEGMENTS = {"segment.ms": "500"}
"""Kafka compares segment.ms with record timestamps, so records a second apart each get their own segment."""

COMPACTED = {"cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.01"}

LAST_OF_BATCH = "KAFKA-16310, KAFKA-16342: before 3.8 the last offset of the batch that holds the newest record"

READER = "A reader that starts from this answer skips records or reads them again."


@scenario("tour.empty", impact=READER)
def test_a_partition_nobody_wrote_to(partition: Partition) -> None:
    tour(partition, latest=0, earliest=0, records={})


@scenario("tour.one", impact=READER)
def test_one_record(partition: Partition) -> None:
    partition.produce_at(1000)
    tour(partition, latest=1, earliest=0, records={0: 1000})


@scenario("tour.two", impact=READER)
def test_two_records(partition: Partition) -> None:
    partition.produce_at(1000, 2000)
    records = {0: 1000, 1: 2000}
    tour(partition, latest=2, earliest=0, records=records)
    committed_tour(partition, latest=2, earliest=0, records=records)


@scenario("tour.retention-emptied", impact=READER)
def test_retention_emptied_the_partition(partition: Partition) -> None:
    partition.produce_at(1000, 2000)
    partition.expire_everything()
    tour(partition, latest=2, earliest=2, records={})


@scenario("tour.retention-then-third", impact=READER)
def test_a_third_record_after_retention_emptied_the_partition(partition: Partition) -> None:
    partition.produce_at(1000, 2000)
    partition.expire_everything()
    partition.produce_at(3000)
    tour(partition, latest=3, earliest=2, records={2: 3000})


@scenario("tour.four-segments", impact=READER)
def test_four_records_in_four_segments(partition: Partition) -> None:
    partition.created_with(SMALL_SEGMENTS)
    partition.produce_at(1000, 2000, 3000, 4000)
    tour(partition, latest=4, earliest=0, records={0: 1000, 1: 2000, 2: 3000, 3: 4000})


@scenario("tour.retention-by-size", impact=READER)
def test_retention_by_size_removed_the_first_segment(partition: Partition) -> None:
    partition.created_with(SMALL_SEGMENTS)
    partition.produce_at(1000, 2000, 3000, 4000)
    partition.configure({"retention.bytes": str(2 * len(encode_batch([Record(T)])) + 1)})
    partition.await_unreadable(0)
    tour(partition, latest=4, earliest=1, records={1: 2000, 2: 3000, 3: 4000})


@scenario("tour.deleted-to-the-middle", impact=READER)
def test_records_deleted_to_the_middle(partition: Partition) -> None:
    partition.produce_at(1000, 2000, 3000, 4000)
    partition.delete_records(2)
    tour(partition, latest=4, earliest=2, records={2: 3000, 3: 4000})


@scenario("tour.deleted-to-the-end", impact=READER)
def test_records_deleted_to_the_end(partition: Partition) -> None:
    partition.produce_at(1000, 2000, 3000, 4000)
    partition.delete_records(-1)
    tour(
        partition,
        latest=4,
        earliest=4,
        records={},
        newest=(found(3, T + 4000), NOT_FOUND.legal("the record that Kafka still names is below earliest")),
    )


@scenario("tour.deleted-to-the-end-then-one", impact=READER)
def test_one_more_record_after_all_were_deleted(partition: Partition) -> None:
    partition.produce_at(1000, 2000, 3000, 4000)
    partition.delete_records(-1)
    partition.produce_at(5000)
    tour(partition, latest=5, earliest=4, records={4: 5000})


@scenario("tour.deleted-inside-a-batch", impact=READER)
def test_records_deleted_to_the_middle_of_a_batch(partition: Partition) -> None:
    partition.produce_batch(1000, 2000, 3000, 4000)
    partition.delete_records(2)
    tour(partition, latest=4, earliest=2, records={2: 3000, 3: 4000})


@scenario("tour.newest-deleted", impact=READER)
def test_the_newest_record_was_deleted(partition: Partition) -> None:
    partition.produce_at(9000, 1000, 2000)
    partition.delete_records(1)
    tour(
        partition,
        latest=3,
        earliest=1,
        records={1: 1000, 2: 2000},
        newest=(found(0, T + 9000), found(2, T + 2000).legal("the record that Kafka still names is below earliest")),
    )


@scenario("tour.compacted", impact=READER)
def test_compaction_removed_the_first_record(partition: Partition) -> None:
    partition.created_with(COMPACTED)
    _write_keys(partition, ("a", 1000), ("b", 2000), ("a", 3000), ("c", 4000))
    _await_offsets(partition, [1, 2, 3])
    tour(partition, latest=4, earliest=0, records={1: 2000, 2: 3000, 3: 4000})


@scenario("tour.compacted-out-of-order", impact=READER)
def test_compaction_of_records_out_of_order(partition: Partition) -> None:
    partition.created_with(COMPACTED)
    _write_keys(partition, ("z", 1000), ("a", 9000), ("a", 9600), ("a", 9100), ("q", 10200), ("q", 10800))
    _await_offsets(partition, [0, 3, 4, 5])
    tour(partition, latest=6, earliest=0, records={0: 1000, 3: 9100, 4: 10200, 5: 10800})
    partition.expect(at(8000), found(3, T + 9100))
    partition.expect(at(9500), found(4, T + 10200))


@scenario("tour.out-of-order-batches", impact=READER)
def test_timestamps_out_of_order_across_batches(partition: Partition) -> None:
    partition.produce_at(3000, 1000, 2000)
    tour(partition, latest=3, earliest=0, records={0: 3000, 1: 1000, 2: 2000})


@scenario("tour.out-of-order-batch", impact=READER)
def test_timestamps_out_of_order_inside_a_batch(partition: Partition) -> None:
    partition.produce_batch(1000, 3000, 2000)
    newest = (found(1, T + 3000), found(2, T + 3000).when(kafka_before(3, 8), LAST_OF_BATCH))
    tour(partition, latest=3, earliest=0, records={0: 1000, 1: 3000, 2: 2000}, newest=newest)


@scenario("tour.out-of-order-gzip-batch", impact=READER)
def test_timestamps_out_of_order_inside_a_compressed_batch(partition: Partition) -> None:
    partition.produce_batch(1000, 3000, 2000, codec=Codec.GZIP)
    newest = (found(1, T + 3000), found(2, T + 3000).when(kafka_before(3, 8), LAST_OF_BATCH))
    tour(partition, latest=3, earliest=0, records={0: 1000, 1: 3000, 2: 2000}, newest=newest)


@scenario("tour.equal-timestamps", impact=READER)
def test_equal_timestamps(partition: Partition) -> None:
    partition.produce_batch(2000, 2000)
    partition.produce_batch(2000, 2000)
    newest = (found(0, T + 2000), found(1, T + 2000).when(kafka_before(3, 8), LAST_OF_BATCH))
    tour(partition, latest=4, earliest=0, records=dict.fromkeys(range(4), 2000), newest=newest)


@scenario("tour.out-of-order-segments", impact=READER)
def test_timestamps_out_of_order_across_segments(partition: Partition) -> None:
    partition.created_with(SMALL_SEGMENTS)
    partition.produce_at(1000, 9000, 2000, 3000)
    tour(partition, latest=4, earliest=0, records={0: 1000, 1: 9000, 2: 2000, 3: 3000})


@scenario("tour.record-without-timestamp", impact=READER)
def test_a_record_without_a_timestamp(partition: Partition) -> None:
    partition.produce_records([Record(NO_TIMESTAMP)])
    tour(partition, latest=1, earliest=0, records={0: NO_TIMESTAMP - T})


@scenario("tour.record-at-zero", impact=READER)
def test_a_record_at_the_beginning_of_time(partition: Partition) -> None:
    partition.produce_records([Record(0)])
    tour(partition, latest=1, earliest=0, records={0: -T})


@scenario("tour.append-time-batch", impact=READER)
def test_log_append_time_of_one_batch(partition: Partition) -> None:
    _append_time(partition, Codec.NONE)


@scenario("tour.append-time-gzip-batch", impact=READER)
def test_log_append_time_of_one_compressed_batch(partition: Partition) -> None:
    _append_time(partition, Codec.GZIP)


def _append_time(partition: Partition, codec: Codec) -> None:
    partition.created_with({"message.timestamp.type": "LogAppendTime"})
    partition.produce_batch(1000, 2000, 3000, codec=codec)
    stamp = stamped_now()
    newest = (
        answer(offset=0, timestamp=stamp),
        answer(offset=2, timestamp=stamp).when(kafka_before(3, 8), LAST_OF_BATCH),
    )
    tour(partition, latest=3, earliest=0, records=dict.fromkeys(range(3), stamp), newest=newest)


@scenario("tour.append-time-batches", impact=READER)
def test_log_append_time_of_three_batches(partition: Partition) -> None:
    partition.created_with({"message.timestamp.type": "LogAppendTime"})
    for _ in range(3):
        partition.produce_batch(1000)
        _await_next_millisecond()
    stamp = stamped_now()
    tour(
        partition,
        latest=3,
        earliest=0,
        records=dict.fromkeys(range(3), stamp),
        newest=(answer(offset=2, timestamp=stamp),),
    )


@scenario("tour.open-transaction", impact=READER)
def test_an_open_transaction_after_a_plain_record(partition: Partition) -> None:
    partition.produce_at(1000)
    partition.begin_transaction().produce_batch(2000, 3000)
    tour(partition, latest=3, earliest=0, records={0: 1000, 1: 2000, 2: 3000})
    committed_tour(partition, latest=1, earliest=0, records={0: 1000}, newest=(NOT_FOUND,))


@scenario("tour.open-transaction-then-plain", impact=READER)
def test_a_plain_record_after_an_open_transaction(partition: Partition) -> None:
    partition.produce_at(1000)
    partition.begin_transaction().produce_batch(2000, 3000)
    partition.produce_at(4000)
    tour(partition, latest=4, earliest=0, records={0: 1000, 1: 2000, 2: 3000, 3: 4000})
    committed_tour(partition, latest=1, earliest=0, records={0: 1000}, newest=(NOT_FOUND,))


@scenario("tour.committed-transaction", impact=READER)
def test_a_committed_transaction(partition: Partition) -> None:
    partition.produce_at(1000)
    transaction = partition.begin_transaction()
    transaction.produce_batch(2000, 3000)
    partition.produce_at(4000)
    transaction.end_visibly(commit=True)
    records: dict[int, int | Between] = {0: 1000, 1: 2000, 2: 3000, 3: 4000, 4: stamped_now()}
    tour(partition, latest=5, earliest=0, records=records)
    committed_tour(partition, latest=5, earliest=0, records=records)


@scenario("tour.aborted-transaction", impact=READER)
def test_an_aborted_transaction(partition: Partition) -> None:
    partition.produce_at(1000)
    transaction = partition.begin_transaction()
    transaction.produce_batch(2000, 3000)
    transaction.end_visibly(commit=False)
    records: dict[int, int | Between] = {0: 1000, 1: 2000, 2: 3000, 3: stamped_now()}
    tour(partition, latest=4, earliest=0, records=records)
    committed_tour(partition, latest=4, earliest=0, records=records)


@scenario("tour.open-transaction-first", impact=READER)
def test_an_open_transaction_from_the_first_record(partition: Partition) -> None:
    partition.begin_transaction().produce_batch(1000, 2000)
    tour(partition, latest=2, earliest=0, records={0: 1000, 1: 2000})
    committed_tour(partition, latest=0, earliest=0, records={})


@scenario("tour.open-transaction-deleted", impact=READER)
def test_records_of_an_open_transaction_were_deleted(partition: Partition) -> None:
    transaction = partition.begin_transaction()
    transaction.produce_batch(1000, 2000)
    partition.delete_records(-1)
    still_named = (found(1, T + 2000), NOT_FOUND.legal("the record that Kafka still names is below earliest"))
    tour(partition, latest=2, earliest=2, records={}, newest=still_named)
    committed_tour(partition, latest=2, earliest=2, records={}, newest=still_named)


@scenario("tour.deleted-transaction-committed", impact=READER)
def test_a_transaction_committed_after_its_records_were_deleted(partition: Partition) -> None:
    transaction = partition.begin_transaction()
    transaction.produce_batch(1000, 2000)
    partition.delete_records(-1)
    transaction.end_visibly(commit=True)
    # Kafka searches the segment of the deleted records, in vain, until the next retention check removes it.
    partition.await_answer(at_epoch(0), lambda offset: offset == 2, "the deleted segment to be removed")
    records = {2: stamped_now()}
    tour(partition, latest=3, earliest=2, records=records)
    committed_tour(partition, latest=3, earliest=2, records=records)


@scenario("tour.topic-recreated", impact=READER)
def test_a_topic_that_was_deleted_and_created_again(partition: Partition) -> None:
    partition.produce_batch(1000, 2000)
    partition.recreate()
    tour(partition, latest=0, earliest=0, records={})


@scenario("tour.topic-deleted", impact=READER)
def test_a_topic_that_was_deleted(partition: Partition) -> None:
    partition.produce_batch(1000, 2000)
    partition.cluster.delete_topic(partition.topic)
    partition.await_gone()
    tour_of_errors(partition, UNKNOWN_TOPIC_OR_PARTITION)


@scenario("tour.unknown-topic", impact=READER)
def test_a_topic_that_never_was(partition: Partition) -> None:
    partition.point_at(partition.unused_topic_name())
    tour_of_errors(partition, UNKNOWN_TOPIC_OR_PARTITION)


@scenario("tour.unknown-partition", impact=READER)
def test_a_partition_beyond_the_last(partition: Partition) -> None:
    partition.point_at(partition.topic, 7)
    tour_of_errors(partition, UNKNOWN_TOPIC_OR_PARTITION)


@scenario("tour.negative-partition", impact=READER)
def test_a_partition_below_the_first(partition: Partition) -> None:
    partition.point_at(partition.topic, -1)
    tour_of_errors(partition, UNKNOWN_TOPIC_OR_PARTITION)


@scenario("tour.invalid-topic-name", impact=READER)
def test_a_topic_name_that_cannot_be(partition: Partition) -> None:
    partition.point_at("no/such topic!")
    tour_of_errors(partition, UNKNOWN_TOPIC_OR_PARTITION)


@scenario("tour.empty-topic-name", impact=READER)
def test_an_empty_topic_name(partition: Partition) -> None:
    partition.point_at("")
    tour_of_errors(partition, UNKNOWN_TOPIC_OR_PARTITION)


def _await_next_millisecond() -> None:
    """Two appends within one millisecond would tie, and then the first of them is the newest."""
    started = time.time_ns() // 1_000_000
    eventually(lambda: time.time_ns() // 1_000_000, lambda now: now > started, reason="the clock to move", seconds=1)


def _write_keys(partition: Partition, *keyed: tuple[str, int]) -> None:
    for key, millis in keyed:
        partition.produce_records([Record(T + millis, key=key.encode())])


def _await_offsets(partition: Partition, offsets: list[int]) -> None:
    """Wait until compaction has left exactly these offsets. It never touches the segment being written."""
    eventually(
        lambda: [record.offset for record in partition.read_all()],
        lambda seen: seen == offsets,
        reason=f"compaction to leave the offsets {offsets}",
        seconds=partition.broker.patience_seconds,
    )
