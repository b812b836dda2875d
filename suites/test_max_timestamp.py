"""Max timestamp (-3, KIP-734): the record with the newest timestamp, wherever it is in the log."""

from __future__ import annotations

from conformance.answers import NOT_FOUND, answer, found, kafka_before
from conformance.batches import Codec
from conformance.catalogue import scenario
from conformance.cluster import READ_COMMITTED
from conformance.partition import Partition
from conformance.specs import MAX_TIMESTAMP, T

FRESHNESS = "A freshness check calls a partition stale that is not, or fresh that is not."

LAST_OF_BATCH = "KAFKA-16310, KAFKA-16342: before 3.8 the last offset of the batch that holds the newest record"


@scenario("max.empty", impact=FRESHNESS)
def test_an_empty_partition_has_no_newest_record(partition: Partition) -> None:
    partition.expect(MAX_TIMESTAMP, NOT_FOUND)


@scenario("max.monotone", impact=FRESHNESS)
def test_the_last_record_is_the_newest_when_times_only_grow(partition: Partition) -> None:
    partition.produce_at(100, 200, 300)
    partition.expect(MAX_TIMESTAMP, found(2, T + 300))


@scenario("max.unordered", impact=FRESHNESS)
def test_the_newest_record_need_not_be_the_last(partition: Partition) -> None:
    partition.produce_at(0, 1, 2, 3, 4, 6, 5)
    partition.expect(MAX_TIMESTAMP, found(5, T + 6))


@scenario("max.one-batch", impact=FRESHNESS)
def test_the_newest_record_is_found_inside_a_batch(partition: Partition) -> None:
    partition.produce_batch(100, 999, 200)
    partition.expect(
        MAX_TIMESTAMP, found(1, T + 999), found(2, T + 999).when(kafka_before(3, 8), LAST_OF_BATCH)
    )  # fmt: skip


@scenario("max.one-batch-compressed", impact=FRESHNESS)
def test_the_newest_record_is_found_inside_a_compressed_batch(partition: Partition) -> None:
    partition.produce_batch(100, 999, 200, codec=Codec.GZIP)
    partition.expect(
        MAX_TIMESTAMP, found(1, T + 999), found(2, T + 999).when(kafka_before(3, 8), LAST_OF_BATCH)
    )  # fmt: skip


@scenario("max.tie", impact=FRESHNESS)
def test_the_first_of_equally_new_records_is_the_answer(partition: Partition) -> None:
    partition.produce_at(5, 9, 9)
    partition.expect(MAX_TIMESTAMP, found(1, T + 9))


@scenario("max.tie-segments", impact=FRESHNESS)
def test_the_first_of_equally_new_records_is_the_answer_across_segments(partition: Partition) -> None:
    partition.created_with({"segment.ms": "500"})
    partition.produce_at(9000, 1000, 9000)
    partition.expect(MAX_TIMESTAMP, found(0, T + 9000))


@scenario("max.open-txn-rc", impact=FRESHNESS)
def test_the_newest_record_of_an_open_transaction_is_hidden_from_readers_of_committed_ones(
    partition: Partition,
) -> None:
    partition.produce_at(100)
    partition.begin_transaction().produce_batch(999)
    partition.expect(MAX_TIMESTAMP, found(1, T + 999), check="uncommitted")
    partition.expect(MAX_TIMESTAMP, NOT_FOUND, isolation=READ_COMMITTED, check="committed")


@scenario("max.after-delete-quirk", impact=FRESHNESS)
def test_a_deleted_newest_record_may_still_be_named(partition: Partition) -> None:
    partition.produce_at(999, 100)
    partition.delete_records(1)
    named, ideal = found(0, T + 999), found(1, T + 100).legal("the record that Kafka names is below earliest")
    partition.expect(MAX_TIMESTAMP, named, ideal)


@scenario("max.after-retention", impact=FRESHNESS)
def test_a_log_that_retention_emptied_has_no_newest_record(partition: Partition) -> None:
    partition.produce(2)
    partition.expire_everything()
    partition.expect(MAX_TIMESTAMP, NOT_FOUND)


@scenario("max.txn-marker", impact=FRESHNESS)
def test_a_transaction_marker_may_be_the_newest_record(partition: Partition) -> None:
    transaction = partition.begin_transaction()
    transaction.produce_batch(100)
    transaction.end_visibly(commit=True)
    partition.expect(
        MAX_TIMESTAMP, answer(offset=1), found(0, T + 100).legal("a marker is not a record that anybody reads")
    )


@scenario("max.agrees-with-scan", impact=FRESHNESS)
def test_the_newest_record_is_that_of_a_scan(partition: Partition) -> None:
    partition.produce_at(400, 100, 800, 300)
    partition.produce_batch(700)
    newest = max(partition.read_all(), key=lambda record: (record.timestamp, -record.offset))
    partition.expect(MAX_TIMESTAMP, found(newest.offset, newest.timestamp))
