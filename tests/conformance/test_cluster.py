"""A cluster as a client sees it, against a broker that says what it is told to say."""

import socket
import struct
import time
from collections.abc import Callable

import pytest
from scripted_broker import (
    API_VERSIONS,
    FETCH,
    HAND_WRITTEN,
    LIST_OFFSETS,
    METADATA,
    ScriptedBroker,
    api_versions,
    array,
    fetch,
    list_offsets,
    text,
)

from conformance.answers import Observation, Silence
from conformance.batches import Record, encode_batch
from conformance.cluster import Cluster, NotSupported, Question, StepFailed, reachable, require
from conformance.specs import EARLIEST, LATEST
from conformance.waiting import DeadlinePassed
from conformance.wire import BrokerUnreachable, MalformedAnswer

QUESTION = Question("t", 0, LATEST)
NOT_LEADER = 6
ANSWERED = Observation({"error": 0, "offset": 5, "timestamp": -1})


def observe_latest(broker: ScriptedBroker) -> Observation:
    with Cluster(broker.bootstrap, answer_seconds=1.0) as cluster:
        return cluster.observe(lambda: cluster.list_offsets(QUESTION))


# -- who is asked


def test_a_node_that_does_not_lead_is_left_for_the_one_that_does(broker: ScriptedBroker) -> None:
    broker.answer(LIST_OFFSETS, list_offsets(error=NOT_LEADER), list_offsets())
    assert observe_latest(broker) == ANSWERED
    assert broker.asked == [API_VERSIONS, LIST_OFFSETS, METADATA, LIST_OFFSETS, LIST_OFFSETS]


def test_a_replica_is_told_the_truth_about_leadership_at_once(broker: ScriptedBroker) -> None:
    broker.answer(LIST_OFFSETS, list_offsets(error=NOT_LEADER))
    with Cluster(broker.bootstrap) as cluster:
        assert cluster.list_offsets(QUESTION, replica=1).fields["error"] == NOT_LEADER
    assert broker.asked == [API_VERSIONS, LIST_OFFSETS]


@pytest.mark.parametrize("error", [1, 3, 35, 74, 9999])
def test_any_other_error_is_an_answer_and_is_not_asked_again(broker: ScriptedBroker, error: int) -> None:
    broker.answer(LIST_OFFSETS, list_offsets(error=error, offset=-1))
    assert observe_latest(broker) == Observation({"error": error, "offset": -1, "timestamp": -1})
    assert broker.asked == [API_VERSIONS, LIST_OFFSETS]


def test_a_partition_that_gets_no_leader_is_waited_for_until_the_deadline(broker: ScriptedBroker) -> None:
    broker.answer(METADATA, array([]) + array([]))
    with Cluster(broker.bootstrap) as cluster, pytest.raises(DeadlinePassed, match="t-0 to have a leader"):
        cluster.await_leaders("t", [0], seconds=0.05)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("127.0.0.1", 99999),
        ("127.0.0.1", -1),
        ("127.0.0.1\0", 9),
        ("::1", 9),
        ("[::1]", 9),
        ("x" * 300, 9),
        ("", 0),
        ("a:b:c", -5),
    ],
)
def test_a_leader_at_a_nonsensical_address_is_unreachable(broker: ScriptedBroker, host: str, port: int) -> None:
    broker.answer(LIST_OFFSETS, list_offsets())
    broker.lead(host, port)
    started = time.monotonic()
    with Cluster(broker.bootstrap) as cluster:
        with pytest.raises(DeadlinePassed):
            cluster.await_leaders("t", [0], seconds=0.05)
        assert cluster.observe(lambda: cluster.list_offsets(QUESTION)).silence is Silence.UNREACHABLE
    assert time.monotonic() - started < 3


# -- ways of not answering


@pytest.mark.parametrize(
    "answer",
    [
        array([]),
        list_offsets(partitions=()),
        list_offsets(partitions=(1,)),
        list_offsets(topic="other"),
        list_offsets(partitions=(0, 0)),
    ],
    ids=["no topic", "no partition", "another partition", "another topic", "two entries"],
)
def test_an_answer_about_something_else_is_an_omission(broker: ScriptedBroker, answer: bytes) -> None:
    broker.answer(LIST_OFFSETS, answer)
    observed = observe_latest(broker)
    assert observed.silence is Silence.OMITTED
    assert "entries for t-0 instead of one" in observed.detail


