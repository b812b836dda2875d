"""Earliest (-2): the first offset that can be read, or the next one where nothing can."""

from __future__ import annotations

from conformance.answers import Accepted, Between, Observation, answer
from conformance.catalogue import scenario
from conformance.cluster import READ_COMMITTED, READ_UNCOMMITTED
from conformance.partition import Partition
from conformance.specs import EARLIEST, LATEST, NO_TIMESTAMP

START = "A reader that starts at this offset fails with OFFSET_OUT_OF_RANGE, or skips records that are there."


@scenario("earliest.empty-partition", impact=START)
def test_earliest_of_a_partition_nobody_wrote_to_is_zero(partition: Partition) -> None:
    partition.expect(EARLIEST, answer(offset=0))


@scenario("earliest.with-records", impact=START)
def test_earliest_is_the_first_record(partition: Partition) -> None:
    partition.produce(3)
    partition.expect(EARLIEST, answer(offset=0))


@scenario("earliest.timestamp-minus-one", impact="Clients take a timestamp for that of a record and seek by it.")
def test_earliest_carries_no_timestamp(partition: Partition) -> None:
    partition.produce(3)
    partition.expect(EARLIEST, answer(timestamp=NO_TIMESTAMP))


@scenario("earliest.after-delete-records", impact=START)
def test_earliest_moves_to_where_records_were_deleted_to(partition: Partition) -> None:
    partition.produce(10)
    partition.delete_records(5)
    partition.expect(EARLIEST, answer(offset=5))


@scenario("earliest.after-delete-all", impact=START)
def test_earliest_equals_latest_when_all_records_were_deleted(partition: Partition) -> None:
    partition.produce(10)
    partition.delete_records(-1)
    partition.expect(EARLIEST, answer(offset=10))


@scenario("earliest.after-retention-all", impact=START)
def test_earliest_of_a_log_that_retention_emptied_is_the_next_offset(partition: Partition) -> None:
    partition.produce(2)
    partition.expire_everything()
    partition.expect(EARLIEST, answer(offset=2))


@scenario("earliest.retention-then-produce", impact=START)
def test_the_first_record_after_an_emptied_log_is_the_earliest(partition: Partition) -> None:
    partition.produce(2)
    partition.expire_everything()
    written = partition.produce(1)
    partition.check("produce", "Produce one record", written, Accepted({"error": 0, "base_offset": 2}))
    partition.expect(EARLIEST, answer(offset=2))


@scenario("earliest.mid-batch", impact=START)
def test_earliest_can_be_inside_a_batch(partition: Partition) -> None:
    partition.produce_batch(*range(10))
    partition.delete_records(3)
    partition.expect(EARLIEST, answer(offset=3))
    fetched = partition.fetch(3)
    first = fetched.readable[0].offset if fetched.readable else -1
    observed = Observation({"error": fetched.error, "first": first})
    partition.check("fetch", "Fetch from offset 3", observed, Accepted({"error": 0, "first": 3}))


@scenario("earliest.le-latest", impact="A reader sees a log that ends before it begins and gives up.")
def test_earliest_is_never_above_latest(partition: Partition) -> None:
    for step in range(5):
        partition.produce(2)
        partition.delete_records(-1 if step % 2 else 2 * step)
        latest = partition.ask(LATEST).fields.get("offset", -1)
        partition.expect(EARLIEST, answer(offset=Between(0, latest)), check=f"step-{step}")


@scenario("earliest.first-fetchable", impact=START)
def test_a_fetch_at_earliest_returns_the_record_there(partition: Partition) -> None:
    partition.produce(4)
    partition.delete_records(1)
    start = partition.expect(EARLIEST, answer(offset=1)).fields.get("offset", 0)
    fetched = partition.fetch(start)
    observed = Observation({"error": fetched.error, "first": fetched.readable[0].offset if fetched.readable else -1})
    partition.check("fetch", f"Fetch from offset {start}", observed, Accepted({"error": 0, "first": start}))


@scenario("earliest.isolation-irrelevant", impact=START)
def test_an_open_transaction_does_not_move_earliest(partition: Partition) -> None:
    partition.begin_transaction().produce_batch(1000)
    for name, isolation in (("uncommitted", READ_UNCOMMITTED), ("committed", READ_COMMITTED)):
        partition.expect(EARLIEST, answer(offset=0), isolation=isolation, check=name)
