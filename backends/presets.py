"""From a backend's description to the object that runs it: the one place that knows every family."""

from __future__ import annotations

from backends.apache_kafka import ApacheKafka
from backends.external import External
from backends.in_house import InHouse
from backends.librdkafka_mock import LibrdkafkaMock
from backends.recipes import RECIPES
from backends.registry import Backend
from backends.running import RunningBackend
from backends.sharing import Session
from conformance.security import PLAINTEXT, Security


def prepare(
    backend: Backend, *, bootstrap: str = "", session: Session | None = None, security: Security = PLAINTEXT
) -> RunningBackend:
    """A backend that is ready to be started.

    `bootstrap` is for the external preset alone; `session` is the run that shares a container, by default one of its
    own; `security` is how clients are let in where the broker is not one that the suite set up itself.
    """
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
            return External(backend, bootstrap, security=security)
        case preset if preset in RECIPES:
            # The Docker client takes as long to load as all the rest.
            from backends.containers import Container

            return Container(backend, session=session, security=security)
    raise ValueError(f"backends.toml names preset {backend.preset!r}, which no module here runs")
