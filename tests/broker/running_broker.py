"""Start a broker process, learn where it listens from what it says, and stop it whatever happens."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from conformance.waiting import eventually

BOOT_SECONDS = 20.0
STOP_SECONDS = 10.0


@dataclass(frozen=True)
class RunningBroker:
    process: subprocess.Popen[bytes]
    announcement: str
    log: Path

    @property
    def address(self) -> str:
        return self.announcement.removeprefix("listening on ").split(",")[0]

    @property
    def host_and_port(self) -> tuple[str, int]:
        host, _, port = self.address.rpartition(":")
        return host, int(port)

    def memory_bytes(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)


@contextlib.contextmanager
def start(
    directory: Path, *arguments: str, settings: Mapping[str, str] | None = None, listen: str = "127.0.0.1:0"
) -> Iterator[RunningBroker]:
    log, said = directory / "broker.log", directory / "said"
    command = [sys.executable, "-m", "broker", "--listen", listen, "--log-file", str(log), *arguments]
    for name, value in (settings or {}).items():
        command += ["--config", f"{name}={value}"]
    with said.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        line = eventually(
            lambda: (process.poll(), said.read_text()),
            lambda seen: seen[0] is not None or seen[1].endswith("\n"),
            reason="the broker to say where it listens",
            seconds=BOOT_SECONDS,
        )[1]
        assert process.poll() is None, f"the broker did not start: {line}"
        yield RunningBroker(process, line.strip(), log)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)
            raise
