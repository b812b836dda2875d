"""A Docker engine and the images of this repository, for tests that need them; without an engine they are not run."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from container_columns import NEW
from docker.client import DockerClient as Engine

from backends.engine import connect
from backends.image_building import IN_HOUSE, KAFKA_VERSIONS, build
from backends.registry import Backend, choose
from backends.running import DidNotStart


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    try:
        client = connect()
    except DidNotStart as error:
        pytest.skip(f"not run: {error}")
    yield client
    client.close()


@pytest.fixture(scope="session")
def images(engine: Engine) -> list[str]:
    """Apache Kafka 3.x and 4.x and the in-house broker, on base images made of what this machine has."""
    return list(build(engine, KAFKA_VERSIONS, from_this_machine=True))


@pytest.fixture(scope="session")
def kafka_backend(images: list[str]) -> Backend:
    assert IN_HOUSE in images
    return choose(NEW)


@pytest.fixture(scope="session")
def image_that_exits(engine: Engine, images: list[str]) -> str:
    """An image whose broker complains and ends at once."""
    dockerfile = f'FROM {images[0]}\nCMD ["sh", "-c", "echo no licence; echo goodbye; exit 3"]\n'
    engine.images.build(fileobj=io.BytesIO(dockerfile.encode()), tag="offset-conformance/exits", rm=True)
    return "offset-conformance/exits"
