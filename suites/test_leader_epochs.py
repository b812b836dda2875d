"""Leader epochs: what a client says it knows, and what it is told."""

from __future__ import annotations

from conformance.answers import Accepted, Between, Observation, answer, refused
from conformance.catalogue import scenario
from conformance.partition import Partition
from conformance.specs import EARLIEST, LATEST, at_epoch

FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75

FENCING = "A client with old metadata reads from a broker that is no longer the leader."

EPOCHS_SINCE = 4
"""The first ListOffsets version with epochs; a broker below it cannot check any."""


@scenario("epoch.omitted", impact="Clients that know no epoch are refused.")
def test_no_epoch_means_no_check(partition: Partition) -> None:
    partition.produce(3)
    partition.expect(LATEST, answer(offset=3), epoch=-1)


@scenario("epoch.current", impact="Clients that know the epoch are refused.")
def test_the_current_epoch_is_accepted(partition: Partition) -> None:
    partition.produce(3)
    epoch = partition.cluster.leader_epoch(partition.topic, 0)
    partition.expect(LATEST, answer(offset=3), epoch=epoch)


@scenario("epoch.newer", impact=FENCING)
def test_an_epoch_from_the_future_is_unknown(partition: Partition) -> None:
    partition.produce(3)
    epoch = partition.cluster.leader_epoch(partition.topic, 0) + 1
    if partition.cluster.highest("list_offsets") >= EPOCHS_SINCE:
        partition.expect(LATEST, refused(UNKNOWN_LEADER_EPOCH), epoch=epoch)
        partition.expect(at_epoch(0), refused(UNKNOWN_LEADER_EPOCH), epoch=epoch)
    else:
        partition.expect(LATEST, answer(offset=3), epoch=epoch, check="no-epochs-advertised")


@scenario("epoch.le-consistent", impact="A client remembers an epoch that the broker then refuses.")
def test_answered_epochs_are_not_above_the_announced_one(partition: Partition) -> None:
    partition.produce(3)
    announced = partition.cluster.leader_epoch(partition.topic, 0)
    for spec in (LATEST, EARLIEST, at_epoch(0)):
        seen = partition.ask(spec)
        observed = Observation({"error": seen.fields.get("error", -1), "epoch": seen.fields.get("leader_epoch", -1)})
        wanted = Accepted({"error": 0, "epoch": Between(-1, announced)})
        partition.check(spec.name, f"ListOffsets {spec.name}; Metadata announces {announced}", observed, wanted)


@scenario("epoch.errors-clear-fields", impact="A client uses the offset of an answer that was an error.")
def test_an_error_answer_carries_no_offset(partition: Partition) -> None:
    partition.point_at(partition.topic, 99)
    partition.expect(LATEST, Accepted({"error": 3, "offset": -1, "timestamp": -1}))


@scenario("ofle.current", impact="A client takes its records for truncated, and reads them again.")
def test_the_current_epoch_ends_at_latest(partition: Partition) -> None:
    partition.produce(3)
    epoch = partition.cluster.leader_epoch(partition.topic, 0)
    seen = partition.cluster.epoch_end(partition.topic, 0, epoch)
    asked = f"OffsetForLeaderEpoch of epoch {epoch}, which Metadata announces"
    partition.check("end", asked, seen, Accepted({"error": 0, "leader_epoch": epoch, "end_offset": 3}))
