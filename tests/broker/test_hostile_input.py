"""Hostile input: an error answer or a closed connection, bounded memory, and a broker that goes on."""

from __future__ import annotations

import contextlib
import gzip
import resource
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import cramjam
import pytest
from crc32c import crc32c
from hostile_client import API_VERSIONS, FETCH, LIST_OFFSETS, METADATA, PRODUCE, answer, connect, is_alive, request
from running_broker import RunningBroker, start

from conformance.batches import Codec, Producer, Record, encode_batch
from conformance.cluster import Cluster
from conformance.waiting import eventually

CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE, UNSUPPORTED_COMPRESSION = 2, 87, 10, 76
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53

MEMORY_BOUND = 400 * 2**20
"""What a broker without records may ever take: 256 MiB of unfinished requests and answers, and itself."""


@pytest.fixture
def address(broker: RunningBroker) -> Iterator[tuple[str, int]]:
    yield broker.host_and_port
    assert is_alive(broker.host_and_port)
    assert "Traceback" not in broker.log.read_text()
    assert broker.memory_bytes() < MEMORY_BOUND


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 1, 7, 2**31 - 1, 200 * 2**20])
def test_a_length_that_cannot_be_closes_the_connection(address: tuple[str, int], length: int) -> None:
    with connect(address) as connection:
        connection.sendall(struct.pack(">i", length) + b"\x00" * 16)
        assert answer(connection) is None


def test_only_writes_may_be_large(address: tuple[str, int]) -> None:
    with connect(address) as connection:
        connection.sendall(struct.pack(">ihh", 8 * 2**20, METADATA, 1))
        assert answer(connection) is None


def test_a_frame_that_never_ends_is_waited_for_without_harm(address: tuple[str, int]) -> None:
    with connect(address) as connection:
        connection.sendall(request(API_VERSIONS, 0)[:-1])
        assert is_alive(address)


@pytest.mark.parametrize("key", [-1, 4, 200, 32767])
def test_an_unknown_api_closes_the_connection(address: tuple[str, int], key: int) -> None:
    with connect(address) as connection:
        connection.sendall(request(key, 0))
        assert answer(connection) is None


@pytest.mark.parametrize("version", [-1, 0, 12, 32767])
def test_an_unknown_version_closes_the_connection(address: tuple[str, int], version: int) -> None:
    with connect(address) as connection:
        connection.sendall(request(LIST_OFFSETS, version))
        assert answer(connection) is None


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_an_unknown_version_of_api_versions_is_told_which_there_are(address: tuple[str, int], version: int) -> None:
    with connect(address) as connection:
        connection.sendall(request(API_VERSIONS, version, flexible=True))
        assert answer(connection) == struct.pack(">ihihhh", 7, 35, 1, API_VERSIONS, 0, 4)
        connection.sendall(request(API_VERSIONS, 0))
        assert answer(connection) is not None


def test_every_truncation_of_a_request_closes_or_is_answered(address: tuple[str, int]) -> None:
    name = b"topic"
    body = struct.pack(f">ibBB{len(name)}sBiiqBBiB", -1, 0, 2, len(name) + 1, name, 2, 0, -1, -1, 0, 0, 0, 0)
    for size in range(len(body)):
        with connect(address) as connection:
            connection.sendall(request(LIST_OFFSETS, 11, body[:size], flexible=True))
            assert answer(connection) is None, size


