"""One connection against real sockets: every way of not answering has its name, its words and its evidence."""

import socket
import struct
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from scripted_broker import (
    LIST_OFFSETS,
    Loopback,
    Play,
    array,
    await_close,
    frame,
    list_offsets,
    read_request,
    replying,
)

from conformance.answers import Silence
from conformance.wire import (
    CLIENT_ID,
    MAX_FRAME_BYTES,
    BrokerUnreachable,
    Connection,
    ConnectionClosed,
    MalformedAnswer,
    NoAnswerInTime,
    WireError,
    codec_versions,
    compose,
    error_name,
)

Serve = Callable[[Play], Loopback]

IMPATIENT_SECONDS = 0.2
"""For servers that never finish: the test takes as long as this."""


def ask_latest(connection: Connection, version: int = 1) -> object:
    question = {"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}
    topics = [{"name": "t", "partitions": [question]}]
    return connection.ask("list_offsets", version, replica_id=-1, isolation_level=0, topics=topics)


def flexible_answer(
    *, header_tags: bytes = b"\x00", entry_tags: bytes = b"\x00", topics: bytes = b"\x02", error: int = 0
) -> bytes:
    """ListOffsets v7 with offset 5 in partition 0 of topic t. A compact length is one more than the length."""
    entry = struct.pack(">ihqqi", 0, error, -1, 5, 3) + entry_tags
    return frame(header_tags + struct.pack(">i", 0) + topics + b"\x02t" + b"\x02" + entry + b"\x00" + b"\x00")


def close_at_once(_connection: socket.socket) -> None:
    return


def close_after_half_an_answer(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(frame(list_offsets())[:10])


def never_answer(connection: socket.socket) -> None:
    await_close(connection)


def dribble_for_ever(connection: socket.socket) -> None:
    """Always makes progress, and would take an hour."""
    read_request(connection)
    connection.sendall(struct.pack(">i", MAX_FRAME_BYTES))
    connection.settimeout(0.02)
    for _ in range(200):
        connection.sendall(b"\x00")
        try:
            if not connection.recv(1):
                return
        except TimeoutError:
            continue


def pour_for_ever(connection: socket.socket) -> None:
    """As `dribble_for_ever`, but with never a moment in which a read has nothing to return."""
    read_request(connection)
    connection.sendall(struct.pack(">i", MAX_FRAME_BYTES))
    for _ in range(MAX_FRAME_BYTES - 1):
        connection.sendall(b"\x00")


HOSTILE: dict[str, tuple[int, Play, type[WireError], str]] = {
    "closes at once": (1, close_at_once, ConnectionClosed, ""),
    "closes in the middle": (1, close_after_half_an_answer, ConnectionClosed, "closed the connection"),
    "says nothing": (1, never_answer, NoAnswerInTime, "nothing within 0.2 s"),
    "stops in the middle": (1, replying(frame(list_offsets())[:10]), NoAnswerInTime, "nothing within 0.2 s"),
    "dribbles": (1, dribble_for_ever, NoAnswerInTime, ""),
    "pours": (1, pour_for_ever, NoAnswerInTime, ""),
    "negative length": (1, replying(struct.pack(">i", -1)), MalformedAnswer, "a frame of -1 bytes"),
    "largest length": (1, replying(struct.pack(">i", 2**31 - 1)), MalformedAnswer, "a frame of 2147483647 bytes"),
    "too short for a header": (1, replying(struct.pack(">i3s", 3, b"abc")), MalformedAnswer, "a frame of 3 bytes"),
    "speaks HTTP": (1, replying(b"HTTP/1.1 400 Bad Request\r\n\r\n"), MalformedAnswer, "a frame of 1213486160 bytes"),
    "another's answer": (1, replying(frame(list_offsets(), correlation=2)), MalformedAnswer, "id 2 instead of 1"),
    "empty body": (1, replying(frame(b"")), MalformedAnswer, "undecodable"),
    "cut-off body": (1, replying(frame(list_offsets()[:-1])), MalformedAnswer, "undecodable"),
    "text that is no UTF-8": (
        1,
        replying(frame(array([b"\x00\x01\xff" + array([])]))),
        MalformedAnswer,
        "undecodable",
    ),
    # An array that claims more entries than bytes are left must not get memory for them.
    "endless array": (1, replying(frame(struct.pack(">i", 2**31 - 1))), MalformedAnswer, "2147483647 entries"),
    "endless compact array": (
        7,
        replying(flexible_answer(topics=b"\xff\xff\xff\xff\x0f")),
        MalformedAnswer,
        "entries in",
    ),
    "null for an array": (1, replying(frame(struct.pack(">i", -1))), MalformedAnswer, "an array of -1 entries"),
    "null for a compact array": (7, replying(flexible_answer(topics=b"\x00")), MalformedAnswer, "-1 entries"),
    "endless header": (7, replying(flexible_answer(header_tags=b"\xff" * 6)), MalformedAnswer, "a broken number"),
    "header tag past the end": (
        7,
        replying(flexible_answer(header_tags=b"\x01\x00\xff\xff\xff\x7f")),
        MalformedAnswer,
        "undecodable",
    ),
    "tag past the end": (
        7,
        replying(flexible_answer(entry_tags=b"\x01\x63\xff\xff\xff\x7f")),
        MalformedAnswer,
        "undecodable",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_useless_answer_is_an_error_with_its_silence_its_words_and_its_evidence(serve: Serve, name: str) -> None:
    version, play, kind, words = HOSTILE[name]
    host, port = serve(play).address
    started = time.monotonic()
    with (
        Connection(host, port, answer_seconds=IMPATIENT_SECONDS) as connection,
        pytest.raises(kind, match=words or None) as caught,
    ):
        ask_latest(connection, version)
    assert time.monotonic() - started < IMPATIENT_SECONDS + 2  # a busy machine's slack
    assert str(caught.value).startswith(f"{host}:{port}, list_offsets v{version}: ")
    (exchange,) = connection.exchanges
    assert (exchange.api, exchange.version, exchange.node) == ("list_offsets", version, f"{host}:{port}")
    assert exchange.request == compose_latest(version)
    assert words in str(exchange.response)


def compose_latest(version: int) -> object:
    question = {"partition_index": 0, "timestamp": -1}
    fields = {"replica_id": -1, "isolation_level": 0, "topics": [{"name": "t", "partitions": [question]}]}
    return compose("list_offsets", version, fields)


def test_each_error_has_the_silence_that_a_verdict_is_made_of() -> None:
    kinds = {kind.silence: kind for kind in (BrokerUnreachable, ConnectionClosed, NoAnswerInTime, MalformedAnswer)}
    assert set(kinds) == set(Silence) - {Silence.OMITTED}  # an omission is seen in a good answer


def test_an_undecodable_answer_is_kept_byte_for_byte(serve: Serve) -> None:
    with Connection(*serve(replying(frame(b"\xca\xfe"))).address) as connection:
        with pytest.raises(MalformedAnswer):
            ask_latest(connection)
        assert "cafe" in str(connection.exchanges[-1].response)


def test_a_connection_that_failed_once_is_closed_for_good(serve: Serve) -> None:
    with Connection(*serve(replying(frame(b""))).address) as connection:
        with pytest.raises(MalformedAnswer):
            ask_latest(connection)
        with pytest.raises(ConnectionClosed):
            ask_latest(connection)


def test_an_answer_may_come_byte_by_byte(serve: Serve) -> None:
    def play(connection: socket.socket) -> None:
        read_request(connection)
        connection.settimeout(0.001)  # the pace: nothing is read between two bytes
        for byte in frame(list_offsets(offset=9)):
            connection.sendall(bytes([byte]))
            try:
                connection.recv(1)
            except TimeoutError:
                continue

    with Connection(*serve(play).address) as connection:
        assert offset_of(ask_latest(connection)) == 9


LEGAL: dict[str, tuple[int, bytes]] = {
    "plain": (1, frame(list_offsets())),
    "bytes after the answer": (1, frame(list_offsets() + b"more")),
    "flexible": (7, flexible_answer()),
    "tags in the header": (7, flexible_answer(header_tags=b"\x02\x00\x03abc\x7f\x00")),
    "a tag of a later Kafka in an entry": (7, flexible_answer(entry_tags=b"\x01\x63\x02ab")),
    "an error code of a later Kafka": (7, flexible_answer(error=9999)),
}


@pytest.mark.parametrize("name", LEGAL)
def test_what_the_protocol_allows_is_read(serve: Serve, name: str) -> None:
    version, raw = LEGAL[name]
    with Connection(*serve(replying(raw)).address) as connection:
        answer = ask_latest(connection, version)
        assert offset_of(answer) == 5
        assert [exchange.response for exchange in connection.exchanges] == [answer]


def offset_of(answer: object) -> int:
    (topic,) = answer.topics  # type: ignore[attr-defined]
    (partition,) = topic.partitions
    return int(partition.offset)


def test_an_address_where_nobody_listens_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(BrokerUnreachable, match=f"127.0.0.1:{port}: Connection refused"):
        Connection("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("127.0.0.1", 0),
        ("127.0.0.1", -1),
        ("127.0.0.1", 99999),
        ("127.0.0.1\0", 9),
        ("x" * 300, 9),
        ("a..b", 9),
        ("\ud800", 9),
    ],
)
def test_an_address_that_is_none_is_unreachable(host: str, port: int) -> None:
    with pytest.raises(BrokerUnreachable):
        Connection(host, port)


# -- what is sent


def list_offsets_by_hand(version: int) -> bytes:
    """A ListOffsets request without the codec, after the protocol guide."""
    flexible = version >= 6
    tags = b"\x00" if flexible else b""

    def name(value: bytes) -> bytes:
        return bytes([len(value) + 1]) + value if flexible else struct.pack(">h", len(value)) + value

    one_entry = b"\x02" if flexible else struct.pack(">i", 1)
    epoch = struct.pack(">i", 4) if version >= 4 else b""
    entry = struct.pack(">i", 3) + epoch + struct.pack(">q", -2) + tags
    topic = name(b"topic") + one_entry + entry + tags
    isolation = b"\x01" if version >= 2 else b""
    timeout = struct.pack(">i", 1500) if version >= 10 else b""
    body = struct.pack(">i", -1) + isolation + one_entry + topic + timeout + tags
    client = CLIENT_ID.encode()
    return struct.pack(">hhih", LIST_OFFSETS, version, 1, len(client)) + client + tags + body


@pytest.mark.parametrize("version", codec_versions("list_offsets"))
def test_list_offsets_is_sent_as_the_protocol_guide_says(serve: Serve, version: int) -> None:
    received: list[bytes] = []
    server = serve(lambda connection: received.append(read_request(connection)))
    entry = {"partition_index": 3, "current_leader_epoch": 4, "timestamp": -2}
    topics = [{"name": "topic", "partitions": [entry]}]
    timeout = timedelta(milliseconds=1500)
    with Connection(*server.address) as connection, pytest.raises(ConnectionClosed):
        connection.ask("list_offsets", version, replica_id=-1, isolation_level=1, topics=topics, timeout=timeout)
    assert received == [list_offsets_by_hand(version)]


def test_a_version_that_the_codec_lacks_is_asked_by_hand(serve: Serve) -> None:
    received: list[bytes] = []

    def play(connection: socket.socket) -> None:
        received.append(read_request(connection))
        connection.sendall(frame(b"\xca\xfe"))
        await_close(connection)

    assert 0 not in codec_versions("list_offsets")
    with Connection(*serve(play).address) as connection:
        assert connection.ask_raw("list_offsets", 0, b"\x00\x01") == b"\xca\xfe"
        assert [(each.version, each.request, each.response) for each in connection.exchanges] == [(0, "0001", "cafe")]
    client = CLIENT_ID.encode()
    assert received == [struct.pack(">hhih", LIST_OFFSETS, 0, 1, len(client)) + client + b"\x00\x01"]


def test_a_hand_written_flexible_request_has_its_header_tags_taken_off(serve: Serve) -> None:
    with Connection(*serve(replying(frame(b"\x01\x00\x02ab" + b"\xca\xfe"))).address) as connection:
        assert connection.ask_raw("list_offsets", 99, b"", flexible=True) == b"\xca\xfe"


def test_questions_on_one_connection_are_numbered(serve: Serve) -> None:
    def play(connection: socket.socket) -> None:
        while request := read_request(connection):
            (correlation,) = struct.unpack_from(">i", request, 4)
            connection.sendall(frame(list_offsets(offset=correlation), correlation=correlation))

    with Connection(*serve(play).address) as connection:
        assert [offset_of(ask_latest(connection)) for _ in range(3)] == [1, 2, 3]


def test_fields_that_a_version_does_not_have_are_left_out() -> None:
    entry = {"partition_index": 0, "timestamp": -1, "current_leader_epoch": 4}
    fields = {"replica_id": -1, "isolation_level": 1, "topics": [{"name": "t", "partitions": [entry]}]}
    old, new = compose("list_offsets", 1, fields), compose("list_offsets", 4, fields)
    assert not hasattr(old, "isolation_level")
    assert not hasattr(old.topics[0].partitions[0], "current_leader_epoch")
    assert new.isolation_level == 1
    assert new.topics[0].partitions[0].current_leader_epoch == 4


def test_a_field_that_a_version_requires_is_not_invented() -> None:
    with pytest.raises(TypeError, match="replica_id"):
        compose("list_offsets", 1, {"topics": ()})


def test_a_null_array_is_composed_as_null() -> None:
    assert compose("metadata", 1, {"topics": None}).topics is None


@pytest.mark.parametrize(("code", "name"), [(0, "NONE"), (35, "UNSUPPORTED_VERSION"), (9999, "ERROR_9999")])
def test_an_error_code_has_kafkas_name_or_its_number(code: int, name: str) -> None:
    assert error_name(code) == name
