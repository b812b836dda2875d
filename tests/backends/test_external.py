"""A broker that somebody else started: what is not one is named at once, and nothing is ever waited for without end."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from backends.external import External
from backends.librdkafka_mock import LibrdkafkaMock
from backends.processes import free_ports
from backends.registry import choose, external
from backends.running import DidNotStart

Serve = Callable[[Callable[[socket.socket], None]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a loopback server that treats each connection as told, and gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    connections: list[socket.socket] = []

    def start(answer: Callable[[socket.socket], None]) -> str:
        def accept() -> None:
            while True:
                try:
                    connections.append(listener.accept()[0])
                    answer(connections[-1])
                except OSError:
                    return  # closed: the test is over

        threading.Thread(target=accept, daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield start
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for connection in connections:
        connection.close()


def objection_to(address: str) -> str:
    """Why the address is refused: one sentence, in less time than a person's patience."""
    begin = time.monotonic()
    with pytest.raises(DidNotStart) as refusal:
        External(external(address), address).start()
    assert time.monotonic() - begin < 12
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_a_broker_that_runs_is_used_and_left_running() -> None:
    with LibrdkafkaMock(choose("librdkafka-mock")) as theirs:
        with External(external(theirs.bootstrap), theirs.bootstrap) as ours:
            assert (ours.bootstrap, ours.build) == (theirs.bootstrap, f"at {theirs.bootstrap}")
            assert not ours.disposable
        with External(external(theirs.bootstrap), theirs.bootstrap):
            pass


def test_a_port_where_nobody_listens_is_named() -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    said = objection_to(address)
    assert said.startswith(f"{address}: nobody listens there")
    assert said.endswith("Check --bootstrap HOST:PORT and --client-config FILE")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:", "127.0.0.1:kafka", "127.0.0.1:99999", ":9092", ""])
def test_an_address_that_is_none_is_named(address: str) -> None:
    assert "is not HOST:PORT" in objection_to(address)


def test_a_web_server_is_no_kafka(serve: Serve) -> None:
    address = serve(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    assert "something listens there, but it does not answer like a Kafka" in objection_to(address)


def test_a_server_that_hangs_up_is_no_kafka(serve: Serve) -> None:
    address = serve(lambda connection: connection.close())
    assert "does not answer like a Kafka" in objection_to(address)


def test_a_server_that_says_nothing_is_no_kafka(serve: Serve) -> None:
    address = serve(lambda _: None)
    assert "does not answer like a Kafka" in objection_to(address)


def test_a_kafka_without_the_requests_that_are_needed_is_refused_at_once(serve: Serve) -> None:
    """It answers ApiVersions with an empty list, whatever it is asked."""

    def advertise_nothing(connection: socket.socket) -> None:
        request = connection.recv(1000)
        correlation = request[8:12]
        connection.sendall(struct.pack(">i", 10) + correlation + struct.pack(">hi", 0, 0))

    assert "does not advertise" in objection_to(serve(advertise_nothing))
