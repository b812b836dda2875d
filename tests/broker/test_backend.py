"""The in-house broker as a column of the matrix: it starts, it conforms, it answers as Apache Kafka 4.3.1 did."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from golden_states import PLAIN, differences, golden

from backends.presets import prepare
from backends.registry import choose, embedded_defaults
from conformance.cluster import reachable
from conformance.results import read_checks

RUN_SECONDS = 120.0
"""The suites take four seconds against the in-house broker, and some times that on a busy machine."""


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> list[Mapping[str, Any]]:
    """Every check of the suites, told once."""
    directory = tmp_path_factory.mktemp("results")
    command = [sys.executable, "-m", "pytest", "suites", "-q", "--backend=in-house", f"--results={directory}"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
    return list(read_checks(sorted(directory.glob("*in-house*"))))


def test_every_check_that_applies_conforms_exactly(checks: list[Mapping[str, Any]]) -> None:
    grades = {(check["verdict"], check["grade"]) for check in checks if check["verdict"] != "not-applicable"}
    assert grades == {("conforms", "exact")}
    assert len(checks) > 900


def test_the_golden_states_are_answered_as_apache_kafka_answered_them(checks: list[Mapping[str, Any]]) -> None:
    assert differences(checks, golden("golden-4.3.1"), PLAIN) == []


def test_it_is_one_of_the_embedded_defaults() -> None:
    assert "in-house" in [backend.column for backend in embedded_defaults()]


def test_it_starts_ready_and_leaves_nothing_behind() -> None:
    backend = prepare(choose("in-house"))
    with backend:
        assert reachable(backend.bootstrap) is None
        assert "memory engine" in backend.build
        children = psutil.Process().children()
        assert any("broker" in child.cmdline() for child in children)
    assert reachable(backend.bootstrap) is not None
    assert not any("broker" in child.cmdline() for child in psutil.Process().children())
