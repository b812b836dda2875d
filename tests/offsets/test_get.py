"""`offsets get`: KIP-1005's tool for any broker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from whole_runs import offsets

from conformance.specs import SPECIAL_SPECS, T


def get(bootstrap: str, *arguments: str) -> tuple[int, list[str], str]:
    ran = offsets("get", "--bootstrap", bootstrap, *arguments)
    return ran.code, ran.out.splitlines(), ran.err


def test_latest_is_asked_of_every_partition_unless_told_otherwise(kafka: str) -> None:
    assert get(kafka, "orders") == (0, ["orders:0:3", "orders:1:1", "orders:2:0"], "")


@pytest.mark.parametrize(
    ("spec", "lines"),
    [
        ("latest", ["orders:0:3", "orders:1:1", "orders:2:0"]),
        ("earliest", ["orders:0:0", "orders:1:0", "orders:2:0"]),
        ("max-timestamp", ["orders:0:2", "orders:1:0"]),
        ("earliest-local", ["orders:0:0", "orders:1:0", "orders:2:0"]),
        ("latest-tiered", []),
        ("earliest-pending-upload", []),
    ],
)
def test_a_name_and_its_number_are_the_same_question(kafka: str, spec: str, lines: list[str]) -> None:
    (number,) = [each.timestamp for each in SPECIAL_SPECS if each.name == spec]
    assert get(kafka, "orders", "--time", spec) == (0, lines, "")
    assert get(kafka, "orders", f"--time={number}") == (0, lines, "")


def test_a_moment_finds_the_first_record_at_or_after_it_and_no_line_where_there_is_none(kafka: str) -> None:
    assert get(kafka, "orders", "--time", str(T + 500)) == (0, ["orders:0:1"], "")


def test_one_partition_can_be_named(kafka: str) -> None:
    assert get(kafka, "orders:1") == (0, ["orders:1:1"], "")


def test_a_number_that_is_no_spec_is_refused_by_the_broker_in_its_own_words(kafka: str) -> None:
    code, lines, said = get(kafka, "orders:0", "--time=-7")
    assert (code, lines) == (4, [])
    assert said == "offsets get: orders:0: the broker refuses: UNSUPPORTED_VERSION\n"


def test_an_unknown_topic_ends_in_one_sentence(kafka: str) -> None:
    code, lines, said = get(kafka, "no-such-topic")
    assert (code, lines) == (4, [])
    assert said == "offsets get: look up topic no-such-topic: UNKNOWN_TOPIC_OR_PARTITION; check the topic's name\n"


def test_an_unknown_partition_ends_in_one_sentence(kafka: str) -> None:
    code, _, said = get(kafka, "orders:7")
    assert (code, said) == (4, "offsets get: topic orders has no partition 7: it has 3, counted from 0\n")


def test_an_unreachable_broker_ends_in_one_sentence() -> None:
    code, _, said = get("127.0.0.1:1", "orders")
    assert code == 4
    assert said == ("offsets get: no broker answers at 127.0.0.1:1: Connection refused; check --bootstrap HOST:PORT\n")


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:", "127.0.0.1:many"])
def test_an_address_that_is_none_ends_in_one_sentence(address: str) -> None:
    code, _, said = get(address, "orders")
    assert code == 5
    assert said == f"offsets get: {address!r} is not HOST:PORT, as in 127.0.0.1:9092\n"


@pytest.fixture
def mute() -> Iterator[str]:
    """An address where somebody listens who is no Kafka: it hangs up on whoever calls."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.listen()
        host, port = server.getsockname()

        def hang_up() -> None:
            for _ in range(4):
                try:
                    caller, _address = server.accept()
                except OSError:
                    return
                caller.close()

        threading.Thread(target=hang_up, daemon=True).start()
        yield f"{host}:{port}"


def test_what_is_no_kafka_ends_in_one_sentence(mute: str) -> None:
    code, _, said = get(mute, "orders")
    assert code == 4
    assert "does not answer like a Kafka" in said
    assert said.count("\n") == 1


def test_a_version_that_the_broker_does_not_speak_ends_in_one_sentence(mock_as_external: str) -> None:
    code, lines, said = get(mock_as_external, "orders", "--time", "latest-tiered")
    assert (code, lines) == (4, [])
    assert said == ("offsets get: the broker cannot say: latest-tiered needs ListOffsets v9, and it speaks up to v7\n")


@pytest.mark.parametrize("arguments", [["orders", "--time", "newest"], ["orders:x"], []])
def test_a_mistake_on_the_command_line_is_told_as_one(arguments: list[str]) -> None:
    code, lines, said = get("127.0.0.1:1", *arguments)
    assert (code, lines) == (5, [])
    assert "offsets get" in said
