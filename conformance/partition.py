"""The partition that a scenario holds: steps that build a state, and questions whose answers are recorded.

A step that the broker refuses ends the story as inconclusive, because the questions after it would mean
nothing. A question never ends the story: each answer is judged and recorded by itself.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from conformance.answers import (
    Accepted,
    BrokerFacts,
    Judgement,
    Observation,
    Verdict,
    applicable,
    judge,
)
from conformance.batches import Codec, Producer, Record, StoredRecord, encode_batch
from conformance.catalogue import Scenario
from conformance.cluster import (
    CONSUMER,
    LOOKUP_MS,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    UNKNOWN_TOPIC_OR_PARTITION,
    Cluster,
    Fetched,
    NotSupported,
    Question,
    StepFailed,
    require,
)
from conformance.results import Check, now
from conformance.security import Security
from conformance.specs import EARLIEST, LATEST, OffsetSpec, T
from conformance.waiting import DeadlinePassed, eventually

OFFSET_OUT_OF_RANGE = 1

KEEP_FOREVER = {"retention.ms": "-1"}
"""Scenario records are dated 2023: under any other retention a broker deletes them at once, and rightly."""

VISIBLE_SECONDS = 10.0
"""A transaction's marker is written within 0.1 s of the commit; ten seconds is a broker that lost it."""


SETTLE_SECONDS = 1.0
"""Between two steps of Kafka's retention lie microseconds; a second is a thread that waits for a busy core."""


HURT_SECONDS = 2.0
"""How long to wait for an answer of a broker that is paused or cut off: an answer takes milliseconds."""

CLOCK_SECONDS = 60.0
"""How far a clock that was moved may be from where it was to be: steps are of an hour, and a machine may be slow."""


class FaultNotApplied(StepFailed):
    """The broker could not be hurt as the story wants, so its questions would show nothing."""


class Broker(Protocol):
    """What a scenario needs from a running backend. A lever that it does not have raises `FaultNotApplied`."""

    @property
    def facts(self) -> BrokerFacts: ...

    @property
    def bootstrap(self) -> str: ...

    @property
    def patience_seconds(self) -> float:
        """How long background work (retention, upload) may take here before a story gives up on it."""

    @property
    def security(self) -> Security: ...

    def restart(self) -> None:
        """Stop the broker in an orderly way and start it again on the same data and address."""

    def kill(self) -> None:
        """Stop the broker as a crash does and start it again on the same data and address."""

    def pause(self) -> None:
        """Freeze the broker: it keeps its connections and says nothing."""

    def resume(self) -> None:
        """Let a paused broker go on."""

    def cut_network(self) -> None:
        """Take the broker off the network while it runs on."""

    def heal_network(self) -> None:
        """Put it on the network again, at the same address."""

    def step_clock(self, seconds: int) -> None:
        """Move the broker's clock this far from the true one, or back to it with 0. It may be started anew for that."""

    def fill_disk(self) -> None:
        """Leave no room where the broker keeps its records."""

    def free_disk(self) -> None:
        """Make room again. A broker that ended meanwhile stays down until it is restarted."""


@dataclass
class Story:
    """One telling of a scenario on one backend: collects its checks and hands each to a recorder at once."""

    scenario: Scenario
    facts: BrokerFacts
    test: str
    record: Callable[[Check], None]
    checks: list[Check] = field(default_factory=list)

    def add(
        self,
        name: str,
        asked: str,
        accepted: tuple[Accepted, ...],
        observed: Observation | None,
        judgement: Judgement,
        *,
        started: str = "",
        duration_ms: float = 0.0,
        cluster: Cluster | None = None,
    ) -> Judgement:
        """Record one check. A name is used once in a story: a second use is a mistake in the scenario."""
        if any(check.name == name for check in self.checks):
            raise ValueError(f"{self.scenario.id} asks two questions named {name!r}; give one another name")
        exchanges = tuple(cluster.drain_exchanges()) if cluster else ()
        check = Check(
            self.scenario,
            name,
            asked,
            accepted,
            observed,
            judgement,
            self.test,
            started or now(),
            duration_ms,
            exchanges,
        )
        self.checks.append(check)
        self.record(check)
        return judgement