def test_a_broker_that_closes_on_a_question_but_still_talks_has_closed(broker: ScriptedBroker) -> None:
    broker.answer(LIST_OFFSETS, None)
    assert observe_latest(broker).silence is Silence.CLOSED
    assert broker.asked == [API_VERSIONS, LIST_OFFSETS, API_VERSIONS]


def test_a_broker_that_closes_on_a_question_and_stays_away_is_gone(broker: ScriptedBroker) -> None:
    def die() -> None:
        broker.stop_listening()

    broker.answers[LIST_OFFSETS] = die
    observed = observe_latest(broker)
    assert observed.silence is Silence.UNREACHABLE
    assert "list_offsets v1" in observed.detail
    assert "; then " in observed.detail


def test_a_question_after_a_failed_one_gets_a_connection_of_its_own(broker: ScriptedBroker) -> None:
    broker.answer(LIST_OFFSETS, None, list_offsets())
    with Cluster(broker.bootstrap) as cluster:
        assert cluster.observe(lambda: cluster.list_offsets(QUESTION)).silence is Silence.CLOSED
        assert cluster.list_offsets(QUESTION) == ANSWERED


def test_the_evidence_has_the_exchanges_that_failed_too_and_is_handed_out_once(broker: ScriptedBroker) -> None:
    broker.answer(LIST_OFFSETS, None, list_offsets())
    with Cluster(broker.bootstrap) as cluster:
        cluster.observe(lambda: cluster.list_offsets(QUESTION))
        cluster.list_offsets(QUESTION)
        asked = [exchange.api for exchange in cluster.drain_exchanges()]
        assert asked == ["api_versions", "list_offsets", "api_versions", "list_offsets"]
        assert cluster.drain_exchanges() == []


PRODUCE, CREATE_TOPICS, DELETE_RECORDS = 0, 19, 21
NO_THROTTLE = struct.pack(">i", 0)
EMPTY_ANSWERS: dict[int, tuple[int, bytes, Callable[[Cluster], object]]] = {
    METADATA: (0, array([]) + array([]), lambda cluster: cluster.topic_exists("t")),
    PRODUCE: (3, array([]) + NO_THROTTLE, lambda cluster: cluster.produce("t", 0, encode_batch([Record(1)]))),
    CREATE_TOPICS: (2, NO_THROTTLE + array([]), lambda cluster: cluster.create_topic("t")),
    DELETE_RECORDS: (0, NO_THROTTLE + array([]), lambda cluster: cluster.delete_records("t", 0, 1)),
}


@pytest.mark.parametrize("api", EMPTY_ANSWERS)
def test_a_step_whose_answer_has_no_entry_is_malformed_and_no_failure_of_ours(broker: ScriptedBroker, api: int) -> None:
    version, body, step = EMPTY_ANSWERS[api]
    broker.answer(API_VERSIONS, api_versions(HAND_WRITTEN | {api: (version, version)}))
    broker.answer(api, body)
    with Cluster(broker.bootstrap) as cluster, pytest.raises(MalformedAnswer, match="0 entries"):
        step(cluster)


# -- versions


def test_api_keys_that_nobody_here_knows_are_passed_over(broker: ScriptedBroker) -> None:
    broker.answer(API_VERSIONS, api_versions({LIST_OFFSETS: (1, 11), 9999: (0, 3), -5: (0, 0)}))
    with Cluster(broker.bootstrap) as cluster:
        assert cluster.api_versions == {"list_offsets": (1, 11)}


@pytest.mark.parametrize(
    ("advertised", "words"),
    [
        ({}, "does not advertise list_offsets"),
        ({LIST_OFFSETS: (0, 0)}, "v0 to v0, this client v1 to v11"),
        ({LIST_OFFSETS: (12, 99)}, "v12 to v99"),
        ({LIST_OFFSETS: (5, 3)}, "v5 to v3"),
        ({LIST_OFFSETS: (-1, -1)}, "v-1 to v-1"),
    ],
)
def test_no_common_version_is_said_in_a_sentence(
    broker: ScriptedBroker, advertised: dict[int, tuple[int, int]], words: str
) -> None:
    broker.answer(API_VERSIONS, api_versions(advertised))
    with Cluster(broker.bootstrap) as cluster, pytest.raises(NotSupported, match=words):
        cluster.highest("list_offsets")


