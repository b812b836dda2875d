"""Apache Kafka from its jars: on loopback, ready when it says so, hard to hurt, and gone without a trace."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from backends import apache_kafka, processes
from backends.apache_kafka import ApacheKafka
from backends.registry import choose
from backends.running import DidNotStart
from backends.user_cache import user_cache
from conformance.batches import Record, encode_batch
from conformance.cluster import Cluster
from conformance.partition import FaultNotApplied
from conformance.waiting import eventually
from conformance.wire import NoAnswerInTime

KAFKA = choose("apache-kafka@4.3.1")

PATIENCE_SECONDS = 60.0
"""A broker boots in two seconds and stops in one; thirty times that is a very busy machine."""


@pytest.fixture(scope="module", autouse=True)
def temporary_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where all brokers of this module keep their workspaces, so that leftovers can be told."""
    directory = tmp_path_factory.mktemp("brokers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(directory))
        patch.setenv("TMPDIR", str(directory))
        yield directory


@pytest.fixture(scope="module")
def kafka() -> Iterator[ApacheKafka]:
    """One broker for the tests that leave it running."""
    broker = ApacheKafka(KAFKA)
    with broker:
        yield broker


def brokers_of(directory: Path) -> list[psutil.Process]:
    """Processes with a file of this directory in their command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and any(f"{directory}{os.sep}" in part for part in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue  # ended meanwhile
    return found


def leftovers(directory: Path) -> tuple[list[psutil.Process], list[Path]]:
    return brokers_of(directory), list(directory.glob(f"{processes.PREFIX}*"))


def write(broker: ApacheKafka, topic: str, value: bytes) -> int:
    with Cluster(broker.bootstrap) as cluster:
        if not cluster.topic_exists(topic):
            cluster.create_topic(topic)
        cluster.await_leaders(topic, [0])
        return cluster.produce(topic, 0, encode_batch([Record(0, value)])).fields["base_offset"]


def read(broker: ApacheKafka, topic: str) -> list[bytes | None]:
    with Cluster(broker.bootstrap) as cluster:
        cluster.await_leaders(topic, [0], seconds=PATIENCE_SECONDS)
        return [record.value for record in cluster.fetch(topic, 0, 0).records]


# -- a broker that runs


def test_ready_means_that_a_record_can_be_written_and_read(kafka: ApacheKafka) -> None:
    assert write(kafka, "first", b"hello") == 0
    assert read(kafka, "first") == [b"hello"]


def test_it_listens_on_loopback_alone(kafka: ApacheKafka, temporary_directory: Path) -> None:
    (process,) = brokers_of(temporary_directory)
    listening = [each.laddr for each in process.net_connections() if each.status == psutil.CONN_LISTEN]
    assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}
    assert kafka.bootstrap in {f"127.0.0.1:{address.port}" for address in listening}


def test_it_says_exactly_what_runs(kafka: ApacheKafka) -> None:
    assert kafka.build.startswith("org.apache.kafka:kafka_2.13:4.3.1, Java ")
    assert (kafka.oracle, kafka.kafka_release) == (True, (4, 3))
    assert kafka.facts.backend == "apache-kafka@4.3.1"


@pytest.mark.parametrize("lever", ["restart", "kill"])
def test_a_restarted_and_a_killed_broker_keep_address_and_records(
    kafka: ApacheKafka, temporary_directory: Path, lever: str
) -> None:
    address = kafka.bootstrap
    (before,) = brokers_of(temporary_directory)
    assert write(kafka, lever, b"acknowledged") == 0
    getattr(kafka, lever)()
    (after,) = brokers_of(temporary_directory)
    assert after.pid != before.pid
    assert kafka.bootstrap == address
    assert read(kafka, lever) == [b"acknowledged"]


def test_a_paused_broker_says_nothing_and_then_goes_on(kafka: ApacheKafka) -> None:
    assert write(kafka, "paused", b"acknowledged") == 0
    kafka.pause()
    try:
        with pytest.raises(NoAnswerInTime):
            Cluster(kafka.bootstrap, answer_seconds=1.0)
    finally:
        kafka.resume()
    assert read(kafka, "paused") == [b"acknowledged"]


def test_a_broker_that_is_not_there_cannot_be_paused() -> None:
    with pytest.raises(FaultNotApplied, match="has ended, so it cannot be sent SIGSTOP"):
        ApacheKafka(KAFKA).pause()


def test_a_second_broker_has_ports_of_its_own_and_leaves_nothing_when_stopped(
    kafka: ApacheKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    second = ApacheKafka(KAFKA)
    with second:
        assert second.bootstrap != kafka.bootstrap
        assert len(brokers_of(tmp_path)) == 1
    assert leftovers(tmp_path) == ([], [])
    second.stop()  # twice is once


# -- a broker that does not start


@pytest.fixture
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user cache of the test's own, with the jars of the real one; a broker that ran has brought them."""
    jars = user_cache() / "kafka" / "4.3.1" / "broker"
    cache = tmp_path / "cache"
    (cache / "kafka" / "4.3.1").mkdir(parents=True)
    (cache / "kafka" / "4.3.1" / "broker").symlink_to(jars)
    monkeypatch.setenv("OFFSETS_CACHE", str(cache))
    return cache


def objection_to_start(temporary_directory: Path, version: str = "4.3.1") -> str:
    before = leftovers(temporary_directory)
    with pytest.raises(DidNotStart) as refusal:
        ApacheKafka(choose(f"apache-kafka@{version}")).start()
    assert leftovers(temporary_directory) == before
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_a_flag_that_java_refuses_is_told_in_javas_words(
    temporary_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apache_kafka, "JVM_FLAGS", ("-XX:+NoSuchFlag",))
    said = objection_to_start(temporary_directory)
    assert said.startswith("Kafka exited with 1: ")
    assert "Unrecognized VM option 'NoSuchFlag'" in said


def test_jars_that_are_not_there_are_told_in_javas_words(
    temporary_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apache_kafka, "kafka_classpath", lambda *_, **__: (tmp_path / "nowhere.jar",))
    assert "Could not find or load main class kafka.Kafka" in objection_to_start(temporary_directory)


@pytest.mark.usefixtures("kafka")
def test_a_damaged_log_directory_is_told_in_kafkas_words(temporary_directory: Path, private_cache: Path) -> None:
    formatted = private_cache / "kafka" / "4.3.1" / "formatted"
    formatted.mkdir()
    (formatted / "meta.properties").write_text("version=1\ncluster.id=\n")
    said = objection_to_start(temporary_directory)
    assert said.startswith("Kafka exited with 1: ")
    assert list(private_cache.glob("class-archives/*")) == [], "what a failed boot loaded is not worth an archive"


def test_a_version_that_was_never_released_does_not_start(
    temporary_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFSETS_CACHE", str(tmp_path))
    said = objection_to_start(temporary_directory, version="4.3.999")
    assert said.endswith("ask for a version of Apache Kafka that was released.")


# -- a run that is ended by somebody


class Run:
    """`pytest suites` in a process of its own, with a temporary directory of its own."""

    def __init__(self, place: Path, selection: str) -> None:
        self.temporary = place / "tmp"
        self.temporary.mkdir(exist_ok=True)
        self.results = place / "results"
        self._output = place / "output"
        command = [sys.executable, "-m", "pytest", "suites", "--backend", KAFKA.column, "-k", selection]
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [*command, "-p", "no:cacheprovider", "--results", str(self.results)],
                cwd=Path(apache_kafka.__file__).parent.parent,
                env=os.environ | {"TMPDIR": str(self.temporary)},
                stdout=output,
                stderr=subprocess.STDOUT,
                # A shell that starts these tests in the background has them ignore Ctrl-C, and children inherit that.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    def until(self, look: Callable[[], bool], reason: str) -> None:
        def holds() -> bool:
            assert self.process.poll() is None, f"the run ended before its time: {self._output.read_text()}"
            return look()

        eventually(holds, bool, reason=reason, seconds=PATIENCE_SECONDS)

    def until_its_broker_boots(self) -> None:
        self.until(lambda: bool(brokers_of(self.temporary)), "a broker to be started")

    def until_its_first_check(self) -> None:
        self.until(lambda: any(file.read_bytes().count(b"\n") > 1 for file in self.results.glob("*")), "a check")


@pytest.fixture
def start_run(tmp_path: Path) -> Iterator[Callable[[str], Run]]:
    runs: list[Run] = []

    def start(selection: str) -> Run:
        runs.append(Run(tmp_path, selection))
        return runs[-1]

    yield start
    for run in runs:
        if run.process.poll() is None:
            run.process.terminate()
            run.process.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize(
    ("ending", "moment"),
    [
        pytest.param(signal.SIGINT, Run.until_its_first_check, id="Ctrl-C"),
        pytest.param(signal.SIGTERM, Run.until_its_first_check, id="a polite kill"),
        pytest.param(signal.SIGINT, Run.until_its_broker_boots, id="Ctrl-C while the broker boots"),
    ],
)
def test_a_run_that_is_ended_leaves_no_broker_and_no_directory(
    start_run: Callable[[str], Run], ending: signal.Signals, moment: Callable[[Run], None]
) -> None:
    run = start_run("latest")
    moment(run)
    run.process.send_signal(ending)
    # `python -m` dies even of an interrupt that was handled, if it came in the exec of a string, as dataclasses use it.
    assert run.process.wait(PATIENCE_SECONDS) in (pytest.ExitCode.INTERRUPTED, -signal.SIGINT)
    assert leftovers(run.temporary) == ([], [])


def test_what_a_killed_run_left_is_swept_by_the_next(start_run: Callable[[str], Run]) -> None:
    run = start_run("latest")
    run.until_its_broker_boots()
    run.process.kill()
    run.process.wait(PATIENCE_SECONDS)
    (orphan,) = brokers_of(run.temporary)
    assert start_run("latest_of_a_partition_nobody_wrote_to").process.wait(PATIENCE_SECONDS) == pytest.ExitCode.OK
    assert orphan not in brokers_of(run.temporary)
    assert leftovers(run.temporary) == ([], [])
