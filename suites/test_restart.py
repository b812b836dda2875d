"""Restart, crash and other faults: what was answered before is answered after.

One restart serves many partitions, each in another state, because a restart is the slowest step there is.
"""

from __future__ import annotations

from conformance.answers import NOT_FOUND, Accepted, Observation, Silence, answer, at_least, found
from conformance.batches import Record, encode_batch
from conformance.catalogue import scenario
from conformance.cluster import LEADERSHIP_ERRORS, READ_COMMITTED, StepFailed
from conformance.partition import FaultNotApplied, Partition
from conformance.specs import EARLIEST, LATEST, MAX_TIMESTAMP, T, at, at_epoch
from conformance.waiting import eventually
from conformance.wire import WireError

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


@scenario("restart.no-reuse", impact="Two records have had the same offset, and a reader has seen one of them.")
def test_an_offset_that_was_acknowledged_is_never_given_again(partition: Partition) -> None:
    before = [partition.produce(1).fields["base_offset"] for _ in range(5)]
    partition.kill_broker()
    after = [partition.produce(1).fields["base_offset"] for _ in range(3)]
    observed = Observation({"acknowledged": len(before + after), "different": len({*before, *after})})
    partition.check("offsets", "Produce before and after a crash", observed, Accepted({"different": 8}))
    partition.expect(LATEST, answer(offset=8))


@scenario("earliest.survives-restart", impact="Records that were deleted, maybe for good reasons, are back.")
def test_the_trim_point_survives_a_restart_and_then_a_crash(partition: Partition) -> None:
    partition.produce(10)
    partition.delete_records(5)
    partition.restart_broker()
    partition.expect(EARLIEST, answer(offset=5), check="after-restart")
    partition.kill_broker()
    partition.expect(EARLIEST, answer(offset=5), check="after-crash")
    partition.expect(LATEST, answer(offset=10))


@scenario("ts.after-restart", impact="After a crash, a reader that seeks by time starts at the wrong record.")
def test_times_are_found_after_a_crash_as_before(partition: Partition) -> None:
    partition.produce_at(100, 200, 300)
    partition.produce_batch(*range(1000, 2000))
    partition.kill_broker()
    partition.expect(at(0), found(0, T + 100))
    partition.expect(at(200), found(1, T + 200))
    partition.expect(at(301), found(3, T + 1000))
    partition.expect(at(1500), found(503, T + 1500))
    partition.expect(at(2000), NOT_FOUND)


@scenario("txn.restart-open", impact="Readers of committed records run past an open transaction, or never get there.")
def test_the_last_stable_offset_survives_a_restart(partition: Partition) -> None:
    partition.produce(3)
    transaction = partition.begin_transaction()
    transaction.produce_batch(4000)
    partition.restart_broker()
    partition.expect(LATEST, answer(offset=3), isolation=READ_COMMITTED, check="read-committed")
    partition.expect(LATEST, answer(offset=4), check="read-uncommitted")


HOUR_SECONDS = 3600

KILOBYTE = 1000
ATTEMPTS = 100
"""A disk that takes a hundred kilobytes more is not full: what is left of its last page is four."""

RECORDS = ((0, 100), (1, 200), (2, 300))
"""Offset and time of what is written before a broker is hurt."""


@scenario("restart.pause", impact=AFTERWARDS)
def test_a_pause_changes_no_answer(partition: Partition) -> None:
    partition.produce_at(*(millis for _, millis in RECORDS))
    with partition.paused_broker():
        asleep = Accepted(silence=Silence.TIMEOUT)
        partition.expect(LATEST, asleep, answer(offset=3).legal("another node answers"), check="during")
    _everything_is_as_before(partition)


@scenario("restart.network-cut", impact=AFTERWARDS)
def test_a_cut_off_the_network_changes_no_answer(partition: Partition) -> None:
    partition.produce_at(*(millis for _, millis in RECORDS))
    with partition.broker_cut_off():
        away = [Accepted(silence=kind) for kind in (Silence.UNREACHABLE, Silence.TIMEOUT, Silence.CLOSED)]
        partition.expect(LATEST, *away, check="during")
    _everything_is_as_before(partition)


