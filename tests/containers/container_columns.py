"""The containers of these tests by their columns, and which columns have anything in the engine."""

from __future__ import annotations

from docker.client import DockerClient as Engine

from backends.engine import COLUMN_LABEL
from backends.image_building import KAFKA, KAFKA_VERSIONS

OLD, NEW = (f"apache-kafka-container@{version}={KAFKA}:{version}" for version in KAFKA_VERSIONS)


def ours(engine: Engine) -> list[str]:
    """The columns that have a container, a network or a volume now."""
    filters = {"label": COLUMN_LABEL}
    marks = [each.labels for each in engine.containers.list(all=True, filters=filters, ignore_removed=True)]
    marks += [each.attrs["Labels"] for each in engine.networks.list(filters=filters)]
    marks += [each.attrs["Labels"] for each in engine.volumes.list(filters=filters)]
    return sorted(mark[COLUMN_LABEL] for mark in marks)
