"""The request itself: versions, several partitions at once, duplicates, and what is refused."""

from __future__ import annotations

import struct

import pytest

from conformance.answers import (
    CLOSED,
    UNSUPPORTED_VERSION,
    Accepted,
    Between,
    Observation,
    advertises,
    advertises_below,
    answer,
    at_least,
    found,
    refused,
)
from conformance.batches import Record, encode_batch
from conformance.catalogue import scenario
from conformance.cluster import UNKNOWN_TOPIC_OR_PARTITION, Question
from conformance.partition import Partition
from conformance.specs import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    UNKNOWN_NEGATIVE,
    OffsetSpec,
    T,
    at,
    at_epoch,
)
from conformance.wire import codec_versions

INVALID_REQUEST = 42

CLIENTS_BREAK = "Clients that negotiate this version misread the answer or lose the connection."

NO_GATE = "KAFKA-17331: before v9 a broker may serve the number, or take it for an ordinary time"


@scenario("req.apiversions-range", impact="Clients find no version to speak, or speak one that is not there.")
def test_the_advertised_range_of_list_offsets_is_usable(partition: Partition) -> None:
    lowest, highest = partition.story.facts.list_offsets
    observed = Observation({"lowest": lowest, "highest": highest})
    partition.check("range", "ApiVersions", observed, Accepted({"lowest": Between(0, 1), "highest": at_least(1)}))


@scenario("req.every-advertised-version", impact=CLIENTS_BREAK)
def test_every_advertised_version_gives_the_same_answers(partition: Partition) -> None:
    partition.produce(3)
    lowest, highest = partition.story.facts.list_offsets
    known = codec_versions("list_offsets")
    for version in range(max(lowest, known[0]), min(highest, known[-1]) + 1):
        partition.expect(LATEST, answer(offset=3), version=version, check=f"v{version}-latest")
        partition.expect(EARLIEST, answer(offset=0), version=version, check=f"v{version}-earliest")
    if lowest == 0:
        for spec, offset in ((LATEST, 3), (EARLIEST, 0)):
            seen = partition.cluster.observe(
                lambda spec=spec: partition.cluster.list_offsets_v0(partition.question(spec))
            )
            asked = f"ListOffsets v0 timestamp={spec.timestamp}, at most 5 offsets"
            partition.check(f"v0-{spec.name}", asked, seen, Accepted({"error": 0, "offset": offset}))


@scenario("req.above-max-version", impact="A newer client takes garbage for offsets.")
def test_a_version_above_the_highest_is_refused(partition: Partition) -> None:
    partition.produce(3)
    version = partition.story.facts.list_offsets[1] + 1
    name = partition.topic.encode()
    # The body of v10 and later; what matters is the version in the header.
    body = struct.pack(f">ibBB{len(name)}sBiiqBBiB", -1, 0, 2, len(name) + 1, name, 2, 0, -1, -1, 0, 0, 0, 0)

    def ask() -> Observation:
        raw = partition.cluster.ask_raw("list_offsets", version, body, flexible=True)
        return Observation({"error": UNSUPPORTED_VERSION if raw.endswith(b"\x00#") else 0, "bytes": len(raw)})

    seen = partition.cluster.observe(ask)
    asked = f"ListOffsets v{version}, one more than advertised"
    partition.check("refused", asked, seen, CLOSED, refused(UNSUPPORTED_VERSION).legal("a refusal in words"))
    partition.expect(LATEST, answer(offset=3), check="still-answers")


