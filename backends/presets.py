"""From a backend's description to the object that runs it: the one place that knows every family."""

from __future__ import annotations

from backends.apache_kafka import ApacheKafka
from backends.external import External
from backends.in_house import InHouse
from backends.librdkafka_mock import LibrdkafkaMock
from backends.registry import Backend
from backends.running import RunningBackend


def prepare(backend: Backend, *, bootstrap: str = "") -> RunningBackend:
    """A backend that is ready to be started; `bootstrap` is for the external preset alone."""
    match backend.preset:
        case "apache-kafka":
            return ApacheKafka(backend)
        case "apache-kafka-tiered":
            return ApacheKafka(backend, tiered=True)
        case "librdkafka-mock":
            return LibrdkafkaMock(backend)
        case "in-house":
            return InHouse(backend)
        case "external":
            return External(backend, bootstrap)
    raise ValueError(f"backends.toml names preset {backend.preset!r}, which no module here runs")
