"""The in-house broker as a column of the matrix: it starts, it conforms, it answers as Apache Kafka 4.3.1 did."""

from __future__ import annotations

from collections.abc import Callable

import psutil
import pytest
from golden_states import PLAIN, differences, golden
from whole_runs import Checks

from backends.presets import prepare
from backends.registry import choose, embedded_defaults
from conformance.cluster import reachable


@pytest.fixture(scope="module")
def checks(checks_of: Callable[[str], Checks]) -> Checks:
    """Every check of the suites, as `make matrix` makes them."""
    return checks_of("in-house@memory")


def test_every_check_that_applies_conforms_exactly(checks: Checks) -> None:
    grades = {(check["verdict"], check["grade"]) for check in checks if check["verdict"] != "not-applicable"}
    assert grades == {("conforms", "exact")}
    assert len(checks) > 900


def test_the_golden_states_are_answered_as_apache_kafka_answered_them(checks: Checks) -> None:
    assert differences(checks, golden("golden-4.3.1"), PLAIN) == []


def test_it_is_one_of_the_embedded_defaults() -> None:
    assert "in-house@memory" in [backend.column for backend in embedded_defaults()]


def test_it_starts_ready_and_leaves_nothing_behind() -> None:
    before = set(psutil.Process().children())
    backend = prepare(choose("in-house"))
    with backend:
        assert reachable(backend.bootstrap) is None
        assert "memory engine" in backend.build
        (process,) = set(psutil.Process().children()) - before
    assert not process.is_running()
    assert reachable(backend.bootstrap) is not None
