"""Apache Kafka from its jars, as a process of this machine: one KRaft node, with or without tiered storage.

Settings make background work quick (retention looks every 100 ms instead of every five minutes) and change no
answer. Flags and archive make it boot in a second or two.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from backends.clocks import with_clock
from backends.java_runtime import find_java
from backends.kafka_jars import kafka_classpath
from backends.processes import (
    end_processes_of,
    free_ports,
    last_lines,
    new_workspace,
    start_process,
    stop_process,
)
from backends.registry import Backend
from backends.running import DidNotStart, RunningBackend, await_ready
from backends.user_cache import SetupError, only_writer, published, user_cache
from conformance.partition import FaultNotApplied

CLUSTER_ID = "offsetConformance00000"  # any 22 characters of base64url; a leading dash breaks StorageTool

BOOT_SECONDS = 90.0
"""A boot takes 2 s, and ten times that with both cores busy and four brokers starting at once."""

FORMAT_SECONDS = 60.0

BOOT_ATTEMPTS = 3
"""A port chosen as free can be taken before the broker binds it; three times in a row is something else."""

LAST_WITH_SLOW_FIRST_TICK = (3, 7)
"""Up to 3.7 the first retention check comes 30 s after boot, whatever log.initial.task.delay.ms says."""

JVM_FLAGS = (
    "-Xmx384m",
    "-Xms64m",
    # The C1 compiler alone and the serial collector halve the CPU time of a boot, and no broker here lives long.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Djava.awt.headless=true",
)

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    # One node holds every replica, internal topics included.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    # Few threads: the machine has two cores and several brokers.
    "num.network.threads": "1",
    "num.io.threads": "2",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "2097152",
    # Records of scenarios are dated 2023 and must not expire by themselves.
    "log.retention.ms": "-1",
    # Background work at once instead of after minutes.
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "0",
    "log.cleaner.backoff.ms": "100",
    # Zero makes 3.7 and earlier hang on shutdown: LogManager.deleteLogs waits on a queue for ever.
    "log.segment.delete.delay.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    # The controller waits this long for company before it writes: 25 ms by default, for every topic created.
    "controller.quorum.append.linger.ms": "0",
    # A restarted broker waits for its own old session to expire: 9 s by default.
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "100",
}

TIERED_SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    "rlmm.config.remote.log.metadata.initialization.retry.interval.ms": "100",
    "remote.log.manager.task.interval.ms": "100",
}


class ApacheKafka(RunningBackend):
    """One node of Apache Kafka at a version, from jars."""

    oracle = True

    def __init__(self, backend: Backend, *, tiered: bool = False) -> None:
        super().__init__(backend)
        if backend.version is None:
            raise ValueError("Apache Kafka needs a version")
        self._version = backend.version
        self._tiered = tiered
        self._workspace: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._booted = False
        self._clock: Mapping[str, str] = {}
        if self.kafka_release <= LAST_WITH_SLOW_FIRST_TICK:
            self.patience_seconds = 60.0

    @property
    def kafka_release(self) -> tuple[int, ...]:
        """Major and minor, which is where behaviour changes."""
        return tuple(int(part) for part in self._version.split(".")[:2])

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def build(self) -> str:
        storage = " with LocalTieredStorage" if self._tiered else ""
        return f"org.apache.kafka:kafka_2.13:{self._version}{storage}, Java {self._java.version} ({self._java.origin})"

    def start(self) -> None:
        try:
            self._java = find_java()
            self._jars = kafka_classpath(self._version, self._java, tiered=self._tiered)
            formatted = self._formatted_directory()
        except SetupError as error:
            raise DidNotStart(str(error)) from error
        for attempt in range(1, BOOT_ATTEMPTS + 1):
            self._workspace = new_workspace()
            shutil.copytree(formatted, self._workspace / "data")
            self._port, self._controller_port = free_ports(2)
            self._write_settings(self._workspace)
            try:
                self._boot()
                return
            except DidNotStart:
                taken = "Address already in use" in (self._workspace / "broker.log").read_text(errors="replace")
                self.stop()
                if not taken or attempt == BOOT_ATTEMPTS:
                    raise

    def stop(self) -> None:
        if self._process is not None:
            stop_process(self._process)
            self._process = None
            self._keep_archive()
        if self._workspace is not None:
            shutil.rmtree(self._workspace, ignore_errors=True)
            self._workspace = None

    def restart(self) -> None:
        assert self._process is not None
        stop_process(self._process)
        self._keep_archive()
        self._boot()

    def kill(self) -> None:
        assert self._process is not None
        stop_process(self._process, how=signal.SIGKILL)
        self._boot()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def step_clock(self, seconds: int) -> None:
        self._clock = with_clock(seconds)
        self.restart()

    def _signal(self, kind: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            raise FaultNotApplied(f"{self.backend.column} has ended, so it cannot be sent {kind.name}")
        self._process.send_signal(kind)

    def _boot(self) -> None:
        assert self._workspace is not None
        self._booted = False
        log = self._workspace / "broker.log"
        command = [
            str(self._java.executable),
            *JVM_FLAGS,
            *self._archive_flags(),
            "-cp",
            os.pathsep.join(map(str, self._jars)),
            "kafka.Kafka",
            str(self._workspace / "server.properties"),
        ]
        process = self._process = start_process(command, log, self._clock)

        def death() -> str | None:
            code = process.poll()
            return None if code is None else f"Kafka exited with {code}: {last_lines(log)}"

        await_ready(self.bootstrap, seconds=BOOT_SECONDS, alive=death)
        self._booted = True

    def _write_settings(self, workspace: Path) -> None:
        settings = SETTINGS | {
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port},CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "log.dirs": str(workspace / "data"),
        }
        if self._tiered:
            settings |= TIERED_SETTINGS | {"rsm.config.dir": str(workspace / "tier")}
        lines = [f"{name}={value}" for name, value in settings.items()]
        (workspace / "server.properties").write_text("\n".join(lines) + "\n")

    def _formatted_directory(self) -> Path:
        """An empty log directory as StorageTool formats it, made once per version and copied for each broker."""
        target = user_cache() / "kafka" / self._version / "formatted"
        if target.is_dir():
            return target
        with only_writer(target, patience=2 * FORMAT_SECONDS):
            if not target.is_dir():
                with published(target) as building:
                    self._format(building)
        return target

    def _format(self, directory: Path) -> None:
        workspace = new_workspace()
        try:
            self._port, self._controller_port = free_ports(2)
            self._write_settings(workspace)
            command = [
                str(self._java.executable),
                *JVM_FLAGS,
                "-cp",
                os.pathsep.join(map(str, self._jars)),
                "kafka.tools.StorageTool",
                "format",
                "-t",
                CLUSTER_ID,
                "-c",
                str(workspace / "server.properties"),
            ]
            done = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_SECONDS, check=False)
            if done.returncode:
                last = (done.stderr or done.stdout).strip().splitlines()[-1:]
                raise DidNotStart(f"StorageTool could not format a log directory: {' '.join(last)}")
            shutil.copytree(workspace / "data", directory, dirs_exist_ok=True)
        except subprocess.TimeoutExpired as error:
            raise DidNotStart(f"StorageTool did not format a log directory within {FORMAT_SECONDS:g} s") from error
        finally:
            end_processes_of(workspace)
            shutil.rmtree(workspace, ignore_errors=True)

    # A class data archive halves the CPU time of a boot again. The JVM writes it when an ordinary run ends, and
    # ignores one that does not fit, so nothing depends on it. A boot that failed loaded too few classes to keep.

    def _archive(self) -> Path:
        fits = "\n".join([self._java.executable.resolve().as_posix(), str(self._java.version), *map(str, self._jars)])
        return user_cache() / "class-archives" / f"kafka-{hashlib.sha256(fits.encode()).hexdigest()[:16]}.jsa"

    def _archive_flags(self) -> list[str]:
        assert self._workspace is not None
        archive = self._archive()
        if archive.exists():
            return [f"-XX:SharedArchiveFile={archive}"]
        return [f"-XX:ArchiveClassesAtExit={self._workspace / 'classes.jsa'}"]

    def _keep_archive(self) -> None:
        if self._workspace is None or not self._booted:
            return
        written = self._workspace / "classes.jsa"
        archive = self._archive()
        if not written.exists() or archive.exists():
            return
        archive.parent.mkdir(parents=True, exist_ok=True)
        arriving = archive.with_suffix(f".{os.getpid()}")
        shutil.copyfile(written, arriving)
        arriving.replace(archive)
