"""A backend that runs: what the suite may know of it and do to it."""

from __future__ import annotations

import contextlib
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

from backends.registry import Backend
from conformance.answers import BrokerFacts
from conformance.batches import Record, encode_batch
from conformance.cluster import Cluster, NotSupported, StepFailed
from conformance.partition import FaultNotApplied
from conformance.security import PLAINTEXT, Security
from conformance.waiting import DeadlinePassed, eventually
from conformance.wire import NotAllowedIn, WireError


class DidNotStart(Exception):
    """The broker could not be made to run. The text is the reason that the matrix shows under `not run`."""


class RunningBackend(ABC):
    """One broker from start to stop. A context manager: leaving it stops the broker, whatever happened."""

    oracle = False
    """Whether this is Apache Kafka itself, run by the suite."""

    patience_seconds = 20.0
    """How long background work may take: seconds on a busy machine where intervals are set to 100 ms."""

    disposable = True
    """Whether the broker ends with the run, so that topics need not be deleted one by one."""

    def __init__(self, backend: Backend, *, security: Security = PLAINTEXT) -> None:
        self.backend = backend
        self.security = security

    @abstractmethod
    def start(self) -> None:
        """Start and return when the broker is ready, or raise `DidNotStart` and leave nothing behind."""

    @abstractmethod
    def stop(self) -> None:
        """End it and remove what it left. Safe to call twice, and after a failed start."""

    @property
    @abstractmethod
    def bootstrap(self) -> str: ...

    @property
    @abstractmethod
    def build(self) -> str:
        """What exactly runs, for the header of the result file."""

    @property
    def kafka_release(self) -> tuple[int, ...] | None:
        return None

    @cached_property
    def facts(self) -> BrokerFacts:
        with Cluster(self.bootstrap, security=self.security) as cluster:
            advertised = cluster.api_versions.get("list_offsets", (0, 0))
        return BrokerFacts(self.backend.column, advertised, self.kafka_release)

    # Levers. A backend has those of its capabilities; one that cannot be pulled says so instead of doing nothing.

    def restart(self) -> None:
        raise FaultNotApplied(f"{self.backend.column} cannot be restarted from here")

    def kill(self) -> None:
        raise FaultNotApplied(f"{self.backend.column} cannot be killed from here")

    def pause(self) -> None:
        raise FaultNotApplied(f"{self.backend.column} cannot be paused from here")

    def resume(self) -> None:
        """Let a paused broker go on. It may take a moment to find its feet."""
        raise FaultNotApplied(f"{self.backend.column} cannot be paused from here")

    def cut_network(self) -> None:
        raise FaultNotApplied(f"{self.backend.column} cannot be cut off from here")

    def heal_network(self) -> None:
        """Connect a broker again that was cut off, at the same address."""
        raise FaultNotApplied(f"{self.backend.column} cannot be cut off from here")

    def step_clock(self, seconds: int) -> None:  # noqa: ARG002
        """Move the broker's clock this far from the true one, or back to it with 0. It may be started anew for that."""
        raise FaultNotApplied(f"{self.backend.column} has no clock that could be moved from here")

    def fill_disk(self) -> None:
        raise FaultNotApplied(f"{self.backend.column} has no disk that could be filled from here")

    def free_disk(self) -> None:
        """Make room again. A broker that ended meanwhile stays down until it is restarted."""
        raise FaultNotApplied(f"{self.backend.column} has no disk that could be filled from here")

    def turn(self, *, alone: bool) -> contextlib.AbstractContextManager[None]:  # noqa: ARG002
        """Held for as long as a story lasts; `alone` for one that pulls a lever. A broker of one process needs none."""
        return contextlib.nullcontext()

    def __enter__(self) -> RunningBackend:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def await_ready(
    bootstrap: str, *, seconds: float, alive: Callable[[], str | None], security: Security = PLAINTEXT
) -> None:
    """Wait until the broker does its work: metadata, one record written, the same record read back.

    An open port is not enough: Kafka accepts connections some 0.2 s before it can create a topic. `alive`
    says why there is no more hope, so that a process that died is not waited for.
    """

    def look() -> str:
        dead = alive()
        if dead:
            raise DidNotStart(dead)
        try:
            _write_and_read(bootstrap, security)
        except NotAllowedIn as error:
            raise DidNotStart(str(error)) from error
        except NotSupported as error:
            raise DidNotStart(f"{bootstrap}: {error}, so no record can be written and read there") from error
        except (WireError, StepFailed, DeadlinePassed, OSError) as error:
            return str(error)
        return ""

    try:
        eventually(look, lambda failure: failure == "", reason=f"{bootstrap} to be ready", seconds=seconds)
    except DeadlinePassed as error:
        raise DidNotStart(str(error)) from error


def _write_and_read(bootstrap: str, security: Security) -> None:
    topic = f"conformance-ready-{uuid.uuid4().hex[:12]}"
    value = uuid.uuid4().bytes
    with Cluster(bootstrap, security=security) as cluster:
        cluster.create_topic(topic, config={"retention.ms": "-1"})
        written = cluster.produce(topic, 0, encode_batch([Record(0, value)]))
        if written.fields["error"]:
            raise StepFailed(f"the first record was refused: {written}")
        fetched = cluster.fetch(topic, 0, written.fields["base_offset"], wait_ms=100)
        if [record.value for record in fetched.records] != [value]:
            raise StepFailed(f"the first record did not come back: {fetched}")
        if "delete_topics" in cluster.api_versions:
            cluster.delete_topic(topic)
