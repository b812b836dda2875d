"""The in-house broker of `broker/`, as a process of this machine, with the memory engine.

Settings make background work quick, as for Apache Kafka, and change no answer.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

from backends.processes import last_lines, new_workspace, start_process, stop_process
from backends.registry import Backend
from backends.running import DidNotStart, RunningBackend, await_ready
from conformance.partition import FaultNotApplied
from conformance.waiting import DeadlinePassed, eventually

BOOT_SECONDS = 20.0
"""A boot takes 0.3 s; with both cores busy and other brokers starting at once, some times that."""

SETTINGS = {
    "auto.create.topics.enable": "false",
    # Records of scenarios are dated 2023 and must not expire by themselves.
    "log.retention.ms": "-1",
    # Background work at once instead of after minutes.
    "log.retention.check.interval.ms": "100",
    "log.cleaner.backoff.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
}

ANNOUNCEMENT = "listening on "


class InHouse(RunningBackend):
    """One process of `python -m broker`. It says itself which port it got."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._workspace: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._workspace = new_workspace()
        log = self._workspace / "broker.log"
        # The workspace in the command line is how a later run finds a broker that its run left behind.
        command = [sys.executable, "-m", "broker", "--listen", "127.0.0.1:0", "--log-file", str(log)]
        for name, value in SETTINGS.items():
            command += ["--config", f"{name}={value}"]
        announced = self._workspace / "announced"
        process = self._process = start_process(command, announced)

        def death() -> str | None:
            code = process.poll()
            return None if code is None else f"the broker exited with {code}: {last_lines(log)} {last_lines(announced)}"

        def look() -> str:
            dead = death()
            if dead:
                raise DidNotStart(dead)
            return next((line for line in announced.read_text().splitlines() if line.startswith(ANNOUNCEMENT)), "")

        try:
            line = eventually(look, bool, reason="the broker to say where it listens", seconds=BOOT_SECONDS)
        except DeadlinePassed as error:
            raise DidNotStart(str(error)) from error
        self._address = line.removeprefix(ANNOUNCEMENT).split(",")[0]
        await_ready(self._address, seconds=BOOT_SECONDS, alive=death)

    def stop(self) -> None:
        if self._process is not None:
            stop_process(self._process)
            self._process = None
        if self._workspace is not None:
            shutil.rmtree(self._workspace, ignore_errors=True)
            self._workspace = None

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, kind: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            raise FaultNotApplied(f"{self.backend.column} has ended, so it cannot be sent {kind.name}")
        self._process.send_signal(kind)

    @property
    def bootstrap(self) -> str:
        return self._address

    @property
    def build(self) -> str:
        return f"broker/ of this repository, memory engine, Python {sys.version.split()[0]}"