@scenario("req.v6-flexible-header", impact="Clients that send tags of a later release lose the connection.")
def test_unknown_tagged_fields_are_ignored(partition: Partition) -> None:
    partition.produce(3)
    if partition.cluster.highest("list_offsets") < 6:
        partition.expect(LATEST, answer(offset=3), check="no-flexible-version-advertised")
        return
    name = partition.topic.encode()
    tag = b"\x01\x63\x01\x2a"  # one tagged field: number 99, one byte long
    body = (
        struct.pack(f">ibBB{len(name)}sBiiq", -1, 0, 2, len(name) + 1, name, 2, 0, -1, LATEST.timestamp)
        + 3 * tag  # of the partition, of the topic, of the request
    )

    def ask() -> Observation:
        node = partition.cluster.leader(partition.topic, 0)
        raw = partition.cluster.ask_raw("list_offsets", 6, body, flexible=True, node=node)
        # throttle, count, name, count, index, error, timestamp, offset, epoch and three empty tag lists
        error, _timestamp, offset = struct.unpack_from(">hqq", raw, 4 + 1 + 1 + len(name) + 1 + 4)
        return Observation({"error": error, "offset": offset})

    asked = "ListOffsets v6 latest with an unknown tag in partition, topic and request"
    partition.check("tagged", asked, partition.cluster.observe(ask), answer(offset=3))


@scenario("req.unknown-topic", impact="A typo in a topic name reads as an empty topic.")
def test_an_unknown_topic_is_an_error(partition: Partition) -> None:
    partition.point_at(partition.unused_topic_name())
    partition.expect(LATEST, refused(UNKNOWN_TOPIC_OR_PARTITION))


@scenario("req.unknown-partition", impact="A reader of a partition that is not there waits for ever.")
def test_an_unknown_partition_is_an_error(partition: Partition) -> None:
    partition.point_at(partition.topic, 99)
    partition.expect(LATEST, refused(UNKNOWN_TOPIC_OR_PARTITION))


@scenario("req.negative-partition", impact="One malformed request takes the broker down for everybody.")
def test_a_negative_partition_is_an_error(partition: Partition) -> None:
    topic = partition.topic
    partition.point_at(topic, -1)
    partition.expect(LATEST, refused(UNKNOWN_TOPIC_OR_PARTITION))
    partition.point_at(topic, 0)
    partition.expect(LATEST, answer(offset=0), check="still-answers")


@scenario("req.unknown-topic-not-created", impact="Every typo leaves a topic behind.")
def test_asking_about_a_topic_does_not_create_it(partition: Partition) -> None:
    name = partition.unused_topic_name()
    partition.point_at(name)
    partition.expect(LATEST, refused(UNKNOWN_TOPIC_OR_PARTITION))
    exists = Observation({"exists": int(partition.cluster.topic_exists(name))})
    partition.check("exists", "Metadata, without creating topics", exists, Accepted({"exists": 0}))


@scenario("req.partial-failure", impact="One deleted topic stops the readers of all others.")
def test_one_bad_partition_does_not_fail_the_others(partition: Partition) -> None:
    partition.produce(3)
    missing = Question(partition.unused_topic_name(), 0, LATEST)
    _expect_together(
        partition,
        {partition.question(LATEST): answer(offset=3), missing: refused(UNKNOWN_TOPIC_OR_PARTITION)},
        names=["good", "bad"],
    )


@scenario("req.all-answered-once", impact="Mimir's client fails when a partition is missing from an answer.")
def test_every_partition_asked_about_is_answered_once(partition: Partition) -> None:
    topics = [partition.another_topic(partitions=4) for _ in range(3)]
    questions = [Question(topic, index, LATEST) for topic in topics for index in range(4)]
    seen = partition.cluster.list_offsets_together(questions)
    answered = Observation(
        {
            "partitions": len(seen),
            "entries": sum(len(entries) for entries in seen.values()),
            "unasked": len(set(seen) - {(question.topic, question.partition) for question in questions}),
        }
    )
    exactly = Accepted({"partitions": 12, "entries": 12, "unasked": 0})
    partition.check("answered", "ListOffsets of 3 topics with 4 partitions each", answered, exactly)


@scenario("req.mixed-timestamps", impact="A client that asks for several kinds at once gets one kind for all.")
def test_each_partition_may_be_asked_another_question(partition: Partition) -> None:
    topic = partition.another_topic(partitions=3)
    for index in range(3):
        for millis in (100, 200, 300):
            partition.cluster.produce(topic, index, encode_batch([Record(T + millis)]))
    _expect_together(
        partition,
        {
            Question(topic, 0, EARLIEST): answer(offset=0, timestamp=-1),
            Question(topic, 1, LATEST): answer(offset=3, timestamp=-1),
            Question(topic, 2, at(150)): found(1, T + 200),
        },
        names=["earliest", "latest", "time"],
    )


