"""Committed offsets: where a consumer group goes on.

Commits are made without joining the group, as block builders do that are told what to read. Not required: what a
coordinator keeps beside them, and for how long.
"""

from __future__ import annotations

from conformance.answers import Accepted, Observation
from conformance.catalogue import scenario
from conformance.cluster import NotSupported, require
from conformance.partition import Partition
from conformance.second_client import read_in_group
from conformance.specs import EARLIEST, LATEST, T

NONE = Accepted({"error": 0, "committed_offset": -1})
OFFSET_OUT_OF_RANGE = 1
OFFSET_METADATA_TOO_LARGE = 12


@scenario("commit.none", impact="A new group reads the whole topic, whatever its reset policy says.")
def test_a_group_that_never_committed_has_no_offset(partition: Partition) -> None:
    partition.produce(3)
    _expect_committed(partition, _new_group(partition), NONE, check="offset")


@scenario("commit.roundtrip", impact="A group goes on at another record than the one it stopped at.")
def test_what_was_committed_is_told(partition: Partition) -> None:
    group = _new_group(partition)
    _commit(partition, group, 44, metadata="m")
    seen = partition.cluster.committed_offset(group, partition.topic, 0, metadata="m")
    wanted = Accepted({"error": 0, "committed_offset": 44, "same_metadata": 1})
    partition.check("offset", "OffsetFetch after a commit of 44", seen, wanted)


@scenario("commit.zero", impact="A group that committed the beginning starts at the end instead, and skips everything.")
def test_zero_is_a_commit(partition: Partition) -> None:
    partition.produce(3)
    group = _new_group(partition)
    _commit(partition, group, 0)
    _expect_committed(partition, group, Accepted({"error": 0, "committed_offset": 0}), check="offset")


@scenario("commit.resume-at", impact="A group that goes on repeats a record, or skips one.")
def test_a_committed_offset_is_the_next_to_be_read(partition: Partition) -> None:
    partition.produce(10)
    _resume_at(partition, _new_group(partition), 5, T + 6000)


@scenario("commit.sparse-neighbour", impact="A group that goes on after a gap repeats a record, or skips one.")
def test_each_record_can_be_gone_on_at_whatever_lies_before_it(partition: Partition) -> None:
    """The offsets are those that the broker gave: neighbours in Kafka, and far apart where time is part of them."""
    partition.produce_at(1000, 2000, 3_600_000)
    group = _new_group(partition)
    for record in partition.read_all():
        _resume_at(partition, group, record.offset, record.timestamp)


@scenario("commit.no-plus-one-on-absent", impact="A new group reads from 0, which is gone, and stops with an error.")
def test_a_group_without_a_commit_starts_where_the_log_does(partition: Partition) -> None:
    partition.produce(12)
    partition.delete_records(10)
    partition.expect(EARLIEST, Accepted({"error": 0, "offset": 10}))
    broker, group = partition.broker, _new_group(partition)
    _expect_committed(partition, group, NONE, check="offset")
    first, second = read_in_group(broker.bootstrap, broker.security, group, partition.topic, 2, subscribe=False)
    observed = Observation({"first": first, "second": second})
    partition.check("start", "consume, from the earliest", observed, Accepted({"first": 10, "second": 11}))


@scenario("commit.consumed-not-committed", impact="Records that were delivered and lost in a crash are never read.")
def test_what_was_read_and_not_committed_is_read_again(partition: Partition) -> None:
    partition.produce(3)
    broker, group = partition.broker, _new_group(partition)
    read_in_group(broker.bootstrap, broker.security, group, partition.topic, 3, subscribe=True)
    _expect_committed(partition, group, NONE, check="offset")


@scenario("commit.backwards", impact="An operator who rewinds a group sees it go on as if nothing had been said.")
def test_a_commit_may_go_back(partition: Partition) -> None:
    group = _new_group(partition)
    _commit(partition, group, 10)
    _commit(partition, group, 4)
    _expect_committed(partition, group, Accepted({"error": 0, "committed_offset": 4}), check="offset")


@scenario("commit.beyond-latest", impact="A group that is ahead after a loss is not told that it is.")
def test_a_commit_beyond_the_end_is_kept_and_reading_there_is_refused(partition: Partition) -> None:
    partition.produce(10)
    group = _new_group(partition)
    committed = partition.cluster.commit_offset(group, partition.topic, 0, 99)
    partition.check("commit", "OffsetCommit of 99", committed, Accepted({"error": 0}))
    _expect_committed(partition, group, Accepted({"error": 0, "committed_offset": 99}), check="offset")
    fetched = Observation({"error": partition.fetch(99).error})
    partition.check("fetch", "Fetch from 99", fetched, Accepted({"error": OFFSET_OUT_OF_RANGE}))


@scenario("commit.restart", impact="After maintenance every group starts over, or skips what it had not read.")
def test_a_commit_survives_a_restart_and_a_crash(partition: Partition) -> None:
    partition.produce(3)
    group = _new_group(partition)
    _commit(partition, group, 44)
    partition.restart_broker()
    _expect_committed(partition, group, Accepted({"error": 0, "committed_offset": 44}), check="after-restart")
    partition.kill_broker()
    _expect_committed(partition, group, Accepted({"error": 0, "committed_offset": 44}), check="after-crash")


