"""Commands and whole runs as a person makes them, for the tests that look at what came of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[1]

Checks = list[Mapping[str, Any]]

RUN_SECONDS = 900.0
"""The embedded defaults take two minutes on two cores, and jars that are not there yet five more."""

ALWAYS = ("apache-kafka@4.3.1", "apache-kafka@3.9.2", "apache-kafka@3.6.2", "apache-kafka-tiered@4.3.1")
"""Apache Kafka as `make matrix` runs it: one run serves the tests of the command and of the golden answers."""

SOMETIMES = (
    "apache-kafka@3.5.2",
    "apache-kafka@3.7.2",
    "apache-kafka@3.8.1",
    "apache-kafka@4.0.2",
    "apache-kafka@4.1.2",
    "apache-kafka@4.2.1",
    "apache-kafka-tiered@3.9.2",
)


@dataclass(frozen=True)
class Ran:
    """A command that ended."""

    code: int
    out: str
    err: str


def offsets(*arguments: str, seconds: float = 120.0, **environment: str) -> Ran:
    """Run the command as a person does."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "offsets", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class MatrixRun:
    """What `make matrix` does, done on a machine without Java."""

    ran: Ran
    out: Path

    @property
    def results(self) -> Path:
        return self.out / "results"


SOON = 120.0
"""A run that meets no broker ends in seconds; two minutes is a hang."""


def suites(results: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", str(ROOT / "suites"), "-q", "--tb=line", "-rN", f"--results={results}"]
    return subprocess.Popen(
        [*command, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def ended(run: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        said, _ = run.communicate(timeout=SOON)
    finally:
        run.kill()
    return run.returncode, said


def lines_in(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(results.glob("*.ndjson")) for line in path.read_text().splitlines()]


def process_that_listens_on(port: int) -> psutil.Process:
    for child in psutil.Process().children():
        if any(each.laddr.port == port for each in child.net_connections("tcp")):
            return child
    raise AssertionError(f"no child listens on {port}")