def test_the_highest_common_version_is_chosen(broker: ScriptedBroker) -> None:
    broker.answer(API_VERSIONS, api_versions({LIST_OFFSETS: (0, 99), FETCH: (4, 11)}))
    with Cluster(broker.bootstrap) as cluster:
        assert cluster.highest("list_offsets") == 11
        assert cluster.highest("fetch") == 11
        assert cluster.highest("fetch", up_to=7) == 7


def test_the_versions_of_a_broker_with_an_error_beside_them_are_taken(broker: ScriptedBroker) -> None:
    broker.answer(API_VERSIONS, api_versions(HAND_WRITTEN, error=35))
    with Cluster(broker.bootstrap) as cluster:
        assert "list_offsets" in cluster.api_versions


# -- version 0, and records


@pytest.mark.parametrize(("count", "offsets", "first"), [(0, (), -1), (2, (7, 0), 7)])
def test_version_0_answers_a_list(broker: ScriptedBroker, count: int, offsets: tuple[int, ...], first: int) -> None:
    broker.answer(LIST_OFFSETS, version_0(count, *offsets))
    with Cluster(broker.bootstrap) as cluster:
        observed = cluster.list_offsets_v0(Question("t", 0, EARLIEST))
    assert observed == Observation({"error": 0, "count": count, "offset": first})


@pytest.mark.parametrize("count", [1, 2**31 - 1, -1])
def test_a_list_that_is_shorter_than_it_claims_is_malformed(broker: ScriptedBroker, count: int) -> None:
    broker.answer(LIST_OFFSETS, version_0(count))
    with Cluster(broker.bootstrap) as cluster, pytest.raises(MalformedAnswer, match="list_offsets v0"):
        cluster.list_offsets_v0(QUESTION)


def version_0(count: int, *offsets: int) -> bytes:
    entry = struct.pack(">ihi", 0, 0, count) + b"".join(struct.pack(">q", offset) for offset in offsets)
    return array([text("t") + array([entry])])


def test_records_are_read_from_the_wanted_offset_on(broker: ScriptedBroker) -> None:
    broker.answer(FETCH, fetch(encode_batch([Record(1), Record(2), Record(3)])))
    with Cluster(broker.bootstrap) as cluster:
        assert [record.offset for record in cluster.fetch("t", 0, 1).records] == [1, 2]


@pytest.mark.parametrize("answer", [fetch(b"\xff" * 61), struct.pack(">i", 0) + array([])], ids=["garbage", "nothing"])
def test_records_that_cannot_be_read_are_malformed(broker: ScriptedBroker, answer: bytes) -> None:
    broker.answer(FETCH, answer)
    with Cluster(broker.bootstrap) as cluster, pytest.raises(MalformedAnswer, match="fetch"):
        cluster.fetch("t", 0, 0)


# -- addresses and steps


def test_an_address_is_reachable_when_a_kafka_answers_there(broker: ScriptedBroker) -> None:
    assert reachable(broker.bootstrap) is None


def test_an_address_without_a_listener_says_so() -> None:
    assert "nobody listens there" in str(reachable(f"127.0.0.1:{free_port()}"))


def test_an_address_with_something_else_behind_it_says_so(broker: ScriptedBroker) -> None:
    broker.answer(API_VERSIONS, b"220 mail ready")
    assert "does not answer like a Kafka" in str(reachable(broker.bootstrap))


def test_a_cluster_that_nobody_runs_cannot_be_had() -> None:
    with pytest.raises(BrokerUnreachable):
        Cluster(f"127.0.0.1:{free_port()}")


def test_a_refused_step_names_itself_the_error_and_the_brokers_words() -> None:
    require(0, "create topic t")
    with pytest.raises(StepFailed, match=r"create topic t: TOPIC_ALREADY_EXISTS \(taken\)"):
        require(36, "create topic t", "taken")
