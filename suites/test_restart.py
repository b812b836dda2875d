"""Restart and crash: what was answered before is answered after.

One restart serves many partitions, each in another state, because a restart is the slowest step there is.
"""

from __future__ import annotations

from conformance.answers import NOT_FOUND, Accepted, Observation, answer, found
from conformance.batches import Record, encode_batch
from conformance.catalogue import scenario
from conformance.partition import Partition
from conformance.specs import EARLIEST, LATEST, MAX_TIMESTAMP, T, at, at_epoch

AFTERWARDS = "After maintenance, readers that trust the answers lose records or read them again."


@scenario("restart.all-answers", impact=AFTERWARDS)
def test_a_clean_restart_changes_no_answer(partition: Partition) -> None:
    plain = _topic_with(partition, 100, 999, 200)
    deleted = _topic_with(partition, 100, 200, 300, 400)
    partition.cluster.delete_records(deleted, 0, 2)
    emptied = _topic_with(partition, 100, 200)
    partition.point_at(emptied)
    partition.expire_everything()

    partition.restart_broker()
    partition.expect(LATEST, answer(offset=2), check="emptied-latest")
    partition.expect(EARLIEST, answer(offset=2), check="emptied-earliest")
    partition.expect(at_epoch(0), NOT_FOUND, check="emptied-at-0")
    written = partition.produce(1)
    partition.check("emptied-produce", "Produce one record", written, Accepted({"error": 0, "base_offset": 2}))

    partition.point_at_settled(deleted)
    partition.expect(LATEST, answer(offset=4), check="deleted-latest")
    partition.expect(EARLIEST, answer(offset=2), check="deleted-earliest")
    partition.expect(at_epoch(0), found(2, T + 300), check="deleted-at-0")

    partition.point_at_settled(plain)
    partition.expect(LATEST, answer(offset=3), check="plain-latest")
    partition.expect(EARLIEST, answer(offset=0), check="plain-earliest")
    partition.expect(MAX_TIMESTAMP, found(1, T + 999), check="plain-max-timestamp")
    partition.expect(at(150), found(1, T + 999), check="plain-at+150")
    partition.expect(at(1000), NOT_FOUND, check="plain-at+1000")


@scenario("restart.crash-acked", impact="Records that were acknowledged are gone after a crash.")
def test_a_crash_loses_nothing_that_was_acknowledged(partition: Partition) -> None:
    topic = _topic_with(partition, 100, 200, 300)
    partition.point_at(topic)
    partition.kill_broker()
    partition.expect(LATEST, answer(offset=3))
    partition.expect(EARLIEST, answer(offset=0))
    partition.expect(at(150), found(1, T + 200))
    kept = [(record.offset, record.timestamp - T) for record in partition.read_all()]
    acknowledged = [(0, 100), (1, 200), (2, 300)]
    observed = Observation({"acknowledged": len(acknowledged), "kept": sum(pair in kept for pair in acknowledged)})
    partition.check("read", "Fetch everything", observed, Accepted({"acknowledged": 3, "kept": 3}))
    written = partition.produce(1)
    partition.check("produce", "Produce one record", written, Accepted({"error": 0, "base_offset": 3}))


def _topic_with(partition: Partition, *millis: int) -> str:
    topic = partition.another_topic()
    for each in millis:
        partition.cluster.produce(topic, 0, encode_batch([Record(T + each)]))
    return topic