class Partition:
    """Partition 0 of a topic of its own, which is created when it is first used."""

    def __init__(self, broker: Broker, cluster: Cluster, story: Story) -> None:
        self.broker = broker
        self.cluster = cluster
        self.story = story
        self.index = 0
        self._config: dict[str, str] = {}
        self._topics: list[str] = []
        self._written = 0

    @cached_property
    def topic(self) -> str:
        return self.another_topic(config=self._config)

    def another_topic(self, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """A new topic beside the partition's own."""
        name = self.unused_topic_name()
        self._topics.append(name)
        self.cluster.create_topic(name, partitions=partitions, config=KEEP_FOREVER | dict(config or {}))
        return name

    def unused_topic_name(self) -> str:
        return f"conformance-{uuid.uuid4().hex[:16]}"

    def tidy_up(self) -> None:
        """Delete the topics of this story. Whether that works decides nothing."""
        for name in self._topics:
            with contextlib.suppress(Exception):
                self.cluster.delete_topic(name)

    # -- steps

    def created_with(self, config: Mapping[str, str]) -> None:
        """Choose settings for the topic before it is first used."""
        if "topic" in self.__dict__:
            raise ValueError("the topic exists already; use configure()")
        if "create_topics" not in self.cluster.api_versions:
            raise NotSupported("the broker does not advertise create_topics, so a topic cannot be configured")
        self._config = dict(config)

    def produce(self, count: int, *, codec: Codec = Codec.NONE) -> Observation:
        """Write `count` records in batches of one, a second apart; the answer is that of the last."""
        started = self._written
        return self.produce_at(*((started + index + 1) * 1000 for index in range(count)), codec=codec)

    def produce_at(self, *millis: int, codec: Codec = Codec.NONE) -> Observation:
        """Write one record per time `T + millis`, each in a batch of its own; the answer is that of the last."""
        for each in millis:
            written = self.produce_batch(each, codec=codec)
        return written

    def produce_batch(self, *millis: int, codec: Codec = Codec.NONE) -> Observation:
        """Write one batch with a record per time `T + millis`."""
        return self.produce_records([Record(T + each) for each in millis], codec=codec)

    def produce_records(self, records: list[Record], *, codec: Codec = Codec.NONE) -> Observation:
        """Write one batch of given records."""
        written = self.try_produce(encode_batch(records, codec=codec))
        require(written.fields["error"], f"write to {self.topic}")
        self._written += len(records)
        return written

    def try_produce(self, batch: bytes) -> Observation:
        """Write bytes that may well be refused: the answer is an observation, whatever it is."""
        return self.cluster.produce(self.topic, self.index, batch)

    def delete_records(self, before: int) -> Observation:
        """Delete everything before an offset; -1 means everything."""
        deleted = self.cluster.delete_records(self.topic, self.index, before)
        require(deleted.fields["error"], f"delete records before {before} of {self.topic}")
        return deleted

    def configure(self, config: Mapping[str, str]) -> None:
        """Change settings of the topic; names are Kafka's."""
        self.cluster.configure_topic(self.topic, config)

    def expire_everything(self) -> None:
        """Let retention delete every record; returns when none can be read any more.

        Judged by Fetch and not by ListOffsets, whose answers are what scenarios want to know afterwards.
        """
        self.configure({"retention.ms": "1"})
        self.await_unreadable(0)
        self.configure({"retention.ms": "-1"})

    def await_unreadable(self, offset: int) -> None:
        """Wait until the record at `offset` is gone.

        Required: that it cannot be read. Not required: that the log start which Fetch reports has followed.
        Kafka removes a segment a moment before it moves the log start, so that is given time, and asked no more.
        """
        eventually(
            lambda: self.fetch(offset),
            lambda seen: seen.error == OFFSET_OUT_OF_RANGE or (seen.error == 0 and not seen.records),
            reason=f"retention to remove the record at offset {offset} of {self.topic}",
            seconds=self.broker.patience_seconds,
        )
        end = self.ask(LATEST).fields.get("offset", 0)
        with contextlib.suppress(DeadlinePassed):
            eventually(
                lambda: self.fetch(end),
                lambda seen: seen.error != 0 or not 0 <= seen.log_start_offset <= offset,
                reason=f"the log start of {self.topic} to follow",
                seconds=SETTLE_SECONDS,
            )

    def await_answer(self, spec: OffsetSpec, holds: Callable[[int], bool], reason: str) -> None:
        """Wait until the offset answered to `spec` is as wanted: for background work that only it shows."""
        eventually(
            lambda: self.ask(spec),
            lambda seen: seen.fields.get("error") == 0 and holds(seen.fields["offset"]),
            reason=reason,
            seconds=self.broker.patience_seconds,
        )

    def await_gone(self) -> None:
        """Wait until the leader itself no longer knows the partition; Metadata may know it a little earlier."""
        eventually(
            lambda: self.cluster.list_offsets(self.question(EARLIEST)).fields.get("error"),
            lambda error: error == UNKNOWN_TOPIC_OR_PARTITION,
            reason=f"the leader of {self.topic} to forget it",
            seconds=VISIBLE_SECONDS,
        )

    def point_at(self, topic: str, index: int = 0) -> None:
        """Ask about another partition from now on, one that need not exist."""
        self.__dict__["topic"] = topic
        self.index = index

    def point_at_settled(self, topic: str) -> None:
        """Ask about another partition that may still be on its way back after a restart."""
        self.point_at(topic)
        self.cluster.await_leaders(topic, [0], seconds=self.broker.patience_seconds)

    def restart_broker(self) -> None:
        self.cluster.close()
        self.broker.restart()
        self.cluster.await_leaders(self.topic, [self.index], seconds=self.broker.patience_seconds)

    def kill_broker(self) -> None:
        self.cluster.close()
        self.broker.kill()
        self.cluster.await_leaders(self.topic, [self.index], seconds=self.broker.patience_seconds)

    @contextlib.contextmanager
    def paused_broker(self) -> Iterator[None]:
        """The broker is frozen inside; answers are waited for briefly, as none is to be expected."""
        with self._hurt(self.broker.pause, self.broker.resume):
            yield

    @contextlib.contextmanager
    def broker_cut_off(self) -> Iterator[None]:
        """The broker is off the network inside."""
        with self._hurt(self.broker.cut_network, self.broker.heal_network):
            yield

    @contextlib.contextmanager
    def _hurt(self, hurt: Callable[[], None], heal: Callable[[], None]) -> Iterator[None]:
        leader_of = self.topic, self.index  # known before: a broker that is hurt cannot be asked
        hurt()
        try:
            with self.cluster.answering_within(HURT_SECONDS):
                yield
        finally:
            heal()
        self.cluster.await_leaders(leader_of[0], [leader_of[1]], seconds=self.broker.patience_seconds)

    @contextlib.contextmanager
    def broker_clock_stepped(self, seconds: int) -> Iterator[None]:
        """The broker's clock is this far from the true one inside, as the time that it appends by must show."""
        stamped = self.another_topic(config={"message.timestamp.type": "LogAppendTime"})
        try:
            self._step_clock(seconds, stamped)
            appended = self.cluster.produce(stamped, 0, encode_batch([Record(T)])).fields["log_append_time"]
            moved = appended / 1000 - time.time()
            if abs(moved - seconds) > CLOCK_SECONDS:
                raise FaultNotApplied(f"the clock was to move by {seconds:+d} s and moved by {moved:+.0f} s")
            yield
        finally:
            self._step_clock(0, stamped)

    def _step_clock(self, seconds: int, *others: str) -> None:
        self.cluster.close()
        self.broker.step_clock(seconds)
        for topic in (self.topic, *others):
            self.cluster.await_leaders(topic, [0], seconds=self.broker.patience_seconds)

    @contextlib.contextmanager
    def full_disk(self) -> Iterator[None]:
        """There is no room for records inside. Afterwards the broker is restarted: most have ended by then."""
        leader_of = self.topic, self.index
        self.broker.fill_disk()
        try:
            with self.cluster.answering_within(HURT_SECONDS):
                yield
        finally:
            self.broker.free_disk()
            self.cluster.close()
            self.broker.restart()
        self.cluster.await_leaders(leader_of[0], [leader_of[1]], seconds=self.broker.patience_seconds)

    def recreate(self) -> None:
        """Delete the topic and create it again under the same name."""
        self.cluster.delete_topic(self.topic)
        self.cluster.create_topic(self.topic, config=KEEP_FOREVER | self._config)
        self._written = 0

    def begin_transaction(self) -> Transaction:
        return Transaction(self)

    def fetch(self, offset: int, *, isolation: int = READ_UNCOMMITTED) -> Fetched:
        return self.cluster.fetch(self.topic, self.index, offset, isolation=isolation)

    def read_all(self, *, start: int = 0) -> list[StoredRecord]:
        """Every record from `start` to the high watermark, control records included.

        One Fetch goes to the end of a segment at most, so it takes several; each makes progress or is the last.
        """
        records: list[StoredRecord] = []
        while True:
            fetched = self.fetch(records[-1].offset + 1 if records else start)
            require(fetched.error, f"read {self.topic}")
            if not fetched.records:
                return records
            records.extend(fetched.records)

    # -- questions

    def question(self, spec: OffsetSpec, *, current_leader_epoch: int = -1) -> Question:
        return Question(self.topic, self.index, spec, current_leader_epoch)

    def ask(
        self,
        spec: OffsetSpec,
        *,
        version: int | None = None,
        isolation: int = READ_UNCOMMITTED,
        replica: int = CONSUMER,
        epoch: int = -1,
        timeout_ms: int = LOOKUP_MS,
    ) -> Observation:
        """One offset question without a judgement."""
        question = self.question(spec, current_leader_epoch=epoch)
        return self.cluster.observe(
            lambda: self.cluster.list_offsets(
                question, version=version, isolation=isolation, replica=replica, timeout_ms=timeout_ms
            )
        )

    def expect(
        self,
        spec: OffsetSpec,
        *accepted: Accepted,
        check: str | None = None,
        version: int | None = None,
        isolation: int = READ_UNCOMMITTED,
        replica: int = CONSUMER,
        epoch: int = -1,
        timeout_ms: int = LOOKUP_MS,
        within: float = 0.0,
    ) -> Observation:
        """Ask, judge, record. The check is named after the spec unless it is given a name.

        With `within`, a promise that may take time is asked again for so many seconds; the last answer is judged.

        A spec above everything that the broker advertises is asked all the same, for the record, and the
        check is `unsupported`; unless the scenario chooses the version itself, because then the refusal is
        what it is about.
        """
        started, before = now(), time.monotonic()
        wanted = applicable(accepted, self.story.facts)
        observed = self._ask_until(
            lambda: self.ask(
                spec, version=version, isolation=isolation, replica=replica, epoch=epoch, timeout_ms=timeout_ms
            ),
            wanted,
            within,
        )
        highest = self.story.facts.list_offsets[1]
        if version is None and spec.since > highest:
            reason = f"{spec.name} needs ListOffsets v{spec.since}; the broker advertises up to v{highest}"
            judgement = Judgement(Verdict.UNSUPPORTED, reason=reason)
        else:
            judgement = judge(wanted, observed, may_decline=version is None and not spec.is_core)
        asked = f"ListOffsets v{self._version(version)} timestamp={spec.timestamp} ({spec.name})"
        asked += f" isolation={isolation}" if isolation else ""
        asked += f" replica={replica}" if replica != CONSUMER else ""
        asked += f" current_leader_epoch={epoch}" if epoch != -1 else ""
        asked += f" timeout_ms={timeout_ms}" if timeout_ms != LOOKUP_MS else ""
        self.story.add(
            check or spec.name,
            asked,
            wanted,
            observed,
            judgement,
            started=started,
            duration_ms=(time.monotonic() - before) * 1000,
            cluster=self.cluster,
        )
        return observed

    def _ask_until(self, ask: Callable[[], Observation], wanted: tuple[Accepted, ...], within: float) -> Observation:
        seen: list[Observation] = []
        with contextlib.suppress(DeadlinePassed):
            eventually(
                lambda: seen.append(ask()),
                lambda _: within == 0 or any(each.matches(seen[-1]) for each in wanted),
                reason="an accepted answer",
                seconds=within,
            )
        return seen[-1]

    def _version(self, version: int | None) -> int:
        return self.cluster.highest("list_offsets") if version is None else version

    def check(self, name: str, asked: str, observed: Observation, *accepted: Accepted) -> Judgement:
        """Judge and record an observation of any kind: what Produce, Fetch or DeleteRecords answered."""
        wanted = applicable(accepted, self.story.facts)
        return self.story.add(name, asked, wanted, observed, judge(wanted, observed), cluster=self.cluster)


class Transaction:
    """An open transaction of a producer of its own, on one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._cluster = partition.cluster
        self._id = f"conformance-{uuid.uuid4().hex}"
        self._producer: Producer = self._cluster.start_transactional_producer(self._id)
        self._sequence = 0
        self._end_offset = 0
        self._cluster.add_to_transaction(self._id, self._producer, partition.topic, partition.index)

    def produce_batch(self, *millis: int) -> None:
        """Write one batch inside the transaction."""
        records = [Record(T + each) for each in millis]
        batch = encode_batch(records, producer=self._producer, base_sequence=self._sequence)
        topic, index = self._partition.topic, self._partition.index
        written = self._cluster.produce(topic, index, batch, transactional_id=self._id)
        require(written.fields["error"], f"write to {topic} in a transaction")
        self._sequence += len(records)
        self._end_offset = written.fields["base_offset"] + len(records)

    def end(self, *, commit: bool) -> None:
        """Commit or abort. The marker is written soon after this returns, not before."""
        self._cluster.end_transaction(self._id, self._producer, commit=commit)

    def end_visibly(self, *, commit: bool) -> None:
        """Commit or abort, and wait for the marker: until then the log end grows by itself.

        Read with Fetch at the end of the log, which is served whatever has been deleted before it.
        """
        before = self._partition.fetch(self._end_offset).high_watermark
        self.end(commit=commit)
        eventually(
            lambda: self._partition.fetch(self._end_offset, isolation=READ_COMMITTED),
            lambda seen: seen.last_stable_offset > before,
            reason="the transaction's marker to be visible",
            seconds=VISIBLE_SECONDS,
        )
