"""Agreement: the same numbers through every client and every API."""

from __future__ import annotations

from conformance.answers import Accepted, Observation, answer
from conformance.catalogue import scenario
from conformance.cluster import READ_COMMITTED, READ_UNCOMMITTED, StepFailed
from conformance.partition import VISIBLE_SECONDS, Partition
from conformance.second_client import SecondClient
from conformance.specs import EARLIEST, LATEST, MAX_TIMESTAMP, OffsetSpec, at

TWO_TRUTHS = "Two parts of one system see two different ends of the same partition."


@scenario("agree.versions", revision=2, impact=TWO_TRUTHS)
def test_confluent_kafka_is_told_the_same_as_the_wire(partition: Partition) -> None:
    _expect_of_both_clients(partition, LATEST, EARLIEST, at(1500), prefix="empty-")
    partition.produce_at(1000, 3000, 2000)
    newest = (MAX_TIMESTAMP,) if partition.story.facts.list_offsets[1] >= MAX_TIMESTAMP.since else ()
    _expect_of_both_clients(partition, LATEST, EARLIEST, *newest, at(1500), at(4000), prefix="")


def _expect_of_both_clients(partition: Partition, *specs: OffsetSpec, prefix: str) -> None:
    second = SecondClient(partition.broker.bootstrap, partition.broker.security)
    for spec in specs:
        wire = partition.ask(spec)
        if wire.silence:
            raise StepFailed(f"the wire client was not answered: {wire}")
        client = second.list_offsets(partition.topic, 0, spec)
        # An error is all that a client passes on of an answer that has one.
        names = ("error",) if wire.fields["error"] else ("error", "offset", "timestamp")
        same = Accepted({name: wire.fields[name] for name in names})
        asked = f"AdminClient.list_offsets {spec.name}, after the same on the wire"
        partition.check(f"{prefix}{spec.name}", asked, client, same)


@scenario("agree.latest-hw", impact=TWO_TRUTHS)
def test_latest_is_the_high_watermark_of_fetch(partition: Partition) -> None:
    partition.produce(3)
    high_watermark = partition.fetch(0).high_watermark
    partition.expect(LATEST, answer(offset=high_watermark))


@scenario("agree.latest-lso", impact=TWO_TRUTHS)
def test_latest_for_readers_of_committed_records_is_the_last_stable_offset(partition: Partition) -> None:
    partition.produce(3)
    partition.begin_transaction().produce_batch(4000, 5000)
    stable = partition.fetch(0, isolation=READ_COMMITTED).last_stable_offset
    partition.expect(LATEST, answer(offset=stable), isolation=READ_COMMITTED)


@scenario("agree.earliest-logstart", impact=TWO_TRUTHS)
def test_earliest_is_the_log_start_of_every_api(partition: Partition) -> None:
    partition.produce(10)
    deleted = partition.delete_records(5)
    partition.expect(EARLIEST, answer(offset=5))
    written = partition.produce(1)
    observed = Observation(
        {
            "delete_records": deleted.fields["low_watermark"],
            "fetch": partition.fetch(5).log_start_offset,
            "produce": written.fields["log_start_offset"],
        }
    )
    partition.check(
        "log-start", "log start in DeleteRecords, Fetch and Produce", observed,
        Accepted({"delete_records": 5, "fetch": 5, "produce": 5}),
    )  # fmt: skip


@scenario("agree.produce-latest", impact=TWO_TRUTHS)
def test_latest_after_an_acknowledgement_is_its_offset_plus_the_records(partition: Partition) -> None:
    partition.produce(2)
    base = partition.produce_batch(3000, 4000, 5000).fields["base_offset"]
    partition.expect(LATEST, answer(offset=base + 3))


@scenario("txn.open-ru", impact="Readers of all records miss those of open transactions.")
def test_an_open_transaction_is_below_latest_for_readers_of_all_records(partition: Partition) -> None:
    partition.produce(3)
    partition.begin_transaction().produce_batch(4000, 5000)
    partition.expect(LATEST, answer(offset=5), isolation=READ_UNCOMMITTED)


@scenario("txn.open-rc", impact="Readers of committed records wait for an offset that they may not read yet.")
def test_an_open_transaction_holds_latest_back_for_readers_of_committed_records(partition: Partition) -> None:
    partition.produce(3)
    partition.begin_transaction().produce_batch(4000, 5000)
    partition.expect(LATEST, answer(offset=3), isolation=READ_COMMITTED)


@scenario("txn.commit", impact="Offsets after a transaction are off by one.")
def test_a_commit_takes_one_offset(partition: Partition) -> None:
    _end_of_transaction(partition, commit=True)


@scenario("txn.abort", impact="Offsets after a transaction are off by one.")
def test_an_abort_takes_one_offset(partition: Partition) -> None:
    _end_of_transaction(partition, commit=False)


def _end_of_transaction(partition: Partition, *, commit: bool) -> None:
    partition.produce(3)
    transaction = partition.begin_transaction()
    transaction.produce_batch(4000, 5000)
    transaction.end(commit=commit)
    # The coordinator answers before it has written the marker.
    soon = VISIBLE_SECONDS
    partition.expect(LATEST, answer(offset=6), isolation=READ_COMMITTED, check="committed", within=soon)
    partition.expect(LATEST, answer(offset=6), check="uncommitted")
    written = partition.produce(1)
    partition.check("produce", "Produce one record", written, Accepted({"error": 0, "base_offset": 6}))
