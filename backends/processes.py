"""Broker processes and their directories: owned by this run, and swept when their run died without a word.

Each run keeps its files in one workspace in the temporary directory. The workspace names its owner, and every
broker has the workspace in its command line, so that the next run can find what a `kill -9` left behind, and
nothing else.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from conformance.waiting import DeadlinePassed, eventually

PREFIX = "offset-conformance-"
OWNER = "owner.json"

STOP_SECONDS = 15.0
"""A Kafka stops in half a second; one that writes its class archive takes up to seven."""

SAME_START_SECONDS = 2.0
"""Linux tells the time of boot in whole seconds, and may round it otherwise the next time."""


@dataclass(frozen=True)
class Owner:
    """The process that something belongs to, told apart from a later one with the same number."""

    pid: int
    since_boot: float

    @classmethod
    def this_process(cls) -> Owner:
        me = psutil.Process()
        return cls(me.pid, _since_boot(me))

    @classmethod
    def from_json(cls, text: str) -> Owner:
        """Raises ValueError, KeyError or TypeError for what is no owner."""
        known = json.loads(text)
        return cls(int(known["pid"]), float(known["since_boot"]))

    def as_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    def lives(self) -> bool:
        """Whether it still runs; of a process that cannot be looked at, that is assumed."""
        try:
            process = psutil.Process(self.pid)
            # A pid is reused sooner or later, but hardly by a process of the same age.
            return abs(_since_boot(process) - self.since_boot) < SAME_START_SECONDS and not _ended(process)
        except psutil.NoSuchProcess:
            return False
        except psutil.Error:
            return True


def new_workspace() -> Path:
    """A directory for one broker, marked as owned by this process. Leftovers of dead owners go first."""
    sweep()
    workspace = Path(tempfile.mkdtemp(prefix=PREFIX))
    (workspace / OWNER).write_text(Owner.this_process().as_json())
    return workspace


def sweep() -> None:
    """End the brokers and remove the workspaces of runs that are no more."""
    for owner_file in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{OWNER}"):
        if not _owner_lives(owner_file):
            end_processes_of(owner_file.parent)
            shutil.rmtree(owner_file.parent, ignore_errors=True)


def _owner_lives(owner_file: Path) -> bool:
    try:
        return Owner.from_json(owner_file.read_text()).lives()
    except (OSError, ValueError, KeyError, TypeError):
        return True  # not readable, so not ours to judge


def _since_boot(process: psutil.Process) -> float:
    """When a process started, in seconds since boot: the time of day changes whenever the clock is set."""
    return process.create_time() - psutil.boot_time()


def end_processes_of(workspace: Path) -> None:
    """Kill every process that was started with a file of this workspace as an argument."""
    mark = f"{workspace}{os.sep}"
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, DeadlinePassed):
            if process.pid != os.getpid() and any(mark in argument for argument in process.cmdline()):
                process.kill()
                eventually(partial(_ended, process), bool, reason="a killed process to end", seconds=STOP_SECONDS)


def _ended(process: psutil.Process) -> bool:
    """Gone, or waiting to be collected by its parent: the first process of a container may never do that."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def start_process(
    command: list[str], log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a broker where its log is, so that whatever else it writes goes there too.

    It gets a session of its own, so that Ctrl-C reaches the suite and not the broker. `environment` is added to ours.
    """
    with log.open("ab") as stream:
        return subprocess.Popen(
            command,
            cwd=log.parent,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stop_process(process: subprocess.Popen[bytes], *, how: signal.Signals = signal.SIGTERM) -> None:
    """End a process: asked first, killed when it does not listen."""
    if process.poll() is None:
        process.send_signal(how)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on, all different. Somebody may still take one: check and retry."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def last_lines(log: Path, count: int = 5) -> str:
    """The end of a log, on one line: what a person needs to see of a broker that died."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        return "no log"
    return " | ".join(line.strip() for line in lines[-count:]) or "empty log"
