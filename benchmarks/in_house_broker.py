"""The in-house broker beside Apache Kafka and librdkafka's mock, on this machine, in one run.

    python -m benchmarks.in_house_broker [--seconds 3] [--backend NAME ...]

Each broker is a process of its own and is asked by the same client, which sends requests that were encoded before
the clock started and does not decode answers: what is measured is the broker. Wall-clock rates depend on what else
the machine does; CPU seconds per request are the number to compare. librdkafka's mock keeps few records, so writes
and reads are not asked of it in bulk.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psutil
from kio.serial import entity_writer
from tabulate import tabulate

from backends.presets import prepare
from backends.registry import choose
from backends.running import RunningBackend
from conformance.batches import Record, encode_batch
from conformance.cluster import Cluster
from conformance.wire import API_KEYS, compose

BACKENDS = ("in-house@memory", "apache-kafka@4.3.1", "librdkafka-mock")
RECORDS_PER_BATCH = 1000
RECORD = 100
MILLION = 1_000_000
CONNECTIONS = 64


@dataclass
class Row:
    boot_seconds: float = 0.0
    one: float = 0.0
    many: float = 0.0
    cpu_ms_one: float = 0.0
    cpu_ms_many: float = 0.0
    produce: float = 0.0
    fetch: float = 0.0
    memory: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each rate is measured")
    parser.add_argument("--backend", action="append", help=f"which brokers (default: {', '.join(BACKENDS)})")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    rows = {}
    for name in options.backend or BACKENDS:
        print(f"measuring {name} ...", file=sys.stderr)
        rows[name] = measure(name, options.seconds)
    print(show(rows))


def serve(name: str) -> None:
    """Start a backend in this process and stay: so that the one in-process broker has a process of its own too."""
    with prepare(choose(name)) as running:
        print(running.bootstrap, flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


@contextlib.contextmanager
def served(name: str) -> Iterator[tuple[str, float]]:
    """The address of a backend that is ready, and how long that took from the start of its process."""
    started = time.monotonic()
    command = [sys.executable, "-m", "benchmarks.in_house_broker", "--serve", name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise SystemExit(f"{name} did not start")
        yield address, time.monotonic() - started
    finally:
        process.terminate()
        process.wait(30)


def boot_seconds(name: str) -> float:
    """From nothing to a record written and read back, without the start of this measuring process."""
    backend: RunningBackend = prepare(choose(name))
    started = time.monotonic()
    with backend:
        return time.monotonic() - started


def measure(name: str, seconds: float) -> Row:
    row = Row(boot_seconds=min(boot_seconds(name) for _ in range(3)))
    with served(name) as (address, _boot), Cluster(address) as cluster:
        broker = psutil.Process(listener_pid(address))
        topic = "benchmark"
        cluster.create_topic(topic, config={"retention.ms": "-1"} if "mock" not in name else {})
        cluster.produce(topic, 0, encode_batch([Record(0)]))
        version = cluster.highest("list_offsets")
        question = compose("list_offsets", version, list_offsets_fields(topic))
        request = frame("list_offsets", question)
        pump(address, request, 1, seconds / 3)  # the JVM compiles what is used often
        row.one, row.cpu_ms_one = with_cpu(broker, lambda: pump(address, request, 1, seconds))
        row.many, row.cpu_ms_many = with_cpu(broker, lambda: pump(address, request, CONNECTIONS, seconds))
        if "mock" in name:
            return row
        batch = encode_batch([Record(number, b"v" * RECORD) for number in range(RECORDS_PER_BATCH)])
        write = frame("produce", compose("produce", cluster.highest("produce", up_to=12), produce_fields(topic, batch)))
        empty = broker.memory_info().rss
        send(address, write, MILLION // RECORDS_PER_BATCH)
        row.memory = (broker.memory_info().rss - empty) / 2**20
        row.produce = pump(address, write, 1, seconds) * len(batch) / 1e6
        read = frame("fetch", compose("fetch", cluster.highest("fetch", up_to=12), fetch_fields(topic)))
        row.fetch = pump_bytes(address, read, seconds) / 1e6
    return row


def with_cpu(broker: psutil.Process, work: Callable[[], float]) -> tuple[float, float]:
    """A rate, and the milliseconds of CPU that the broker took for a thousand."""
    before, started = broker.cpu_times(), time.monotonic()
    rate = work()
    after, took = broker.cpu_times(), time.monotonic() - started
    spent = after.user + after.system - before.user - before.system
    return rate, spent * 1000 / (rate * took) * 1000


def frame(api: str, request: Any) -> bytes:
    """A request as it goes over the wire."""
    body = io.BytesIO()
    request_type: type = type(request)
    entity_writer(request_type)(body, request)
    header = struct.pack(">hhih", API_KEYS[api], request.__version__, 1, -1) + (
        b"\x00" if request.__flexible__ else b""
    )
    payload = header + body.getvalue()
    return struct.pack(">i", len(payload)) + payload


def listener_pid(address: str) -> int:
    port = int(address.rpartition(":")[2])
    for each in psutil.net_connections("tcp"):
        if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == port and each.pid:
            return int(each.pid)
    raise SystemExit(f"nobody listens on {address}")


def list_offsets_fields(topic: str) -> dict[str, object]:
    entry = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    return {
        "replica_id": -1,
        "isolation_level": 0,
        "topics": [{"name": topic, "partitions": [entry]}],
        "timeout": timedelta(0),
    }


def produce_fields(topic: str, batch: bytes) -> dict[str, object]:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
    return {"transactional_id": None, "acks": -1, "timeout": timedelta(seconds=10), "topic_data": data}


def fetch_fields(topic: str) -> dict[str, object]:
    wanted = {"partition": 0, "fetch_offset": 1, "partition_max_bytes": 2**20, "log_start_offset": -1}
    return {
        "replica_id": -1,
        "max_wait": timedelta(0),
        "min_bytes": 1,
        "max_bytes": 2**20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": topic, "partitions": [wanted | {"current_leader_epoch": -1}]}],
        "forgotten_topics_data": (),
        "rack_id": "",
    }


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def receive(connection: socket.socket) -> int:
    """Read one answer and leave it unread in every other sense; its size."""
    head = connection.recv(4, socket.MSG_WAITALL)
    (left,) = size = struct.unpack(">i", head)
    while left:
        left -= len(connection.recv(min(left, 2**20)))
    return int(size[0])


def send(address: str, request: bytes, times: int) -> None:
    with connect(address) as connection:
        for _ in range(times):
            connection.sendall(request)
            receive(connection)


def pump(address: str, request: bytes, connections: int, seconds: float) -> float:
    """Answers per second when each connection asks again as soon as it is answered."""
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for _ in range(connections):
            connection = stack.enter_context(connect(address))
            selector.register(connection, selectors.EVENT_READ)
            connection.sendall(request)
        answers = 0
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            for key, _ in selector.select(1.0):
                asking: socket.socket = key.fileobj  # type: ignore[assignment]
                receive(asking)
                asking.sendall(request)
                answers += 1
        return answers / (time.perf_counter() - started)


def pump_bytes(address: str, request: bytes, seconds: float) -> float:
    """Bytes of answers per second on one connection."""
    with connect(address) as connection:
        received = 0
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            connection.sendall(request)
            received += receive(connection)
        return received / (time.perf_counter() - started)


def show(rows: dict[str, Row]) -> str:
    lines: list[tuple[str, Callable[[Row], float], str]] = [
        ("start to first record read back, s", lambda row: row.boot_seconds, ".2f"),
        ("ListOffsets/s, 1 connection", lambda row: row.one, ".0f"),
        (f"ListOffsets/s, {CONNECTIONS} connections", lambda row: row.many, ".0f"),
        ("CPU ms per 1000 ListOffsets, 1 connection", lambda row: row.cpu_ms_one, ".1f"),
        (f"CPU ms per 1000 ListOffsets, {CONNECTIONS} connections", lambda row: row.cpu_ms_many, ".1f"),
        ("produce, MB/s (1000 records of 100 B a batch)", lambda row: row.produce, ".0f"),
        ("fetch, MB/s (1 MiB a request)", lambda row: row.fetch, ".0f"),
        ("memory for 1,000,000 records of 100 B, MiB", lambda row: row.memory, ".0f"),
    ]
    table = [
        [title, *(format(value(row), form) if value(row) else "-" for row in rows.values())]
        for title, value, form in lines
    ]
    return tabulate(table, headers=["", *rows], stralign="right", disable_numparse=True)


if __name__ == "__main__":
    main()
