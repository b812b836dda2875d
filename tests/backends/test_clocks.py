"""A process whose clock is not the machine's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backends import clocks
from backends.clocks import with_clock
from conformance.partition import FaultNotApplied

TOLD_SECONDS = 60.0
"""A Python is up within a second; the clock of the test is read after it."""


def clock_of_a_process(environment: dict[str, str]) -> tuple[float, float]:
    """The time of day that a new process sees, and how long it believes to have slept for a tenth of a second."""
    program = "import time; a = time.monotonic(); time.sleep(0.1); print(time.time(), time.monotonic() - a)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=TOLD_SECONDS, check=True
    )
    told, slept = map(float, done.stdout.split())
    return told, slept


@pytest.mark.parametrize("seconds", [-3600, 86400])
def test_a_process_can_be_given_another_time_of_day(seconds: int) -> None:
    told, slept = clock_of_a_process(dict(with_clock(seconds)))
    assert abs(told - time.time() - seconds) < TOLD_SECONDS
    assert 0.1 <= slept < TOLD_SECONDS


def test_the_true_time_needs_nothing() -> None:
    assert with_clock(0) == {}


def test_a_machine_that_cannot_load_the_library_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(clocks.resources, "files", lambda _: tmp_path)
    with pytest.raises(FaultNotApplied, match="libfaketime, which moves a broker's clock, does not load here"):
        with_clock(-3600)