@scenario("commit.isolated", impact="One group moves another, which then skips records or reads them again.")
def test_groups_and_partitions_have_commits_of_their_own(partition: Partition) -> None:
    partition.point_at(partition.another_topic(partitions=2))
    mine, yours = _new_group(partition), _new_group(partition)
    _commit(partition, mine, 7)
    _commit(partition, yours, 9)
    require(partition.cluster.commit_offset(mine, partition.topic, 1, 8).fields["error"], "commit 8")
    _expect_committed(partition, mine, Accepted({"error": 0, "committed_offset": 7}), check="mine")
    _expect_committed(partition, yours, Accepted({"error": 0, "committed_offset": 9}), check="yours")
    other = partition.cluster.committed_offset(mine, partition.topic, 1)
    partition.check("mine-1", "OffsetFetch", other, Accepted({"error": 0, "committed_offset": 8}))
    untouched = partition.cluster.committed_offset(yours, partition.topic, 1)
    partition.check("yours-1", "OffsetFetch of what was not committed", untouched, NONE)


@scenario("commit.epoch", impact="A group cannot tell that what it had read was truncated meanwhile.")
def test_the_leader_epoch_of_a_commit_is_told(partition: Partition) -> None:
    partition.produce(6)
    epoch = partition.ask(LATEST).fields.get("leader_epoch", -1)
    if epoch < 0:
        raise NotSupported("leader epochs: ListOffsets tells none")
    group = _new_group(partition)
    _commit(partition, group, 5, leader_epoch=epoch)
    told = Accepted({"error": 0, "committed_offset": 5, "leader_epoch": epoch})
    _expect_committed(partition, group, told, check="offset")


@scenario("commit.all", impact="Whoever lists what a group reads sees too much, or too little.")
def test_all_commits_of_a_group_are_those_that_it_made(partition: Partition) -> None:
    partition.point_at(partition.another_topic(partitions=2))
    group = _new_group(partition)
    _commit(partition, group, 7)
    seen = partition.cluster.all_committed(group, partition.topic)
    partition.check("all", "OffsetFetch of all topics", seen, Accepted({"error": 0, "of_topic": 1, "others": 0}))


@scenario("commit.metadata-limit", impact="A client that attaches too much loses the commit that it had.")
def test_a_commit_with_too_much_attached_is_refused_and_the_one_before_it_stays(partition: Partition) -> None:
    group, much = _new_group(partition), "m" * 5000
    _commit(partition, group, 4)
    seen = partition.cluster.commit_offset(group, partition.topic, 0, 9, metadata=much)
    refused = Accepted({"error": OFFSET_METADATA_TOO_LARGE})
    partition.check("commit", "OffsetCommit", seen, refused, Accepted({"error": 0}).legal("its limit is another"))
    kept = Accepted({"error": 0, "committed_offset": 4, "same_metadata": 0})
    taken = Accepted({"error": 0, "committed_offset": 9, "same_metadata": 1})
    after = partition.cluster.committed_offset(group, partition.topic, 0, metadata=much)
    partition.check("offset", "OffsetFetch", after, kept if seen.fields["error"] else taken)


@scenario("commit.recreate-topic", impact="A group skips the first records of a topic that was made anew.")
def test_a_commit_does_not_hide_records_of_a_topic_that_was_made_anew(partition: Partition) -> None:
    partition.produce(3)
    group = _new_group(partition)
    _commit(partition, group, 44)
    partition.recreate()
    partition.produce(1)
    kept = Accepted({"error": 0, "committed_offset": 44}).legal(
        "a commit may outlive its topic: reading there is refused"
    )
    _expect_committed(partition, group, NONE, kept, check="offset")
    fetched = Observation({"error": partition.fetch(44).error})
    partition.check("fetch", "Fetch from 44", fetched, Accepted({"error": OFFSET_OUT_OF_RANGE}))
    partition.expect(LATEST, Accepted({"error": 0, "offset": 1}))


def _new_group(partition: Partition) -> str:
    return partition.unused_topic_name()


def _commit(partition: Partition, group: str, offset: int, *, leader_epoch: int = -1, metadata: str = "") -> None:
    seen = partition.cluster.commit_offset(
        group, partition.topic, partition.index, offset, leader_epoch=leader_epoch, metadata=metadata
    )
    require(seen.fields["error"], f"commit {offset}")


def _expect_committed(partition: Partition, group: str, *wanted: Accepted, check: str) -> None:
    seen = partition.cluster.committed_offset(group, partition.topic, partition.index)
    partition.check(check, "OffsetFetch", seen, *wanted)


def _resume_at(partition: Partition, group: str, offset: int, timestamp: int) -> None:
    """Commit an offset, ask for it, and read on from the answer."""
    _commit(partition, group, offset)
    seen = partition.cluster.committed_offset(group, partition.topic, 0)
    wanted = Accepted({"error": 0, "committed_offset": offset})
    partition.check(f"committed-{offset}", f"OffsetFetch after a commit of {offset}", seen, wanted)
    records = partition.read_all(start=max(0, seen.fields.get("committed_offset", -1)))
    first = Observation({"offset": records[0].offset, "timestamp": records[0].timestamp} if records else {})
    partition.check(f"first-{offset}", "Fetch", first, Accepted({"offset": offset, "timestamp": timestamp}))
