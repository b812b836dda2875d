"""Fixtures of this room: a real broker, and proxies in front of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backends import registry
from backends.presets import prepare
from backends.running import RunningBackend
from mutants.proxy import ProxyThread


@pytest.fixture(scope="session")
def in_house() -> Iterator[RunningBackend]:
    with prepare(registry.choose("in-house")) as broker:
        yield broker


@pytest.fixture(scope="session")
def proxies() -> Iterator[ProxyThread]:
    with ProxyThread() as thread:
        yield thread
