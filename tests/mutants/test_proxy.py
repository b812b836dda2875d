"""The bending proxy: what it leaves alone, what it always rewrites, and each way in which it can bend."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from whole_runs import ROOT

from backends import registry
from backends.presets import prepare
from backends.running import RunningBackend
from conformance.batches import Record, encode_batch
from conformance.cluster import Cluster, Question
from conformance.results import read_checks
from conformance.specs import EARLIEST, LATEST, T
from conformance.wire import API_KEYS, ConnectionClosed, MalformedAnswer, WireError
from mutants.bending import CUT, UNBENT, Bending, Part, asks_for, but, per_partition, per_question
from mutants.memory import Memory
from mutants.messages import Asked
from mutants.proxy import ProxyThread

RUN_SECONDS = 300.0


def written(bootstrap: str, count: int = 3) -> str:
    """A new topic with `count` records."""
    topic = f"proxy-{uuid.uuid4().hex[:12]}"
    with Cluster(bootstrap) as cluster:
        cluster.create_topic(topic, config={"retention.ms": "-1"})
        for number in range(count):
            cluster.produce(topic, 0, encode_batch([Record(T + number)]))
    return topic


def latest(cluster: Cluster, topic: str) -> Mapping[str, int]:
    return cluster.list_offsets(Question(topic, 0, LATEST)).fields


def api_versions_request(correlation: int) -> bytes:
    frame = struct.pack(">hhih", API_KEYS["api_versions"], 0, correlation, -1)
    return struct.pack(">i", len(frame)) + frame


def read_exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            break
        data += more
    return data


def read_frame(connection: socket.socket) -> bytes:
    (length,) = struct.unpack(">i", read_exactly(connection, 4))
    return read_exactly(connection, length)


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


# -- nothing bent


def test_the_suites_give_the_same_verdicts_through_the_proxy_as_without_it(
    in_house: RunningBackend, proxies: ProxyThread, tmp_path: Path
) -> None:
    def verdicts(address: str, results: Path) -> dict[str, tuple[str, str | None]]:
        command = [sys.executable, "-m", "pytest", str(ROOT / "suites"), "-q", "--tb=no", "-p", "no:cacheprovider"]
        command += [f"--bootstrap={address}", f"--results={results}"]
        subprocess.run(command, cwd=ROOT, capture_output=True, timeout=RUN_SECONDS, check=False)
        return {line["check"]: (line["verdict"], line["grade"]) for line in read_checks(sorted(results.glob("*")))}

    direct = verdicts(in_house.bootstrap, tmp_path / "direct")
    with proxies.open(in_house.bootstrap, UNBENT) as proxy:
        through = verdicts(proxy.address, tmp_path / "through")
    assert len(direct) > 500
    assert through == direct
    assert proxy.bent == 0


def test_bytes_pass_as_they_are(in_house: RunningBackend, proxies: ProxyThread) -> None:
    with proxies.open(in_house.bootstrap, UNBENT) as proxy:
        frames = []
        for address in (in_house.bootstrap, proxy.address):
            with connect(address) as connection:
                connection.sendall(api_versions_request(4711))
                frames.append(read_frame(connection))
    assert frames[0] == frames[1]


def test_an_answer_that_is_decoded_and_encoded_again_is_the_same(
    in_house: RunningBackend, proxies: ProxyThread
) -> None:
    topic = written(in_house.bootstrap)
    with proxies.open(in_house.bootstrap, UNBENT, recording=True) as proxy, Cluster(proxy.address) as cluster:
        cluster.await_leaders(topic, [0])
        for version in range(1, cluster.highest("list_offsets") + 1):
            cluster.list_offsets(Question(topic, 0, LATEST), version=version)
        cluster.fetch(topic, 0, 0)
        cluster.produce(topic, 0, encode_batch([Record(T)]))
        cluster.delete_records(topic, 0, 1)
        heard = list(proxy.heard)
    assert len(heard) > 15
    for each in heard:
        assert each.asked.encode(each.answer, each.frame) == each.frame
        assert each.asked.bent(each.asked.request).frame == each.asked.frame


# -- addresses


def test_clients_are_told_the_proxys_address_only(in_house: RunningBackend, proxies: ProxyThread) -> None:
    topic = written(in_house.bootstrap)
    with proxies.open(in_house.bootstrap, UNBENT) as proxy, Cluster(proxy.address) as cluster:
        assert cluster.partition_leaders(topic) == {0: proxy.address}
        coordinator = cluster.ask("find_coordinator", key="any", key_type=0, coordinator_keys=("any",))
        (entry,) = coordinator.coordinators
        assert f"{entry.host}:{entry.port}" == proxy.address


def test_every_broker_that_metadata_names_is_behind_an_address_of_its_own(
    in_house: RunningBackend, proxies: ProxyThread
) -> None:
    with prepare(registry.choose("in-house")) as other:
        port = int(other.bootstrap.rpartition(":")[2])

        def with_other(_asked: Asked, answer: Any, _memory: Memory) -> Any:
            return but(answer, brokers=(*answer.brokers, but(answer.brokers[0], node_id=99, port=port)))

        only_there = written(other.bootstrap)
        cluster_of_two = Bending("two", "", {"metadata": with_other})
        with proxies.open(in_house.bootstrap, cluster_of_two) as proxy, Cluster(proxy.address) as cluster:
            brokers = cluster.ask("metadata", version=4, topics=(), allow_auto_topic_creation=False).brokers
            addresses = {f"{each.host}:{each.port}" for each in brokers}
            assert len(addresses) == 2
            assert not addresses & {in_house.bootstrap, other.bootstrap}
            (second,) = addresses - {proxy.address}
            with Cluster(second) as directly:
                directly.await_leaders(only_there, [0])
                assert latest(directly, only_there)["offset"] == 3


# -- powers


def test_an_answer_can_be_altered(in_house: RunningBackend, proxies: ProxyThread) -> None:
    topic = written(in_house.bootstrap)
    bending = Bending(
        "one-more", "", {"list_offsets": per_partition(lambda _, told: but(told, offset=told.offset + 1))}
    )
    with proxies.open(in_house.bootstrap, bending) as proxy, Cluster(proxy.address) as cluster:
        assert latest(cluster, topic) == {"error": 0, "offset": 4, "timestamp": -1, "leader_epoch": 0}
        assert proxy.bent == 1


def test_an_answer_can_have_an_error_code_that_the_codec_does_not_know(
    in_house: RunningBackend, proxies: ProxyThread
) -> None:
    topic = written(in_house.bootstrap)
    bending = Bending("new", "", {"list_offsets": per_partition(lambda _, told: but(told, error_code=9999))})
    with proxies.open(in_house.bootstrap, bending) as proxy, Cluster(proxy.address) as cluster:
        assert latest(cluster, topic)["error"] == 9999


def test_a_request_can_be_altered(in_house: RunningBackend, proxies: ProxyThread) -> None:
    topic = written(in_house.bootstrap)
    bending = Bending("earliest", "", ask=per_question("list_offsets", lambda entry: but(entry, timestamp=-2)))
    with proxies.open(in_house.bootstrap, bending) as proxy, Cluster(proxy.address) as cluster:
        assert latest(cluster, topic)["offset"] == 0


def test_an_answer_can_be_bent_knowing_what_passed_before(in_house: RunningBackend, proxies: ProxyThread) -> None:
    topic = written(in_house.bootstrap)
    batches = Bending(
        "batches",
        "",
        {"list_offsets": per_partition(lambda about, told: but(told, offset=len(about.log.batches)))},
    )
    with proxies.open(in_house.bootstrap, batches) as proxy, Cluster(proxy.address) as cluster:
        cluster.produce(topic, 0, encode_batch([Record(T), Record(T)]))
        assert latest(cluster, topic)["offset"] == 1
    with proxies.open(in_house.bootstrap, batches) as proxy, Cluster(proxy.address) as cluster:
        assert latest(cluster, topic)["offset"] == 0, "another proxy has another memory"


def test_an_answer_can_be_delayed(in_house: RunningBackend, proxies: ProxyThread) -> None:
    def late(asked: Asked, whole: bytes, _memory: Memory) -> list[Part] | None:
        return [0.2, whole] if asked.api == "list_offsets" else None

    topic = written(in_house.bootstrap)
    with (
        proxies.open(in_house.bootstrap, Bending("late", "", deliver=late)) as proxy,
        Cluster(proxy.address) as cluster,
    ):
        started = time.monotonic()
        assert latest(cluster, topic)["offset"] == 3
        assert time.monotonic() - started >= 0.2


def test_an_answer_can_come_byte_by_byte(in_house: RunningBackend, proxies: ProxyThread) -> None:
    def bytewise(_asked: Asked, whole: bytes, _memory: Memory) -> list[Part]:
        return [whole[place : place + 1] for place in range(len(whole))]

    topic = written(in_house.bootstrap)
    bending = Bending("bytewise", "", deliver=bytewise)
    with proxies.open(in_house.bootstrap, bending) as proxy, Cluster(proxy.address) as cluster:
        assert latest(cluster, topic)["offset"] == 3


def test_an_answer_can_come_twice(in_house: RunningBackend, proxies: ProxyThread) -> None:
    topic = written(in_house.bootstrap)
    twice = Bending("twice", "", deliver=lambda asked, whole, _: [whole, whole] if asks_for(asked, -1) else None)
    with proxies.open(in_house.bootstrap, twice) as proxy, Cluster(proxy.address) as cluster:
        assert latest(cluster, topic)["offset"] == 3
        with pytest.raises(MalformedAnswer, match="correlation id"):
            cluster.list_offsets(Question(topic, 0, EARLIEST))


def test_answers_can_change_places(in_house: RunningBackend, proxies: ProxyThread) -> None:
    def swap(_asked: Asked, whole: bytes, memory: Memory) -> list[Part]:
        held = memory.scratch.pop("held", None)
        if held is None:
            memory.scratch["held"] = whole
            return []
        return [whole, held]

    bending = Bending("swap", "", deliver=swap)
    with proxies.open(in_house.bootstrap, bending) as proxy, connect(proxy.address) as connection:
        connection.sendall(api_versions_request(1) + api_versions_request(2))
        order = [struct.unpack_from(">i", read_frame(connection))[0] for _ in range(2)]
    assert order == [2, 1]


def test_an_answer_can_be_cut(in_house: RunningBackend, proxies: ProxyThread) -> None:
    topic = written(in_house.bootstrap)
    cut = Bending("cut", "", deliver=lambda asked, whole, _: [whole[:9], CUT] if asks_for(asked, -1) else None)
    with proxies.open(in_house.bootstrap, cut) as proxy, Cluster(proxy.address) as cluster:
        with pytest.raises(ConnectionClosed):
            latest(cluster, topic)
        assert cluster.list_offsets(Question(topic, 0, EARLIEST)).fields["offset"] == 0


# -- limits


def test_a_frame_that_is_too_long_closes_the_connection(in_house: RunningBackend, proxies: ProxyThread) -> None:
    with proxies.open(in_house.bootstrap, UNBENT) as proxy, connect(proxy.address) as connection:
        connection.sendall(struct.pack(">i", 2**31 - 1))
        assert connection.recv(1) == b""


def test_a_broker_that_is_gone_closes_the_connection(proxies: ProxyThread) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        address = f"127.0.0.1:{reserved.getsockname()[1]}"
    with proxies.open(address, UNBENT) as proxy, pytest.raises(WireError):
        Cluster(proxy.address)


def test_a_proxy_leaves_nothing_behind(in_house: RunningBackend, proxies: ProxyThread) -> None:
    before = threading.active_count()
    with proxies.open(in_house.bootstrap, UNBENT) as proxy, Cluster(proxy.address):
        address = proxy.address
    assert threading.active_count() == before
    with pytest.raises(OSError, match="refused"):
        connect(address)
