"""Processes and workspaces: what a dead run left behind is swept, and nothing else is touched."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from backends import processes
from backends.processes import free_ports, last_lines, new_workspace, start_process, stop_process, sweep
from conformance.waiting import eventually

LIVES_ON = "import time; time.sleep(120)"

# A run with one broker: it names its workspace and then waits for its end.
RUN = f"""
import sys
from backends.processes import new_workspace, start_process
workspace = new_workspace()
broker = start_process([sys.executable, "-c", {LIVES_ON!r}, str(workspace / "settings")], workspace / "broker.log")
print(workspace, broker.pid, flush=True)
sys.stdin.read()
"""

IGNORES_SIGTERM = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(120)"
)


@pytest.fixture(autouse=True)
def temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory of the test's own, for this process and those it starts."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@pytest.fixture
def started() -> Iterator[list[psutil.Process]]:
    """Processes to end after the test, whatever happened."""
    processes: list[psutil.Process] = []
    yield processes
    for process in processes:
        if process.is_running():
            process.kill()


@pytest.fixture
def run(started: list[psutil.Process]) -> Iterator[tuple[psutil.Popen, Path, psutil.Process]]:
    """Another run with a broker: its process, its workspace and the broker."""
    owner = psutil.Popen([sys.executable, "-c", RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with owner:
        workspace, broker = owner.stdout.readline().split()
        started.append(psutil.Process(int(broker)))
        yield owner, Path(workspace), started[-1]
        owner.stdin.close()


def runs(process: psutil.Process) -> bool:
    """Whether it does anything: one that nobody has collected yet does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def kill(owner: psutil.Popen, *, collect: bool = True) -> None:
    owner.kill()
    if collect:
        owner.wait()
    eventually(lambda: runs(owner), lambda still: not still, reason="the run to die", seconds=10)


@pytest.mark.parametrize("collect", [True, False], ids=["and collected", "and not collected by its parent"])
def test_what_a_killed_run_left_is_swept(run: tuple[psutil.Popen, Path, psutil.Process], collect: bool) -> None:
    owner, workspace, broker = run
    kill(owner, collect=collect)
    assert runs(broker)
    sweep()
    assert not runs(broker)
    assert not workspace.exists()


def test_a_run_that_lives_keeps_its_broker_and_its_workspace(run: tuple[psutil.Popen, Path, psutil.Process]) -> None:
    _, workspace, broker = run
    mine = new_workspace()
    sweep()
    assert runs(broker)
    assert workspace.is_dir()
    assert mine.is_dir()


def test_strangers_with_a_similar_name_stay(
    run: tuple[psutil.Popen, Path, psutil.Process], started: list[psutil.Process], tmp_path: Path
) -> None:
    owner, workspace, broker = run
    unmarked = tmp_path / f"{processes.PREFIX}unmarked"
    unmarked.mkdir()
    similar = f"{workspace}-of-somebody-else/settings"
    stranger = psutil.Popen([sys.executable, "-c", LIVES_ON, similar])
    started.append(psutil.Process(stranger.pid))
    kill(owner)
    sweep()
    assert not runs(broker)
    assert stranger.poll() is None
    assert unmarked.is_dir()
    stranger.kill()
    stranger.wait()


def owned_by(pid: int, *, since_boot: float) -> Path:
    workspace = new_workspace()
    (workspace / processes.OWNER).write_text(json.dumps({"pid": pid, "since_boot": since_boot}))
    return workspace


def test_a_process_that_reuses_the_pid_of_a_dead_owner_is_not_the_owner() -> None:
    mine = json.loads((new_workspace() / processes.OWNER).read_text())["since_boot"]
    inherited = owned_by(os.getpid(), since_boot=mine - 3600)
    sweep()
    assert not inherited.exists()


def test_a_clock_that_was_set_does_not_make_a_living_run_look_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = new_workspace()
    # Linux computes the time of boot from the clock, and psutil every start of a process from the time of boot.
    boot = psutil.boot_time()
    start = psutil.Process.create_time
    monkeypatch.setattr(psutil, "boot_time", lambda: boot + 3600)
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: start(process) + 3600)
    sweep()
    assert workspace.is_dir()


@pytest.mark.parametrize("words", ["", "{", "[]", '{"pid": 1}'])
def test_a_workspace_whose_owner_cannot_be_told_stays(words: str) -> None:
    workspace = new_workspace()
    (workspace / processes.OWNER).write_text(words)
    sweep()
    assert workspace.is_dir()


def test_a_process_that_listens_ends_when_asked(tmp_path: Path) -> None:
    process = start_process([sys.executable, "-c", LIVES_ON], tmp_path / "log")
    stop_process(process)
    assert process.returncode == -signal.SIGTERM
    stop_process(process)  # twice is once


def test_a_process_that_does_not_listen_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "STOP_SECONDS", 0.3)
    log = tmp_path / "log"
    process = start_process([sys.executable, "-c", IGNORES_SIGTERM], log)
    eventually(log.read_text, bool, reason="SIGTERM to be ignored", seconds=10)
    stop_process(process)
    assert process.returncode == -signal.SIGKILL


def test_ctrl_c_in_the_terminal_does_not_reach_the_broker(tmp_path: Path) -> None:
    process = start_process([sys.executable, "-c", LIVES_ON], tmp_path / "log")
    assert os.getsid(process.pid) != os.getsid(0)
    stop_process(process)


def test_ports_are_free_and_all_different() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    for port in ports[:5]:
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_the_end_of_a_log_fits_on_one_line(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    assert last_lines(log) == "no log"
    log.write_text("\n")
    assert last_lines(log) == "empty log"
    log.write_bytes(b"one\n  two \xff\nthree\n\n")
    assert last_lines(log, 2) == "two � | three"
