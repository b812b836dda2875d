"""Whole runs of the suites, made once and looked at by several tests, and the machine as a newcomer has it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from whole_runs import ROOT, RUN_SECONDS, SOMETIMES, Checks, MatrixRun, offsets

from backends import registry
from backends.presets import prepare
from conformance.batches import Record, encode_batch
from conformance.cluster import Cluster
from conformance.results import read_checks
from conformance.specs import T


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every-version",
        action="store_true",
        help="hold every version of Apache Kafka against the golden answers, not only those of make matrix",
    )


@pytest.fixture(scope="session")
def path_without_java(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Everything on PATH but Java, as on a machine where none is installed."""
    directory = tmp_path_factory.mktemp("path")
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for file in Path(place).iterdir() if Path(place).is_dir() else ():
            link = directory / file.name
            if not file.name.startswith("java"):
                link.unlink(missing_ok=True)
                link.symlink_to(file)
    return str(directory)


@pytest.fixture(scope="session")
def matrix_run(tmp_path_factory: pytest.TempPathFactory, path_without_java: str) -> MatrixRun:
    out = tmp_path_factory.mktemp("matrix")
    ran = offsets("run", "--out", str(out), seconds=RUN_SECONDS, PATH=path_without_java, JAVA_HOME="")
    return MatrixRun(ran, out)


@pytest.fixture(scope="session")
def checks_of(
    matrix_run: MatrixRun, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[[str], Checks]:
    """The recorded checks of a backend: those of the matrix, or of a run of its own."""
    results = tmp_path_factory.mktemp("results")

    def checks(backend: str) -> Checks:
        directory = results if backend in SOMETIMES else matrix_run.results
        if backend in SOMETIMES and not request.config.getoption("--every-version"):
            pytest.skip("not run: --every-version was not asked for (make golden does)")
        if backend in SOMETIMES and not list(directory.glob(f"*.{backend}.*")):
            command = [sys.executable, "-m", "pytest", str(ROOT / "suites"), "-q", "--tb=short"]
            done = subprocess.run(
                [*command, f"--backend={backend}", f"--results={directory}"],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=RUN_SECONDS,
                check=False,
            )
            assert done.returncode == 0, done.stdout[-5000:]
        return list(read_checks(sorted(directory.glob(f"*.{backend}.*"))))

    return checks


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """The address of a Kafka 4.3.1 with the topic `orders`: partition 0 has three records, 1 one, 2 none."""
    with prepare(registry.choose("apache-kafka@4.3.1")) as broker, Cluster(broker.bootstrap) as cluster:
        cluster.create_topic("orders", partitions=3, config={"retention.ms": "-1"})
        for partition, count in ((0, 3), (1, 1)):
            for number in range(count):
                cluster.produce("orders", partition, encode_batch([Record(T + number * 1000)]))
        yield broker.bootstrap


@pytest.fixture
def mock_as_external() -> Iterator[str]:
    """librdkafka's mock cluster, which speaks ListOffsets up to v7."""
    client = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (node,) = client.list_topics(timeout=10).brokers.values()
    yield f"{node.host}:{node.port}"
    del client
