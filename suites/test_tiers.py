"""What is local and what is tiered (-4, -5, -6): the story of seed 003, KIP-1005, with and without remote storage."""

from __future__ import annotations

from conformance.answers import NOT_FOUND, Accepted, Between, Observation, answer
from conformance.batches import Record, encode_batch
from conformance.catalogue import scenario
from conformance.cluster import UNKNOWN_TOPIC_OR_PARTITION
from conformance.partition import Partition
from conformance.specs import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    T,
    at_epoch,
)
from conformance.tour import State, committed_tour, tour, tour_of_errors

TIERED = {"remote.storage.enable": "true", "segment.ms": "500"}
"""Records a second apart each get their own segment, and a segment is uploaded once the next one is begun."""

WRONG_TIER = "A reader that wants only local data pulls from remote storage, or skips what is local."

STALE = "Kafka keeps the last uploaded offset in memory until a restart, although the segments are gone"

LOCAL_ONLY = "KAFKA-17552: Kafka looks for the newest record in local segments only"


@scenario("tier.local-untiered", impact=WRONG_TIER, sources=("seed 003, Public Interfaces",))
def test_without_tiering_the_earliest_local_offset_is_the_earliest(partition: Partition) -> None:
    partition.produce(10)
    partition.delete_records(3)
    partition.expect(EARLIEST_LOCAL, answer(offset=3, timestamp=-1))


@scenario("tier.latest-untiered", impact=WRONG_TIER, sources=("seed 003, Public Interfaces",))
def test_without_tiering_there_is_no_tiered_offset(partition: Partition) -> None:
    partition.produce(10)
    partition.expect(LATEST_TIERED, NOT_FOUND)


@scenario("tier.pending-untiered", impact=WRONG_TIER)
def test_without_tiering_nothing_waits_for_upload(partition: Partition) -> None:
    partition.produce(10)
    partition.expect(EARLIEST_PENDING_UPLOAD, NOT_FOUND)


@scenario("tour.tiered-nothing-uploaded", impact=WRONG_TIER)
def test_nothing_is_uploaded(partition: Partition) -> None:
    partition.created_with(TIERED)
    _await_remote_reads(partition)
    tour(partition, latest=0, earliest=0, records={}, prefix="empty-")
    partition.produce_at(1000)
    # An empty log is answered for without a look at remote storage; this one is not.
    _await_remote_reads(partition)
    tour(partition, latest=1, earliest=0, records={0: 1000}, pending=(answer(offset=0),))


@scenario("tour.tiered-some-uploaded", impact=WRONG_TIER)
def test_two_of_three_segments_are_uploaded(partition: Partition) -> None:
    _two_uploaded_of_three(partition)
    tour(
        partition,
        latest=3,
        earliest=0,
        records={0: 1000, 1: 2000, 2: 3000},
        tiered=(answer(offset=1),),
        pending=(answer(offset=2),),
    )


@scenario("tour.tiered-local-copies-gone", impact=WRONG_TIER)
def test_local_copies_of_uploaded_segments_are_gone(partition: Partition) -> None:
    _two_uploaded_of_three(partition)
    # By size, because by age the segment that is written to would go as well.
    partition.configure({"local.retention.bytes": "1"})
    partition.await_answer(EARLIEST_LOCAL, lambda offset: offset == 2, "local copies to be removed")
    after: State = {
        "latest": 3,
        "earliest": 0,
        "records": {0: 1000, 1: 2000, 2: 3000},
        "local": 2,
        "tiered": (answer(offset=1),),
        "pending": (answer(offset=2),),
    }
    tour(partition, **after)
    committed_tour(partition, **after)


@scenario("tour.tiered-all-remote", impact=WRONG_TIER)
def test_everything_is_remote(partition: Partition) -> None:
    _all_remote(partition, 1000, 2000, 3000)
    after: State = {
        "latest": 3,
        "earliest": 0,
        "records": {0: 1000, 1: 2000, 2: 3000},
        "newest": _newest_is_remote(2, 3000),
        "local": 3,
        "tiered": (answer(offset=2),),
    }
    tour(partition, **after)
    committed_tour(partition, **after)