@pytest.mark.parametrize("count", [b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\xff\xff", b"\x80"])
def test_a_count_of_billions_reserves_nothing(address: tuple[str, int], count: bytes) -> None:
    with connect(address) as connection:
        connection.sendall(request(LIST_OFFSETS, 11, struct.pack(">ib", -1, 0) + count, flexible=True))
        assert answer(connection) is None


def test_text_that_is_not_utf8_is_a_name_that_cannot_be(address: tuple[str, int]) -> None:
    with connect(address) as connection:
        connection.sendall(request(METADATA, 1, struct.pack(">ih2s", 1, 2, b"\xff\xfe")))
        said = answer(connection)
        assert said is not None
        assert "\ufffd\ufffd".encode() in said


def test_noise_on_many_connections_does_no_harm(address: tuple[str, int]) -> None:
    for seed in range(50):
        with connect(address) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(bytes((seed * 31 + each * 17) % 256 for each in range(500)))
            connection.shutdown(socket.SHUT_WR)
            answer(connection)


# -- batches


@pytest.fixture
def cluster(bootstrap: str, topic: str) -> Iterator[Cluster]:
    with Cluster(bootstrap) as client:
        client.create_topic(topic)
        yield client


def written(cluster: Cluster, topic: str, batch: bytes) -> int:
    error: int = cluster.produce(topic, 0, batch).fields["error"]
    if error:
        assert cluster.fetch(topic, 0, 0).high_watermark == 0
    return error


GOOD = encode_batch([Record(1, b"value", b"key"), Record(2, b"value", b"key")])


def resealed(batch: bytearray) -> bytes:
    """A batch whose checksum is right whatever else is wrong."""
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch)


def patched(position: int, data: bytes) -> bytes:
    batch = bytearray(GOOD)
    batch[position : position + len(data)] = data
    return resealed(batch)


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        (b"", INVALID_RECORD),
        (b"garbage", INVALID_RECORD),
        (b"\x00" * 100, CORRUPT_MESSAGE),
        (b"\xff" * 100, CORRUPT_MESSAGE),
        (GOOD[:-1], INVALID_RECORD),
        (GOOD + GOOD, INVALID_RECORD),
        (GOOD[:-1] + b"\x01", CORRUPT_MESSAGE),  # the checksum
        (patched(8, struct.pack(">i", -1)), CORRUPT_MESSAGE),  # the length
        (patched(8, struct.pack(">i", 20)), CORRUPT_MESSAGE),
        (patched(8, struct.pack(">i", 2**31 - 1)), INVALID_RECORD),
        (patched(16, b"\x01"), INVALID_RECORD),  # the format
        (patched(21, b"\x00\x05"), UNSUPPORTED_COMPRESSION),  # a codec that is none
        (patched(21, b"\x00\x01"), CORRUPT_MESSAGE),  # said to be gzip, and is not
        (patched(21, b"\x00\x02"), CORRUPT_MESSAGE),
        (patched(21, b"\x00\x03"), CORRUPT_MESSAGE),
        (patched(21, b"\x00\x04"), CORRUPT_MESSAGE),
        (patched(21, b"\x00\x20"), INVALID_RECORD),  # a control batch
        (patched(16, b"\x07"), CORRUPT_MESSAGE),
        (patched(21, b"\x00\x10"), TRANSACTIONAL_ID_AUTHORIZATION_FAILED),  # transactional, and of no transaction
        (patched(23, struct.pack(">i", 5)), INVALID_RECORD),  # the last offset delta
        (patched(57, struct.pack(">i", 3)), INVALID_RECORD),  # the number of records
        (patched(57, struct.pack(">i", -1)), INVALID_RECORD),
        (patched(57, struct.pack(">i", 2**31 - 1)), INVALID_RECORD),
        (patched(61, b"\x7f"), INVALID_RECORD),  # the first record's length
        (patched(61, b"\x01"), INVALID_RECORD),
        (patched(61, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), INVALID_RECORD),
        (patched(64, b"\x02"), INVALID_RECORD),  # the first record's offset
        (patched(65, b"\x03"), INVALID_RECORD),  # the length of its key: -2
        (patched(65, b"\x7e"), INVALID_RECORD),
        (patched(69, b"\x7e"), INVALID_RECORD),  # of its value
        (patched(75, b"\x02"), INVALID_RECORD),  # the number of its headers
    ],
)
def test_a_batch_that_is_not_one_is_refused(cluster: Cluster, topic: str, batch: bytes, error: int) -> None:
    assert written(cluster, topic, batch) == error


def test_the_batch_that_was_spoilt_is_accepted_unspoilt(cluster: Cluster, topic: str) -> None:
    assert written(cluster, topic, GOOD) == 0


def test_the_beginning_of_a_second_batch_is_left_out(cluster: Cluster, topic: str) -> None:
    assert written(cluster, topic, GOOD + GOOD[:-1]) == 0
    assert [record.offset for record in cluster.fetch(topic, 0, 0).records] == [0, 1]


def test_a_batch_above_the_limit_is_refused(cluster: Cluster, topic: str) -> None:
    assert written(cluster, topic, encode_batch([Record(0, b"v" * 1_100_000)])) == MESSAGE_TOO_LARGE


def bomb(codec: Codec) -> bytes:
    """A small batch that inflates to 200 MiB."""
    zeros = b"\x00" * (200 * 2**20)
    match codec:
        case Codec.GZIP:
            payload = gzip.compress(zeros, 1)
        case Codec.LZ4:
            payload = bytes(cramjam.lz4.compress(zeros))
        case Codec.ZSTD:
            payload = bytes(cramjam.zstd.compress(zeros))
        case _:
            block = bytes(cramjam.snappy.compress_raw(zeros))
            payload = b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(block)) + block
    batch = bytearray(GOOD[:61]) + payload
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">h", batch, 21, codec)
    return resealed(batch)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD, Codec.SNAPPY])
