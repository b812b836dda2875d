"""Telling a scenario through a bent broker, without pytest: a story is plain Python."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from backends.registry import LEVERS
from backends.running import RunningBackend
from conformance.answers import BrokerFacts, Judgement, Silence, Verdict
from conformance.catalogue import Scenario, scenario_of
from conformance.cluster import Cluster
from conformance.partition import Partition, Story
from conformance.security import Security
from conformance.telling import decline, objection, outcome, telling
from conformance.waiting import DeadlinePassed
from conformance.wire import WireError
from mutants.bending import Bending
from mutants.messages import Answered
from mutants.proxy import ProxyThread

PATIENCE_SECONDS = 10.0
"""Background work takes half a second where intervals are 100 ms. A mutant that hides its end is waited for in vain."""

TOGETHER_SECONDS = 120.0
"""For every story that is told at once to come to its lever: each takes seconds, and most wait for the slowest."""


@dataclass(frozen=True)
class Tale:
    """One way to tell a scenario: its function, with the arguments of one of its parameters where it has any."""

    scenario: Scenario
    function: Callable[..., None]
    arguments: Mapping[str, object] = field(default_factory=dict)

    @property
    def levers(self) -> frozenset[str]:
        """What it does to the broker that every other story would notice."""
        return LEVERS & set(self.scenario.needs)


def tales(functions: Iterable[Callable[..., None]]) -> list[Tale]:
    """Every way to tell the scenarios of these functions; `pytest.mark.parametrize` makes several of one."""
    found = []
    for function in functions:
        scenario = scenario_of(function)
        if scenario is None:
            continue
        ways: list[dict[str, object]] = [{}]
        for mark in getattr(function, "pytestmark", ()):
            if mark.name == "parametrize":
                name, values = mark.args
                ways = [way | {name: value} for way in ways for value in values]
        found += [Tale(scenario, function, way) for way in ways]
    return found


@dataclass(frozen=True)
class Ending:
    """How one telling ended. `bent` is how many answers, requests and deliveries were not the broker's own."""

    tale: Tale
    verdict: Verdict
    reason: str
    bent: int
    seconds: float
    heard: tuple[Answered, ...] = ()


class Together:
    """Lets stories that are told at once pull a lever of their broker once: the last to arrive does it, for all.

    No more than `at_once` of them are told at a time; those that wait for the others do not count.
    """

    def __init__(self, stories: int, at_once: int) -> None:
        self._turns = threading.Semaphore(at_once)
        self._changed = threading.Condition()
        self._stories = stories
        self._waiting = 0
        self._pulled = 0
        self._act: Callable[[], None] | None = None

    def __enter__(self) -> Together:
        self._turns.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        """A story has ended: nobody waits for it any more."""
        self._turns.release()
        with self._changed:
            self._stories -= 1
            self._act_if_complete()

    def arrive(self, act: Callable[[], None]) -> None:
        """Wait for all the others, or for their end. Whoever completes the round acts."""
        self._turns.release()
        try:
            with self._changed:
                self._waiting += 1
                self._act = act
                mine = self._pulled
                self._act_if_complete()
                if not self._changed.wait_for(lambda: self._pulled > mine, TOGETHER_SECONDS):
                    raise DeadlinePassed(f"not every story came to its lever within {TOGETHER_SECONDS:g} s")
        finally:
            self._turns.acquire()

    def _act_if_complete(self) -> None:
        if self._act is not None and self._waiting == self._stories:
            act, self._act, self._waiting = self._act, None, 0
            try:
                act()
            finally:
                self._pulled += 1
                self._changed.notify_all()


class BentBroker:
    """A running backend as it looks from behind a proxy."""

    def __init__(self, backend: RunningBackend, bootstrap: str, together: Together | None) -> None:
        self._backend = backend
        self._together = together
        self.bootstrap = bootstrap
        self.patience_seconds = min(PATIENCE_SECONDS, backend.patience_seconds)

    @cached_property
    def facts(self) -> BrokerFacts:
        """What the bent broker advertises, and the release that it claims to be."""
        with Cluster(self.bootstrap) as cluster:
            advertised = cluster.api_versions.get("list_offsets", (0, 0))
        return BrokerFacts(self._backend.backend.column, advertised, self._backend.kafka_release)

    @property
    def security(self) -> Security:
        return self._backend.security

    def restart(self) -> None:
        self._once_for_all(self._backend.restart)

    def kill(self) -> None:
        self._once_for_all(self._backend.kill)

    def pause(self) -> None:
        self._once_for_all(self._backend.pause)

    def resume(self) -> None:
        self._once_for_all(self._backend.resume)

    def cut_network(self) -> None:
        self._once_for_all(self._backend.cut_network)

    def heal_network(self) -> None:
        self._once_for_all(self._backend.heal_network)

    def step_clock(self, seconds: int) -> None:
        self._once_for_all(lambda: self._backend.step_clock(seconds))

    def fill_disk(self) -> None:
        self._once_for_all(self._backend.fill_disk)

    def free_disk(self) -> None:
        self._once_for_all(self._backend.free_disk)

    def _once_for_all(self, act: Callable[[], None]) -> None:
        if self._together is None:
            act()
        else:
            self._together.arrive(act)


def tell(
    tale: Tale,
    backend: RunningBackend,
    proxies: ProxyThread,
    bending: Bending,
    *,
    recording: bool = False,
    together: Together | None = None,
) -> Ending:
    """Tell one story through a proxy of its own, so that no other story can change what this one sees."""
    started = time.monotonic()
    with together or contextlib.nullcontext(), proxies.open(backend.bootstrap, bending, recording=recording) as proxy:
        story = _tell(tale, backend, BentBroker(backend, proxy.address, together))
    verdict = outcome(story.checks)
    reason = next(
        (f"{check.id}: {check.judgement.reason}" for check in story.checks if check.judgement.verdict is verdict), ""
    )
    return Ending(tale, verdict, reason, proxy.bent, time.monotonic() - started, tuple(proxy.heard))


def _tell(tale: Tale, backend: RunningBackend, broker: BentBroker) -> Story:
    story = Story(tale.scenario, BrokerFacts(backend.backend.column, (0, 0)), "", _forget)
    try:
        story.facts = broker.facts
        cluster = Cluster(broker.bootstrap)
    except WireError as error:
        gone = error.silence is Silence.UNREACHABLE
        decline(story, Judgement(Verdict.BROKEN if gone else Verdict.INCONCLUSIVE, reason=str(error)))
        return story
    with cluster:
        judgement = objection(story, backend.backend.capabilities, cluster.api_versions)
        if judgement:
            decline(story, judgement)
            return story
        partition = Partition(broker, cluster, story)
        # A mistake of ours is a check already, and broken; it must not hide what the other stories show.
        with contextlib.suppress(Exception), telling(story):
            tale.function(partition, **tale.arguments)
    return story


def _forget(_check: Any) -> None:
    """Checks of these stories go nowhere: what counts is how each story ended."""