@scenario("req.duplicate-partition", impact="A client that asks twice is told one answer for two questions.")
def test_a_partition_listed_twice_is_refused(partition: Partition) -> None:
    partition.produce(3)
    _expect_refused_duplicates(partition, LATEST, EARLIEST)


@scenario("ts.two-queries-one-partition", impact="A client that asks for two times is told one answer for both.")
def test_two_times_for_one_partition_in_one_request_are_refused(partition: Partition) -> None:
    partition.produce_at(100, 200, 300)
    _expect_refused_duplicates(partition, at(100), at(300))


def _expect_refused_duplicates(partition: Partition, *specs: OffsetSpec) -> None:
    seen = partition.cluster.list_offsets_together([partition.question(spec) for spec in specs])
    entries = seen.get((partition.topic, 0), [])
    errors = {entry.fields["error"] for entry in entries}
    observed = Observation({"error": max(errors, default=-1), "kinds": len(errors), "entries": len(entries)})
    # Kafka 3.x answers once per duplicate, 4.x once in all; no client depends on which.
    wanted = Accepted({"error": INVALID_REQUEST, "kinds": 1, "entries": Between(1, len(specs))})
    asked = f"ListOffsets of one partition, {len(specs)} times: {', '.join(spec.name for spec in specs)}"
    partition.check("duplicate", asked, observed, wanted)


@pytest.mark.parametrize(
    "spec",
    [MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD],
    ids=lambda spec: spec.name,
)
@scenario("req.special-below-version", impact="A client is told an offset that means something else to the broker.")
def test_a_special_spec_below_its_version_is_refused(partition: Partition, spec: OffsetSpec) -> None:
    partition.produce_at(100, 200, 300)
    served = {
        MAX_TIMESTAMP: answer(offset=2),
        EARLIEST_LOCAL: answer(offset=0),
        LATEST_TIERED: found(0, T + 100),
        EARLIEST_PENDING_UPLOAD: found(0, T + 100),
    }[spec]
    lowest, highest = partition.story.facts.list_offsets
    version = min(spec.since - 1, highest)
    partition.expect(
        spec,
        refused(UNSUPPORTED_VERSION),
        served.when(advertises_below(9), NO_GATE),
        answer(offset=-1, timestamp=-1).when(advertises_below(9), NO_GATE),
        version=max(version, lowest, 1),
    )


@pytest.mark.parametrize("timestamp", [-7, -1000])
@scenario("req.unknown-negative", impact="A client of a later release is told an offset that means something else.")
def test_an_unknown_negative_number_is_refused(partition: Partition, timestamp: int) -> None:
    partition.produce_at(100, 200, 300)
    partition.expect(
        OffsetSpec(f"negative{timestamp}", timestamp),
        refused(UNSUPPORTED_VERSION),
        found(0, T + 100).when(advertises_below(9), NO_GATE),
        version=partition.cluster.highest("list_offsets"),
    )


@scenario("req.unsupported-before-unknown", revision=2, impact="None known; the order of two refusals.")
def test_an_unknown_number_for_an_unknown_topic_is_refused(partition: Partition) -> None:
    partition.point_at(partition.unused_topic_name())
    version = partition.cluster.highest("list_offsets")
    partition.expect(
        UNKNOWN_NEGATIVE,
        refused(UNSUPPORTED_VERSION).when(advertises(9), "KAFKA-17331"),
        refused(UNSUPPORTED_VERSION).legal("either refusal is one"),
        refused(UNKNOWN_TOPIC_OR_PARTITION).legal("either refusal is one"),
        version=version,
    )