@scenario("tour.tiered-all-remote-then-one", impact=WRONG_TIER)
def test_one_more_record_after_everything_became_remote(partition: Partition) -> None:
    _all_remote(partition, 1000, 2000, 3000)
    partition.produce_at(4000)
    partition.await_answer(EARLIEST_LOCAL, lambda offset: offset == 4, "the fourth record to become remote")
    tour(
        partition,
        latest=4,
        earliest=0,
        records={0: 1000, 1: 2000, 2: 3000, 3: 4000},
        newest=_newest_is_remote(3, 4000),
        local=4,
        tiered=(answer(offset=3),),
    )


@scenario("tour.tiered-deleted-to-the-end", impact=WRONG_TIER)
def test_all_remote_records_were_deleted(partition: Partition) -> None:
    _all_remote(partition, 1000, 2000, 3000, 4000)
    partition.delete_records(-1)
    tour(partition, latest=4, earliest=4, records={}, local=4, tiered=_stale(3))


@scenario("tour.tiered-retention-by-size", impact=WRONG_TIER)
def test_retention_by_size_removed_the_first_remote_segment(partition: Partition) -> None:
    _all_remote(partition, 1000, 2000, 3000, 4000)
    partition.configure({"retention.bytes": str(2 * len(encode_batch([Record(T)])) + 1)})
    partition.await_answer(EARLIEST, lambda offset: offset == 1, "the first remote segment to be removed")
    tour(
        partition,
        latest=4,
        earliest=1,
        records={1: 2000, 2: 3000, 3: 4000},
        newest=_newest_is_remote(3, 4000),
        local=4,
        tiered=(answer(offset=3),),
    )


@scenario("tour.tiered-retention-emptied", impact=WRONG_TIER)
def test_remote_retention_emptied_the_partition(partition: Partition) -> None:
    _all_remote(partition, 1000, 2000, 3000, 4000)
    partition.configure({"retention.ms": "1", "local.retention.ms": "-2"})
    partition.await_answer(EARLIEST, lambda offset: offset == 4, "remote retention to remove everything")
    tour(partition, latest=4, earliest=4, records={}, local=4, tiered=_stale(3))


@scenario("tour.tiered-open-transaction", impact=WRONG_TIER)
def test_an_open_transaction_stops_the_upload(partition: Partition) -> None:
    partition.created_with(TIERED)
    partition.produce_at(1000)
    partition.begin_transaction().produce_batch(2000)
    partition.produce_at(3000)
    partition.await_answer(LATEST_TIERED, lambda offset: offset == 0, "the first segment to be uploaded")
    _await_remote_reads(partition)
    tour(
        partition,
        latest=3,
        earliest=0,
        records={0: 1000, 1: 2000, 2: 3000},
        tiered=(answer(offset=0),),
        pending=(answer(offset=1),),
    )
    committed_tour(
        partition,
        latest=1,
        earliest=0,
        records={0: 1000},
        newest=(NOT_FOUND,),
        tiered=(answer(offset=0),),
    )


@scenario("tour.tiered-newest-is-remote", impact="A freshness check calls a partition stale that is not.")
def test_the_newest_record_is_remote(partition: Partition) -> None:
    _all_remote(partition, 1000, 9000, 2000, 3000, 9600)
    tour(
        partition,
        latest=5,
        earliest=0,
        records={0: 1000, 1: 9000, 2: 2000, 3: 3000, 4: 9600},
        newest=_newest_is_remote(4, 9600),
        local=5,
        tiered=(answer(offset=4),),
    )


@scenario("tour.tiered-topic-deleted", impact="Readers of a deleted topic are told offsets of remote data.")
def test_a_tiered_topic_that_was_deleted(partition: Partition) -> None:
    _two_uploaded_of_three(partition)
    partition.cluster.delete_topic(partition.topic)
    partition.await_gone()
    tour_of_errors(partition, UNKNOWN_TOPIC_OR_PARTITION)


