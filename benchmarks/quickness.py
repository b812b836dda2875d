"""Is the suite quick enough to be run without thinking? `python -m benchmarks.quickness`, or `make benchmark`.

Three comparisons, each side measured in the same run on one Apache Kafka 4.3.1:
the whole suite against what no suite can do without (one boot, and its slowest single story);
`offsets get` against Kafka's own GetOffsetShell, as commands;
one ListOffsets round trip of the wire client against one of confluent-kafka's `list_offsets`.
"""

from __future__ import annotations

import contextlib
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from tabulate import tabulate

from backends import registry
from backends.java_runtime import find_java
from backends.kafka_jars import kafka_tools_classpath
from backends.presets import prepare
from conformance.batches import Record, encode_batch
from conformance.cluster import Cluster, Question
from conformance.specs import LATEST, T

BACKEND = "apache-kafka@4.3.1"
VERSION = "4.3.1"
ROOT = Path(__file__).parents[1]

COMMANDS = 7
"""Each command is run so often, in turns with its rival, and the median counts: one hiccup decides nothing."""

ROUND_TRIPS = 4000
TURNS = 20

COMMAND_SECONDS = 60.0


def main() -> None:
    print(f"Measuring on {BACKEND}; about a minute.", file=sys.stderr)
    rows = [_suite()]
    with prepare(registry.choose(BACKEND)) as broker, Cluster(broker.bootstrap) as cluster:
        cluster.create_topic("quickness", config={"retention.ms": "-1"})
        cluster.produce("quickness", 0, encode_batch([Record(T)]))
        rows += [_commands(broker.bootstrap), _round_trips(broker.bootstrap, cluster)]
    headings = ["what", "ours", "beside", "theirs", "ratio", "aim"]
    print(tabulate(rows, headings, tablefmt="github", disable_numparse=True))


class _Stopwatch:
    """A pytest plugin that keeps the longest story."""

    slowest = 0.0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.slowest = max(self.slowest, report.duration)


def _suite() -> list[str]:
    with prepare(registry.choose(BACKEND)):
        pass  # the first boot on a machine writes the class archive, and that is not what this is about
    started = time.monotonic()
    with prepare(registry.choose(BACKEND)):
        boot = time.monotonic() - started
    stopwatch = _Stopwatch()
    with tempfile.TemporaryDirectory() as results, contextlib.redirect_stdout(io.StringIO()):
        arguments = [str(ROOT / "suites"), f"--backend={BACKEND}", f"--results={results}", "-q", "-n", "2"]
        started = time.monotonic()
        pytest.main([*arguments, "-p", "no:cacheprovider"], plugins=[stopwatch])
        whole = time.monotonic() - started
    bound = boot + stopwatch.slowest
    beside = f"one boot ({boot:.1f} s) + slowest story ({stopwatch.slowest:.1f} s)"
    return ["the whole suite, -n 2", f"{whole:.1f} s", beside, f"{bound:.1f} s", f"{whole / bound:.1f}x as long", "2x"]


def _commands(bootstrap: str) -> list[str]:
    java = find_java()
    jars = os.pathsep.join(map(str, kafka_tools_classpath(VERSION, java)))
    theirs = [str(java.executable), "-XX:TieredStopAtLevel=1", "-cp", jars, "org.apache.kafka.tools.GetOffsetShell"]
    theirs += ["--bootstrap-server", bootstrap, "--topic", "quickness"]
    ours = [sys.executable, "-P", "-m", "offsets", "get", "--bootstrap", bootstrap, "quickness"]
    took: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(COMMANDS):
        for name, command in (("ours", ours), ("theirs", theirs)):
            started = time.monotonic()
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=True
            )
            took[name].append(time.monotonic() - started)
            assert done.stdout == "quickness:0:1\n", done.stdout
    mine, other = statistics.median(took["ours"]), statistics.median(took["theirs"])
    return ["offsets get", f"{mine:.2f} s", "GetOffsetShell", f"{other:.2f} s", f"{other / mine:.1f}x faster", "5x"]


def _round_trips(bootstrap: str, cluster: Cluster) -> list[str]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    question = Question("quickness", 0, LATEST)
    place = TopicPartition("quickness", 0)
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]

    def ours() -> int:
        return cluster.list_offsets(question).fields["offset"]

    def theirs() -> int:
        (future,) = admin.list_offsets({place: latest}).values()
        return int(future.result(timeout=COMMAND_SECONDS).offset)

    assert ours() == theirs() == 1
    mine, other = _microseconds(ours, theirs)
    told = f"{other / mine:.1f}x faster"
    return ["wire client, one ListOffsets", f"{mine:.0f} us", "confluent-kafka", f"{other:.0f} us", told, "3x"]


def _microseconds(*asks: Callable[[], int]) -> list[float]:
    """The median of each, taken in turns: a broker gets quicker as it runs, and a machine has its moods."""
    took: list[list[float]] = [[] for _ in asks]
    for turn in range(TURNS + 1):
        for ask, times in zip(asks, took, strict=True):
            for _ in range(ROUND_TRIPS // TURNS):
                started = time.perf_counter()
                ask()
                if turn:  # the first turn warms up
                    times.append(time.perf_counter() - started)
    return [statistics.median(times) * 1e6 for times in took]


if __name__ == "__main__":
    main()