def test_a_decompression_bomb_is_refused(cluster: Cluster, topic: str, codec: Codec, broker: RunningBroker) -> None:
    cluster.configure_topic(topic, {"max.message.bytes": str(16 * 2**20)})
    assert written(cluster, topic, bomb(codec)) == MESSAGE_TOO_LARGE
    assert broker.memory_bytes() < MEMORY_BOUND


def test_made_up_producers_are_only_remembered_up_to_a_bound(cluster: Cluster, topic: str) -> None:
    for number in range(200):
        batch = encode_batch([Record(0)], producer=Producer(10**12 + number, 0), base_sequence=number)
        assert cluster.produce(topic, 0, batch).fields["error"] == 0


# -- connections


CONNECTIONS = 10_000


def test_ten_thousand_idle_connections_do_not_keep_an_honest_client_waiting(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(CONNECTIONS + 500, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))  # inherited by the broker
    try:
        with start(tmp_path) as broker, contextlib.ExitStack() as stack:
            for _ in range(wanted - 500):
                stack.enter_context(connect(broker.host_and_port))
            assert is_alive(broker.host_and_port)
            assert broker.memory_bytes() < MEMORY_BOUND
            assert broker.process.poll() is None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_connections_beyond_the_limit_are_closed_and_the_others_served(tmp_path: Path) -> None:
    with start(tmp_path, settings={"max.connections": "5"}) as broker, contextlib.ExitStack() as stack:
        first = [stack.enter_context(connect(broker.host_and_port)) for _ in range(5)]
        for connection in first:
            connection.sendall(request(API_VERSIONS, 0))
            assert answer(connection) is not None
        late = stack.enter_context(connect(broker.host_and_port))
        assert answer(late) is None
        first[0].close()
        eventually(lambda: _served(broker), bool, reason="a place to become free", seconds=5)


def _served(broker: RunningBroker) -> bool:
    with contextlib.suppress(OSError):
        return is_alive(broker.host_and_port)
    return False


def test_an_idle_connection_is_closed_after_its_time(tmp_path: Path) -> None:
    settings = {"connections.max.idle.ms": "200"}
    with start(tmp_path, settings=settings) as broker, connect(broker.host_and_port) as connection:
        assert answer(connection) is None


def test_a_client_that_never_reads_is_not_served_without_end(tmp_path: Path, topic: str) -> None:
    with start(tmp_path, settings={"log.retention.ms": "-1"}) as broker:
        with Cluster(broker.address) as cluster:
            cluster.create_topic(topic)
            for number in range(20):
                cluster.produce(topic, 0, encode_batch([Record(number, b"v" * 500_000)]))
        before = broker.memory_bytes()
        read = struct.pack(
            f">iiiibiiih{len(topic)}siiiqqii",
            -1, 0, 1, 2**24, 0, 0, -1, 1, len(topic), topic.encode(), 1, 0, -1, 0, -1, 2**24, 0,
        )  # fmt: skip
        with connect(broker.host_and_port) as honest:
            honest.sendall(request(FETCH, 9, read))
            assert len(answer(honest) or b"") > 10_000_000
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                greedy = stack.enter_context(connect(broker.host_and_port))
                greedy.settimeout(0.5)
                with contextlib.suppress(OSError):
                    for _ in range(2000):
                        greedy.sendall(request(FETCH, 9, read))
            assert is_alive(broker.host_and_port)
            # One answer of 10 MB for each, a copy of it on its way, and what the kernel refuses to take.
            assert broker.memory_bytes() - before < 20 * 3 * 10 * 2**20


def test_unfinished_writes_of_all_clients_together_are_bounded(tmp_path: Path) -> None:
    settings = {"queued.max.request.bytes": str(32 * 2**20)}
    with start(tmp_path, settings=settings) as broker, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(broker.host_and_port)) for _ in range(20)]
        for client in clients:
            with contextlib.suppress(OSError):
                client.sendall(struct.pack(">ihhih", 10 * 2**20, PRODUCE, 9, 1, -1) + b"\x00" * (9 * 2**20))
        assert is_alive(broker.host_and_port)
        assert broker.memory_bytes() < 200 * 2**20
