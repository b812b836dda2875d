"""A broker in a container: on loopback, at one address for life, hard to hurt, and gone without a trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from container_columns import ours
from docker.client import DockerClient as Engine

from backends.containers import Container
from backends.registry import Backend, choose
from backends.running import DidNotStart
from conformance.answers import Silence, Verdict, answer
from conformance.batches import Record, encode_batch
from conformance.catalogue import Scenario, catalogue
from conformance.cluster import Cluster, StepFailed
from conformance.partition import FaultNotApplied, Partition, Story
from conformance.specs import LATEST
from conformance.waiting import DeadlinePassed
from conformance.wire import WireError

PATIENCE_SECONDS = 60.0
"""A broker is back five seconds after a restart; ten times that is a very busy machine."""


@pytest.fixture(scope="module")
def kafka(kafka_backend: Backend) -> Iterator[Container]:
    broker = Container(kafka_backend)
    with broker:
        yield broker


def write(broker: Container, topic: str, value: bytes) -> int:
    with Cluster(broker.bootstrap) as cluster:
        cluster.create_topic(topic)
        return cluster.produce(topic, 0, encode_batch([Record(0, value)])).fields["base_offset"]


def read(broker: Container, topic: str) -> list[bytes | None]:
    with Cluster(broker.bootstrap) as cluster:
        cluster.await_leaders(topic, [0], seconds=PATIENCE_SECONDS)
        return [record.value for record in cluster.fetch(topic, 0, 0).records]


def test_it_is_published_on_loopback_alone_at_the_port_that_it_advertises(engine: Engine, kafka: Container) -> None:
    (container,) = [each for each in engine.containers.list() if each.id == kafka._id]
    assert container.ports["9092/tcp"] == [{"HostIp": "127.0.0.1", "HostPort": kafka.bootstrap.rpartition(":")[2]}]
    with Cluster(kafka.bootstrap) as cluster:
        cluster.create_topic("where")
        assert set(cluster.partition_leaders("where").values()) == {kafka.bootstrap}


def test_it_says_which_image_runs_by_its_digest(kafka: Container) -> None:
    assert re.fullmatch(r"image offset-conformance/kafka:4\.3\.1 sha256:[0-9a-f]{64}", kafka.build)
    assert (kafka.kafka_release, kafka.oracle) == ((4, 3), False)


@pytest.mark.parametrize("lever", ["restart", "kill"])
def test_a_restarted_and_a_killed_container_keep_address_and_records(kafka: Container, lever: str) -> None:
    address = kafka.bootstrap
    assert write(kafka, lever, b"acknowledged") == 0
    getattr(kafka, lever)()
    assert kafka.bootstrap == address
    assert read(kafka, lever) == [b"acknowledged"]


@pytest.fixture
def partition(kafka: Container) -> Iterator[Partition]:
    story = Story(Scenario(catalogue()["restart.pause"], "", 1, ()), kafka.facts, "a test", lambda _: None)
    with Cluster(kafka.bootstrap) as cluster:
        yield Partition(kafka, cluster, story)


@pytest.mark.parametrize(
    ("fault", "silence", "verdict"),
    [
        (Partition.paused_broker, Silence.TIMEOUT, Verdict.INCONCLUSIVE),
        (Partition.broker_cut_off, Silence.UNREACHABLE, Verdict.BROKEN),
    ],
    ids=["pause", "network cut"],
)
def test_a_hurt_broker_gives_no_answer_that_could_be_judged_and_recovers(
    partition: Partition,
    fault: Callable[[Partition], AbstractContextManager[None]],
    silence: Silence,
    verdict: Verdict,
) -> None:
    partition.produce(2)
    with fault(partition):
        assert partition.expect(LATEST, answer(offset=2), check="during").silence is silence
    assert partition.expect(LATEST, answer(offset=2), check="after").fields["offset"] == 2
    assert [check.judgement.verdict for check in partition.story.checks] == [verdict, Verdict.CONFORMS]


def test_a_full_disk_takes_no_record_and_a_freed_one_does_after_a_restart(kafka: Container) -> None:
    assert write(kafka, "before", b"acknowledged") == 0
    kafka.fill_disk()
    try:
        with (
            Cluster(kafka.bootstrap, answer_seconds=PATIENCE_SECONDS) as cluster,
            pytest.raises((WireError, StepFailed, DeadlinePassed)),
        ):
            cluster.create_topic("during")
    finally:
        kafka.free_disk()
        kafka.restart()
    assert read(kafka, "before") == [b"acknowledged"]
    assert write(kafka, "after", b"acknowledged") == 0


def test_a_fault_that_the_engine_cannot_apply_says_so(kafka: Container) -> None:
    with pytest.raises(FaultNotApplied, match=r"could not be resumed: .*not paused"):
        kafka.resume()


# -- a container that does not start


def objection_to_start(backend: Backend) -> str:
    with pytest.raises(DidNotStart) as refusal:
        Container(backend).__enter__()
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_a_container_that_dies_at_once_is_told_by_its_last_words(engine: Engine, image_that_exits: str) -> None:
    before = ours(engine)
    said = objection_to_start(choose(f"apache-kafka-container={image_that_exits}"))
    assert said == "the container exited with 3: no licence | goodbye"
    assert ours(engine) == before


def test_an_image_that_is_no_broker_is_told_in_the_engines_words(engine: Engine, image_that_exits: str) -> None:
    before = ours(engine)
    said = objection_to_start(choose(f"in-house-container={image_that_exits}"))
    assert said.startswith(f"the engine cannot start {image_that_exits}: ")
    assert ours(engine) == before


def test_an_image_that_cannot_be_had_is_named(engine: Engine) -> None:
    before = ours(engine)
    said = objection_to_start(choose("redpanda=offset-conformance.invalid/no/such:image"))
    assert said.startswith("image not available: offset-conformance.invalid/no/such:image is not on this machine and")
    assert ours(engine) == before


def test_a_port_that_is_always_taken_is_named(kafka: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(kafka.bootstrap.rpartition(":")[2])
    monkeypatch.setattr("backends.containers.free_ports", lambda _: [port])
    said = objection_to_start(kafka.backend)
    assert said == f"port 127.0.0.1:{port} is taken, as were others before it"


def test_a_key_that_is_missing_is_asked_for_by_name(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine.ping()
    monkeypatch.setenv("WARPSTREAM_AGENT_KEY", "aks_1234567890")
    said = objection_to_start(choose("warpstream-cluster"))
    assert "WARPSTREAM_DEFAULT_VIRTUAL_CLUSTER_ID" in said
    assert "export" in said
    assert "aks_1234567890" not in said