@scenario("restart.clock-back", impact="Records written after a correction of the clock are lost, or hide others.")
def test_a_clock_that_steps_back_moves_no_offset(partition: Partition) -> None:
    plain = _topic_with(partition, *(millis for _, millis in RECORDS))
    stamped = partition.another_topic(config={"message.timestamp.type": "LogAppendTime"})
    record = encode_batch([Record(T)])
    ahead = partition.cluster.produce(stamped, 0, record).fields["log_append_time"]
    partition.point_at(plain)
    with partition.broker_clock_stepped(-HOUR_SECONDS):
        partition.expect(LATEST, answer(offset=3))
        partition.expect(EARLIEST, answer(offset=0))
        partition.expect(at(150), found(1, T + 200))
        written = partition.produce(1)
        partition.check("produce", "Produce one record", written, Accepted({"error": 0, "base_offset": 3}))

        partition.point_at_settled(stamped)
        written = partition.cluster.produce(stamped, 0, record)
        partition.check("stamped", "Produce, to be stamped", written, Accepted({"error": 0, "base_offset": 1}))
        partition.expect(LATEST, answer(offset=2), check="stamped-latest")
        partition.expect(MAX_TIMESTAMP, found(0, ahead), check="stamped-max-timestamp")
        behind = written.fields["log_append_time"]
        partition.expect(at_epoch(behind + 1), found(0, ahead), check="stamped-at-behind")
        partition.expect(at_epoch(ahead + 1), NOT_FOUND, check="stamped-at-ahead")


@scenario("restart.disk-full", impact="Records that were acknowledged just before the disk was full are gone.")
def test_a_full_disk_loses_nothing_that_was_acknowledged(partition: Partition) -> None:
    partition.produce_at(*(millis for _, millis in RECORDS))
    with partition.full_disk():
        acknowledged = [*RECORDS, *_acknowledged_until_refused(partition)]
    partition.expect(EARLIEST, answer(offset=0))
    partition.expect(at(150), found(1, T + 200))
    kept = [(record.offset, record.timestamp - T) for record in partition.read_all()]
    observed = Observation({"acknowledged": len(acknowledged), "kept": sum(pair in kept for pair in acknowledged)})
    partition.check("read", "Fetch everything", observed, Accepted({"kept": len(acknowledged)}))
    # What was not acknowledged may have been kept too.
    latest = partition.expect(LATEST, answer(offset=at_least(len(acknowledged))))
    written = partition.produce(1)
    after = Accepted({"error": 0, "base_offset": latest.fields.get("offset", len(acknowledged))})
    partition.check("produce", "Produce one record", written, after)


def _acknowledged_until_refused(partition: Partition) -> list[tuple[int, int]]:
    """Offset and time of records that are acknowledged although there is hardly any room, until one is not."""
    acknowledged: list[tuple[int, int]] = []
    for attempt in range(ATTEMPTS):
        millis = 1000 + attempt
        try:
            written = partition.try_produce(encode_batch([Record(T + millis, bytes(KILOBYTE))]))
        except (WireError, StepFailed):
            return acknowledged  # the broker has ended, or says nothing
        if written.fields["error"]:
            return acknowledged
        acknowledged.append((written.fields["base_offset"], millis))
    raise FaultNotApplied(f"{ATTEMPTS} records of {KILOBYTE} bytes went to a disk that was to be full")


def _everything_is_as_before(partition: Partition) -> None:
    """Answers, records and the next offset. A broker that was away for a second may have to be elected anew."""
    partition.expect(LATEST, answer(offset=3))
    partition.expect(EARLIEST, answer(offset=0))
    partition.expect(at(150), found(1, T + 200))
    patience = partition.broker.patience_seconds
    eventually(
        lambda: partition.fetch(0).error,
        lambda seen: seen not in LEADERSHIP_ERRORS,
        reason="a leader to read from",
        seconds=patience,
    )
    kept = [(record.offset, record.timestamp - T) for record in partition.read_all()]
    observed = Observation({"acknowledged": len(RECORDS), "kept": sum(pair in kept for pair in RECORDS)})
    partition.check("read", "Fetch everything", observed, Accepted({"acknowledged": 3, "kept": 3}))
    written = eventually(
        lambda: partition.try_produce(encode_batch([Record(T + 400)])),
        lambda seen: seen.fields["error"] not in LEADERSHIP_ERRORS,
        reason="a leader to write to",
        seconds=patience,
    )
    partition.check("produce", "Produce one record", written, Accepted({"error": 0, "base_offset": 3}))


def _topic_with(partition: Partition, *millis: int) -> str:
    topic = partition.another_topic()
    for each in millis:
        partition.cluster.produce(topic, 0, encode_batch([Record(T + each)]))
    return topic
