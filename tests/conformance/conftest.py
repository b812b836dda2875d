"""Fixtures of this room: loopback servers that are closed again, and the connections to them."""

from collections.abc import Callable, Iterator

import pytest
from scripted_broker import Loopback, Play, ScriptedBroker

Serve = Callable[[Play], Loopback]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers; each ends with the test, and by then its clients should have closed."""
    servers: list[Loopback] = []

    def start(play: Play) -> Loopback:
        servers.append(Loopback(play))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
    for server in servers:
        server.join()


@pytest.fixture
def broker(serve: Serve) -> ScriptedBroker:
    return ScriptedBroker(serve)