@scenario("tour.tiered-restarted", impact="After maintenance, readers of remote data lose records or read them again.")
def test_a_restart_of_a_tiered_partition_moves_nothing(partition: Partition) -> None:
    _all_remote(partition, 1000, 2000, 3000)
    partition.restart_broker()
    partition.await_answer(LATEST_TIERED, lambda offset: offset == 2, "the broker to learn what is remote")
    _await_remote_reads(partition)
    tour(
        partition,
        latest=3,
        earliest=0,
        records={0: 1000, 1: 2000, 2: 3000},
        newest=_newest_is_remote(2, 3000),
        local=3,
        tiered=(answer(offset=2),),
        prefix="all-remote-",
    )
    partition.configure({"retention.ms": "1", "local.retention.ms": "-2"})
    partition.await_answer(EARLIEST, lambda offset: offset == 3, "remote retention to remove everything")
    partition.restart_broker()
    _await_remote_reads(partition)
    tour(partition, latest=3, earliest=3, records={}, local=3, prefix="emptied-")


@scenario(
    "tier.latest-inclusive", impact="A reader of remote data misses the last remote record, or reads one too many."
)
def test_the_tiered_offset_is_that_of_the_last_remote_record(partition: Partition) -> None:
    _two_uploaded_of_three(partition)
    partition.expect(LATEST_TIERED, answer(offset=1, timestamp=-1))


@scenario("tier.earliest-spans-remote", impact="Records that are only remote cannot be read.")
def test_earliest_includes_remote_records(partition: Partition) -> None:
    _all_remote(partition, 1000, 2000, 3000)
    partition.expect(EARLIEST, answer(offset=0))
    records = partition.read_all()
    observed = Observation({"first": records[0].offset if records else -1, "records": len(records)})
    partition.check("fetch", "Fetch from 0 to the end", observed, Accepted({"first": 0, "records": 3}))


@scenario(
    "tier.local-retention-keeps-earliest", impact="Local clean-up makes readers lose records that are still remote."
)
def test_removing_local_copies_does_not_move_earliest(partition: Partition) -> None:
    _two_uploaded_of_three(partition)
    partition.expect(EARLIEST, answer(offset=0), check="before")
    partition.configure({"local.retention.bytes": "1"})
    partition.await_answer(EARLIEST_LOCAL, lambda offset: offset == 2, "local copies to be removed")
    partition.expect(EARLIEST, answer(offset=0), check="after")


@scenario("tier.order-invariant", impact=WRONG_TIER)
def test_the_offsets_of_a_tiered_partition_are_in_order(partition: Partition) -> None:
    _two_uploaded_of_three(partition)
    latest = partition.ask(LATEST).fields.get("offset", -9)
    local = partition.ask(EARLIEST_LOCAL).fields.get("offset", -9)
    partition.expect(EARLIEST, answer(offset=Between(0, local)))
    partition.expect(EARLIEST_LOCAL, answer(offset=Between(0, latest)))
    partition.expect(LATEST_TIERED, answer(offset=Between(0, latest - 1)))


def _two_uploaded_of_three(partition: Partition) -> None:
    partition.created_with(TIERED)
    partition.produce_at(1000, 2000, 3000)
    partition.await_answer(LATEST_TIERED, lambda offset: offset == 1, "two segments to be uploaded")
    _await_remote_reads(partition)


def _all_remote(partition: Partition, *millis: int) -> None:
    """Everything written is uploaded, and no local copy is left."""
    partition.created_with(TIERED)
    partition.produce_at(*millis)
    partition.configure({"local.retention.ms": "1"})
    partition.await_answer(EARLIEST_LOCAL, lambda offset: offset == len(millis), "everything to become remote")
    _await_remote_reads(partition)


def _await_remote_reads(partition: Partition) -> None:
    """Wait until a time can be looked up: a broker that does not know yet what is remote answers an error."""
    partition.await_answer(at_epoch(0), lambda _offset: True, "remote storage to be ready for look-ups")


def _newest_is_remote(offset: int, millis: int) -> tuple[Accepted, ...]:
    return NOT_FOUND, answer(offset=offset, timestamp=T + millis).legal(LOCAL_ONLY)


def _stale(offset: int) -> tuple[Accepted, ...]:
    return answer(offset=offset), NOT_FOUND.legal(STALE)