@scenario("req.duplicate-before-unknown", impact="None known; the order of two refusals.")
def test_a_duplicate_of_an_unknown_partition_is_refused(partition: Partition) -> None:
    partition.point_at(partition.unused_topic_name())
    entries = partition.cluster.list_offsets_together([partition.question(LATEST), partition.question(EARLIEST)])
    errors = {entry.fields["error"] for answers in entries.values() for entry in answers}
    observed = Observation({"error": max(errors, default=0), "kinds": len(errors)})
    unknown = Accepted({"error": UNKNOWN_TOPIC_OR_PARTITION, "kinds": 1}).legal("either refusal is one")
    duplicate = Accepted({"error": INVALID_REQUEST, "kinds": 1})
    partition.check("refused", "ListOffsets of an unknown partition, twice", observed, duplicate, unknown)


@scenario("req.empty-topics", impact="A client with nothing to ask loses its connection.")
def test_a_request_about_nothing_is_answered_with_nothing(partition: Partition) -> None:
    asked = "ListOffsets without topics"
    partition.check("topics", asked, _ask_about(partition, []), Accepted({"topics": 0}))
    partition.expect(LATEST, answer(offset=0), check="still-answers")


@scenario("req.empty-partitions", impact="None known; a topic named without partitions.")
def test_a_topic_without_partitions_is_answered_without_partitions(partition: Partition) -> None:
    seen = _ask_about(partition, [{"name": partition.topic, "partitions": ()}])
    asked = "ListOffsets of a topic with no partitions"
    partition.check("partitions", asked, seen, Accepted({"topics": Between(0, 1), "partitions": 0}))


def _ask_about(partition: Partition, topics: list[dict[str, object]]) -> Observation:
    from datetime import timedelta

    def ask() -> Observation:
        seen = partition.cluster.ask(
            "list_offsets", replica_id=-1, isolation_level=0, topics=topics, timeout=timedelta(0)
        )
        entries = sum(len(topic.partitions) for topic in seen.topics)
        return Observation({"topics": len(seen.topics), "partitions": entries})

    return partition.cluster.observe(ask)


@scenario("req.isolation-invalid", impact="One malformed request takes the broker down for everybody.")
def test_an_invalid_isolation_level_does_no_harm(partition: Partition) -> None:
    partition.produce(3)
    either = Accepted({"error": Between(-1, 127)}).legal("any answer that is not a crash")
    partition.expect(LATEST, refused(-1), either, isolation=2, check="isolation-2")
    partition.expect(LATEST, answer(offset=3), check="still-answers")


@scenario("req.timeout-ms-v10", impact="Clients that set a timeout get errors from partitions without remote data.")
def test_a_timeout_does_not_matter_to_a_local_lookup(partition: Partition) -> None:
    partition.produce(3)
    for timeout_ms in (0, 1, 30_000):
        partition.expect(LATEST, answer(offset=3), timeout_ms=timeout_ms, check=f"timeout-{timeout_ms}")


@scenario("req.new-partition", impact="Readers of a topic that grew start in the wrong place.")
def test_a_partition_added_later_starts_at_zero(partition: Partition) -> None:
    partition.produce(3)
    topic = partition.topic
    partition.cluster.add_partitions(topic, 2)
    partition.expect(LATEST, answer(offset=3), check="old-latest")
    partition.point_at(topic, 1)
    partition.expect(EARLIEST, answer(offset=0), check="new-earliest")
    partition.expect(LATEST, answer(offset=0), check="new-latest")


@scenario("req.recreate-topic", impact="Readers of a new topic start at an offset of the old one.")
def test_a_topic_created_again_starts_at_zero(partition: Partition) -> None:
    partition.produce(10)
    partition.recreate()
    partition.expect(EARLIEST, answer(offset=0))
    partition.expect(LATEST, answer(offset=0))
    partition.expect(at_epoch(0), answer(offset=-1))


def _expect_together(partition: Partition, expected: dict[Question, Accepted], *, names: list[str]) -> None:
    """Ask several questions in one request and judge each by itself."""
    seen = partition.cluster.list_offsets_together(list(expected))
    for name, (question, accepted) in zip(names, expected.items(), strict=True):
        entries = seen.get((question.topic, question.partition), [])
        observed = entries[0] if len(entries) == 1 else Observation({"entries": len(entries)})
        asked = f"ListOffsets {question.spec.name}, together with {len(expected) - 1} other questions"
        partition.check(name, asked, observed, accepted)
