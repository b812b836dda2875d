"""A broker or cluster as a client sees it: versions negotiated, leaders found, offset APIs in plain numbers.

Each method is one request at one version and returns what came back as an `Observation` or a small value.
Only leadership is retried, as every client does; any other error is an answer, and answers are for judging.
"""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from conformance.answers import Observation, Silence
from conformance.batches import BadBatch, Producer, StoredRecord, decode_batches
from conformance.security import PLAINTEXT, Security
from conformance.specs import OffsetSpec
from conformance.waiting import eventually
from conformance.wire import (
    ANSWER_SECONDS,
    API_KEYS,
    BadAddress,
    BrokerUnreachable,
    Connection,
    ConnectionClosed,
    Exchange,
    MalformedAnswer,
    NotAllowedIn,
    WireError,
    codec_versions,
    compose,
    error_name,
    split_address,
)

CONSUMER = -1
"""The replica id of an ordinary client; brokers number themselves from 0."""

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
NOT_LEADER_OR_FOLLOWER = 6
COORDINATOR_LOADING = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
CONCURRENT_TRANSACTIONS = 51
OFFSET_NOT_AVAILABLE = 78

LEADERSHIP_ERRORS = frozenset({LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, OFFSET_NOT_AVAILABLE})
LEADERSHIP_SECONDS = 5.0
"""A new topic has a leader within 0.2 s on a busy machine; five seconds is a broken election."""

INVALID_REPLICATION_FACTOR = 38
"""Kafka's answer to CreateTopics while its only broker is fenced, as one is that was paused or starved for a second."""

COORDINATOR_SECONDS = 30.0
"""The first transaction of a broker's life creates an internal topic, which can take seconds."""

REQUEST_TIMED_OUT = 7
TIMED_OUT_SECONDS = 1.0
"""Kafka 4.3 with tiered storage says now and then, within a millisecond, that a look-up by time has timed out."""

LOOKUP_MS = 10_000
"""How long a broker may look for a time in remote storage, from ListOffsets v10 on: as long as a client would wait."""

NAMES_ONLY = 12
"""The last Produce and Fetch version that names topics; later ones use topic ids, which no scenario needs."""


class NotSupported(Exception):
    """The broker does not advertise an API, or no version of it that the codec has."""


class StepFailed(Exception):
    """A step that a scenario needs was refused, so the questions after it would mean nothing."""


Entries = dict[tuple[str, int], list[Observation]]
"""Answers of ListOffsets by topic and partition; a broker may give several for one."""


@dataclass(frozen=True)
class Question:
    """One entry of a ListOffsets request."""

    topic: str
    partition: int
    spec: OffsetSpec
    current_leader_epoch: int = -1


@dataclass(frozen=True)
class Fetched:
    """One partition of a Fetch answer."""

    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: tuple[StoredRecord, ...]

    @property
    def readable(self) -> tuple[StoredRecord, ...]:
        return tuple(record for record in self.records if not record.control)


class Cluster:
    """The suite's own client. Not safe for use by several threads; close it when done."""

    def __init__(
        self, bootstrap: str, *, answer_seconds: float = ANSWER_SECONDS, security: Security = PLAINTEXT
    ) -> None:
        """Asks for the API versions at once, so that an address without a Kafka behind it fails here."""
        self.bootstrap = bootstrap
        self._answer_seconds = answer_seconds
        self._security = security
        self._connections: dict[str, Connection] = {}
        self._leaders: dict[tuple[str, int], str] = {}
        self._past: list[Exchange] = []
        self.api_versions = self._negotiate()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.close_connections()
        self._leaders.clear()

    def close_connections(self) -> None:
        """Connect anew for the next request; what was asked is kept, and so is what is known of leaders."""
        for connection in self._connections.values():
            self._past.extend(connection.exchanges)
            connection.close()
        self._connections.clear()

    def _negotiate(self) -> dict[str, tuple[int, int]]:
        """The advertised range of each API. Version 0, because every broker must understand it."""
        answer = self.ask("api_versions", version=0)
        names = {key: name for name, key in API_KEYS.items()}
        return {
            names[int(entry.api_key)]: (int(entry.min_version), int(entry.max_version))
            for entry in answer.api_keys
            if int(entry.api_key) in names
        }

    def highest(self, api: str, *, up_to: int | None = None) -> int:
        """The highest version of `api` that the broker advertises and the codec has."""
        if api not in self.api_versions:
            raise NotSupported(f"the broker does not advertise {api}")
        low, high = self.api_versions[api]
        codec = codec_versions(api)
        version = min(high, codec[-1] if up_to is None else up_to)
        if version < max(low, codec[0]):
            raise NotSupported(f"the broker speaks {api} v{low} to v{high}, this client v{codec[0]} to v{codec[-1]}")
        return version

    @contextlib.contextmanager
    def answering_within(self, seconds: float) -> Iterator[None]:
        """Wait less, or longer, for answers inside: for a broker that is known not to give any."""
        before, self._answer_seconds = self._answer_seconds, seconds
        self.close_connections()
        try:
            yield
        finally:
            self._answer_seconds = before
            self.close_connections()

    # -- one request

    def ask(self, api: str, *, version: int | None = None, node: str | None = None, **fields: object) -> Any:
        """One request at the highest common version, or at `version`; to the bootstrap node, or to `node`."""
        chosen = self.highest(api) if version is None else version
        return self._on(node, lambda connection: connection.ask(api, chosen, **fields))

    def ask_raw(self, api: str, version: int, body: bytes, *, flexible: bool, node: str | None = None) -> bytes:
        """One hand-written request; see `Connection.ask_raw`."""
        raw: bytes = self._on(node, lambda connection: connection.ask_raw(api, version, body, flexible=flexible))
        return raw

    def _on(self, node: str | None, use: Any) -> Any:
        address = node or self.bootstrap
        connection = self._connections.get(address)
        if connection is None:
            connection = Connection(
                *split_address(address), answer_seconds=self._answer_seconds, security=self._security
            )
            self._connections[address] = connection
        try:
            return use(connection)
        except WireError:
            self._past.extend(connection.exchanges)
            connection.close()
            self._connections.pop(address, None)
            raise

    def drain_exchanges(self) -> list[Exchange]:
        """All exchanges since the last call, in order of connection."""
        exchanges, self._past = self._past, []
        for connection in self._connections.values():
            exchanges.extend(connection.exchanges)
            connection.exchanges.clear()
        return exchanges

    def observe(self, ask: Any) -> Observation:
        """What `ask` observes, with every way of not answering turned into an observation too.

        A connection that was closed under the question is told apart from a broker that is gone by
        connecting once more.
        """
        try:
            observation: Observation = ask()
            return observation
        except ConnectionClosed as error:
            try:
                self._negotiate()
            except WireError as gone:
                return Observation(silence=Silence.UNREACHABLE, detail=f"{error}; then {gone}")
            return Observation(silence=error.silence, detail=str(error))
        except WireError as error:
            return Observation(silence=error.silence, detail=str(error))

    # -- topics

    def create_topic(self, name: str, *, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """A topic of one's own, led and answering when this returns.

        A broker without CreateTopics (librdkafka's mock) makes topics when Metadata names them; it cannot
        be given a configuration or a number of partitions.
        """
        if "create_topics" not in self.api_versions:
            if partitions > 1:
                raise NotSupported("the broker does not advertise create_topics: no choice of partitions")
            self._metadata(name, create=True)
        else:
            settings = [{"name": key, "value": value} for key, value in (config or {}).items()]
            entry = {
                "name": name,
                "num_partitions": partitions,
                "replication_factor": -1 if self.highest("create_topics") >= 4 else 1,
                "assignments": (),
                "configs": settings,
            }

            def create() -> Any:
                answer = self.ask(
                    "create_topics", topics=[entry], timeout=timedelta(seconds=ANSWER_SECONDS), validate_only=False
                )
                return sole(answer.topics, "create_topics")

            created = eventually(
                create,
                lambda seen: seen.error_code != INVALID_REPLICATION_FACTOR,
                reason=f"a broker to put topic {name} on",
                seconds=LEADERSHIP_SECONDS,
            )
            require(created.error_code, f"create topic {name}", getattr(created, "error_message", ""))
        self.await_leaders(name, range(partitions))

    def await_leaders(self, topic: str, partitions: Iterable[int], *, seconds: float = LEADERSHIP_SECONDS) -> None:
        """Wait until every partition has a leader that answers ListOffsets."""
        for partition in partitions:
            eventually(
                lambda partition=partition: self._ready(topic, partition),  # type: ignore[misc]
                lambda error: error == 0,
                reason=f"partition {topic}-{partition} to have a leader that answers",
                seconds=seconds,
            )

    def _ready(self, topic: str, partition: int) -> int:
        try:
            leader = self._find_leader(topic, partition)
            if leader is None:
                return LEADER_NOT_AVAILABLE
            request = self._list_offsets_request([Question(topic, partition, OffsetSpec("earliest", -2))])
            answer = self._on(leader, lambda connection: connection.exchange("list_offsets", request))
            return int(sole(sole(answer.topics, "list_offsets").partitions, "list_offsets").error_code)
        except WireError:
            return LEADER_NOT_AVAILABLE

    def delete_topic(self, name: str) -> None:
        """Delete a topic; returns when the broker says it is unknown."""
        deadline = timedelta(seconds=ANSWER_SECONDS)
        entry = {"name": name, "topic_id": None}
        answer = self.ask("delete_topics", topics=[entry], topic_names=(name,), timeout=deadline)
        require(sole(answer.responses, "delete_topics").error_code, f"delete topic {name}")
        eventually(
            lambda: self._topic_error(name),
            lambda error: error == UNKNOWN_TOPIC_OR_PARTITION,
            reason=f"topic {name} to be gone",
            seconds=LEADERSHIP_SECONDS,
        )

    def _metadata(self, topic: str, *, create: bool = False) -> Any:
        return self.ask(
            "metadata",
            topics=[{"name": topic, "topic_id": None}],
            allow_auto_topic_creation=create,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )

    def _topic_error(self, name: str) -> int:
        return int(sole(self._metadata(name).topics, "metadata").error_code)

    def topic_exists(self, name: str) -> bool:
        return self._topic_error(name) == 0

    def add_partitions(self, topic: str, count: int) -> None:
        entry = {"name": topic, "count": count, "assignments": None}
        deadline = timedelta(seconds=ANSWER_SECONDS)
        answer = self.ask("create_partitions", topics=[entry], timeout=deadline, validate_only=False)
        require(sole(answer.results, "create_partitions").error_code, f"grow topic {topic} to {count} partitions")
        self.await_leaders(topic, range(count))

    def configure_topic(self, name: str, config: Mapping[str, str]) -> None:
        """Set topic settings, leaving the others as they are; returns when the broker says that it has them.

        A controller acknowledges a change before the broker that leads the topic has heard of it. A record written in
        between would be kept or deleted by the settings before.
        """
        changes = [{"name": key, "config_operation": 0, "value": value} for key, value in config.items()]
        resource = {"resource_type": 2, "resource_name": name, "configs": changes}
        answer = self.ask("incremental_alter_configs", resources=[resource], validate_only=False)
        first = sole(answer.responses, "incremental_alter_configs")
        require(first.error_code, f"set {dict(config)} on topic {name}", first.error_message)
        if "describe_configs" in self.api_versions:
            eventually(
                lambda: self._settings(name, tuple(config)),
                lambda seen: seen == dict(config),
                reason=f"topic {name} to have {dict(config)}",
                seconds=LEADERSHIP_SECONDS,
            )

    def _settings(self, topic: str, names: tuple[str, ...]) -> dict[str, str | None]:
        wanted = {"resource_type": 2, "resource_name": topic, "configuration_keys": names}
        answer = self.ask("describe_configs", resources=[wanted], include_synonyms=False, include_documentation=False)
        return {str(each.name): each.value for each in sole(answer.results, "describe_configs").configs}

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The leader epoch that Metadata announces; -1 where the version has none."""
        for entry in sole(self._metadata(topic).topics, "metadata").partitions:
            if entry.partition_index == partition:
                return int(getattr(entry, "leader_epoch", -1))
        raise StepFailed(f"Metadata does not list partition {topic}-{partition}")

    def partition_leaders(self, topic: str) -> dict[int, str]:
        """Each partition's leader, as an address. A partition that has none at the moment is asked about at the
        bootstrap node, whose refusal says so."""
        answer = self._metadata(topic)
        described = sole(answer.topics, "metadata")
        require(described.error_code, f"look up topic {topic}")
        self._note_leaders(topic, answer)
        indexes = [int(entry.partition_index) for entry in described.partitions]
        return {index: self.leader(topic, index) for index in indexes}

    def _find_leader(self, topic: str, partition: int) -> str | None:
        # A broker without CreateTopics makes the topic on the first Metadata, maybe asynchronously.
        self._note_leaders(topic, self._metadata(topic, create="create_topics" not in self.api_versions))
        return self._leaders.get((topic, partition))

    def _note_leaders(self, topic: str, metadata: Any) -> None:
        nodes = {int(broker.node_id): f"{broker.host}:{broker.port}" for broker in metadata.brokers}
        for entry in sole(metadata.topics, "metadata").partitions:
            place = topic, int(entry.partition_index)
            self._leaders.pop(place, None)
            if int(entry.leader_id) in nodes:
                self._leaders[place] = nodes[int(entry.leader_id)]

    def leader(self, topic: str, partition: int) -> str:
        """The address of the leader; the bootstrap node for a partition that does not exist."""
        return self._leaders.get((topic, partition)) or self.bootstrap

    # -- offset questions

    def list_offsets(
        self,
        question: Question,
        *,
        version: int | None = None,
        isolation: int = READ_UNCOMMITTED,
        replica: int = CONSUMER,
        timeout_ms: int = LOOKUP_MS,
    ) -> Observation:
        """One question, one answer: error, offset, timestamp and, from version 4 on, leader_epoch."""
        entries = self.list_offsets_together(
            [question], version=version, isolation=isolation, replica=replica, timeout_ms=timeout_ms
        )
        answers = entries.get((question.topic, question.partition), [])
        if len(answers) != 1:
            detail = f"{len(answers)} entries for {question.topic}-{question.partition} instead of one"
            return Observation(silence=Silence.OMITTED, detail=detail)
        return answers[0]

    def list_offsets_together(
        self,
        questions: Sequence[Question],
        *,
        version: int | None = None,
        isolation: int = READ_UNCOMMITTED,
        replica: int = CONSUMER,
        timeout_ms: int = LOOKUP_MS,
    ) -> Entries:
        """Several questions in one request to the first one's leader; the order of the answer is not looked at.

        Answers that every consumer takes as "ask again" are asked again; the last is returned, whatever it is.
        """
        request = self._list_offsets_request(questions, version, isolation, replica, timeout_ms)
        enough = time.monotonic() + TIMED_OUT_SECONDS
        return eventually(
            lambda: self._ask_the_leader(questions[0], request, patient=replica == CONSUMER),
            lambda seen: REQUEST_TIMED_OUT not in _errors(seen) or time.monotonic() > enough,
            reason="a look-up that does not time out",
            seconds=TIMED_OUT_SECONDS + LEADERSHIP_SECONDS,
        )

    def _ask_the_leader(self, first: Question, request: Any, *, patient: bool) -> Entries:
        """What the leader of the first one's partition answers; with `patient`, once there is one."""
        deadline = time.monotonic() + LEADERSHIP_SECONDS
        while True:
            node = self.leader(first.topic, first.partition)
            entries = _entries(self._on(node, lambda connection: connection.exchange("list_offsets", request)))
            if not patient or not _errors(entries) & LEADERSHIP_ERRORS or time.monotonic() > deadline:
                return entries
            self.await_leaders(first.topic, [first.partition])

    def _list_offsets_request(
        self,
        questions: Sequence[Question],
        version: int | None = None,
        isolation: int = READ_UNCOMMITTED,
        replica: int = CONSUMER,
        timeout_ms: int = LOOKUP_MS,
    ) -> Any:
        topics: dict[str, list[dict[str, int]]] = {}
        for each in questions:
            topics.setdefault(each.topic, []).append(
                {
                    "partition_index": each.partition,
                    "timestamp": each.spec.timestamp,
                    "current_leader_epoch": each.current_leader_epoch,
                }
            )
        fields = {
            "replica_id": replica,
            "isolation_level": isolation,
            "topics": [{"name": name, "partitions": entries} for name, entries in topics.items()],
            "timeout": timedelta(milliseconds=timeout_ms),
        }
        return compose("list_offsets", self.highest("list_offsets") if version is None else version, fields)

    def list_offsets_v0(self, question: Question, *, most: int = 5) -> Observation:
        """The legacy question, written by hand: error, the number of offsets, and the first of them.

        Version 0 answers a list of segment boundaries, newest first, and has no timestamp.
        """
        name = question.topic.encode()
        body = struct.pack(f">iih{len(name)}siiqi", -1, 1, len(name), name, 1, question.partition,
                           question.spec.timestamp, most)  # fmt: skip
        node = self.leader(question.topic, question.partition)
        raw = self.ask_raw("list_offsets", 0, body, flexible=False, node=node)
        try:
            position = 4 + 2 + struct.unpack_from(">h", raw, 4)[0] + 4
            _index, error, count = struct.unpack_from(">ihi", raw, position)
            offsets = struct.unpack_from(f">{count}q", raw, position + 10)
        except struct.error as broken:
            raise MalformedAnswer(f"{node}, list_offsets v0: {broken}") from broken
        return Observation({"error": error, "count": count, "offset": offsets[0] if offsets else -1})

    # -- records

    def produce(self, topic: str, partition: int, batch: bytes, *, transactional_id: str | None = None) -> Observation:
        """Write one batch, acknowledged by all: error, base_offset, log_append_time, log_start_offset."""
        node = self.leader(topic, partition)
        answer = self.ask(
            "produce",
            version=self.highest("produce", up_to=NAMES_ONLY),
            node=node,
            transactional_id=transactional_id,
            acks=-1,
            timeout=timedelta(seconds=ANSWER_SECONDS),
            topic_data=[{"name": topic, "partition_data": [{"index": partition, "records": batch}]}],
        )
        entry = sole(sole(answer.responses, "produce").partition_responses, "produce")
        append_time = entry.log_append_time
        return Observation(
            {
                "error": int(entry.error_code),
                "base_offset": int(entry.base_offset),
                "log_append_time": -1 if append_time is None else round(append_time.timestamp() * 1000),
                "log_start_offset": int(getattr(entry, "log_start_offset", -1)),
            }
        )

    def fetch(
        self, topic: str, partition: int, offset: int, *, isolation: int = READ_UNCOMMITTED, wait_ms: int = 0
    ) -> Fetched:
        """Read from `offset` as far as one answer of a mebibyte goes."""
        wanted = {
            "partition": partition,
            "fetch_offset": offset,
            "partition_max_bytes": 2**20,
            "log_start_offset": -1,
            "current_leader_epoch": -1,
        }
        node = self.leader(topic, partition)
        answer = self.ask(
            "fetch",
            version=self.highest("fetch", up_to=NAMES_ONLY),
            node=node,
            replica_id=CONSUMER,
            max_wait=timedelta(milliseconds=wait_ms),
            min_bytes=1,
            max_bytes=2**20,
            isolation_level=isolation,
            session_id=0,
            session_epoch=-1,
            topics=[{"topic": topic, "partitions": [wanted]}],
            forgotten_topics_data=(),
            rack_id="",
        )
        try:
            entry = sole(sole(answer.responses, "fetch").partitions, "fetch")
            return Fetched(
                int(entry.error_code),
                int(entry.high_watermark),
                int(entry.last_stable_offset),
                int(getattr(entry, "log_start_offset", -1)),
                tuple(record for record in decode_batches(bytes(entry.records or b"")) if record.offset >= offset),
            )
        except BadBatch as error:
            raise MalformedAnswer(f"{node}, fetch: {error}") from error

    def delete_records(self, topic: str, partition: int, before: int) -> Observation:
        """Delete up to an offset, or to the high watermark with -1: error and low_watermark."""
        answer = self.ask(
            "delete_records",
            node=self.leader(topic, partition),
            topics=[{"name": topic, "partitions": [{"partition_index": partition, "offset": before}]}],
            timeout=timedelta(seconds=ANSWER_SECONDS),
        )
        entry = sole(sole(answer.topics, "delete_records").partitions, "delete_records")
        return Observation({"error": int(entry.error_code), "low_watermark": int(entry.low_watermark)})

    def epoch_end(self, topic: str, partition: int, epoch: int) -> Observation:
        """Where a leader epoch ends: error, leader_epoch and end_offset of OffsetForLeaderEpoch."""
        asked = {"partition": partition, "current_leader_epoch": -1, "leader_epoch": epoch}
        answer = self.ask(
            "offset_for_leader_epoch",
            node=self.leader(topic, partition),
            replica_id=CONSUMER,
            topics=[{"topic": topic, "partitions": [asked]}],
        )
        entry = sole(sole(answer.topics, "offset_for_leader_epoch").partitions, "offset_for_leader_epoch")
        return Observation(
            {
                "error": int(entry.error_code),
                "leader_epoch": int(entry.leader_epoch),
                "end_offset": int(entry.end_offset),
            }
        )

    # -- groups

    def commit_offset(
        self, group: str, topic: str, partition: int, offset: int, *, leader_epoch: int = -1, metadata: str = ""
    ) -> Observation:
        """Commit an offset for a group without members, as a client does that assigns partitions by itself."""

        def look(node: str) -> Observation:
            committed = {
                "partition_index": partition,
                "committed_offset": offset,
                "committed_leader_epoch": leader_epoch,
                "committed_metadata": metadata,
            }
            answer = self.ask(
                "offset_commit",
                version=self.highest("offset_commit", up_to=9),  # later ones use topic ids
                node=node,
                group_id=group,
                generation_id_or_member_epoch=-1,
                member_id="",
                group_instance_id=None,
                retention_time=timedelta(milliseconds=-1),
                topics=[{"name": topic, "partitions": [committed]}],
            )
            entry = sole(sole(answer.topics, "offset_commit").partitions, "offset_commit")
            return Observation({"error": int(entry.error_code)})

        return self._from_coordinator(group, look)

    def committed_offset(self, group: str, topic: str, partition: int, *, metadata: str = "") -> Observation:
        """What a group committed for a partition: error, committed_offset, leader_epoch.

        `same_metadata` is 1 where what was committed beside it is `metadata`, and 0 otherwise.
        """

        def look(node: str) -> Observation:
            told = self._committed(node, group, [{"name": topic, "partition_indexes": (partition,)}])
            if getattr(told, "error_code", 0):  # then it lists no topics
                return Observation({"error": int(told.error_code)})
            entry = sole(sole(told.topics, "offset_fetch").partitions, "offset_fetch")
            return Observation(
                {
                    "error": int(entry.error_code),
                    "committed_offset": int(entry.committed_offset),
                    "leader_epoch": int(getattr(entry, "committed_leader_epoch", -1)),
                    "same_metadata": int((entry.metadata or "") == metadata),
                }
            )

        return self._from_coordinator(group, look)

    def all_committed(self, group: str, topic: str) -> Observation:
        """How many partitions a group has commits for: `of_topic` and of `others`, as the coordinator lists them."""

        def look(node: str) -> Observation:
            told = self._committed(node, group, None)
            error = int(getattr(told, "error_code", 0))
            listed = [str(each.name) for each in told.topics for _ in each.partitions]
            of_topic = listed.count(topic)
            return Observation({"error": error, "of_topic": of_topic, "others": len(listed) - of_topic})

        return self._from_coordinator(group, look)

    def _committed(self, node: str, group: str, topics: list[dict[str, object]] | None) -> Any:
        answer = self.ask(
            "offset_fetch",
            version=self.highest("offset_fetch", up_to=9),  # later ones use topic ids
            node=node,
            group_id=group,
            topics=topics,
            groups=[{"group_id": group, "topics": topics}],
            require_stable=False,
        )
        return sole(answer.groups, "offset_fetch") if hasattr(answer, "groups") else answer

    def _from_coordinator(self, group: str, look: Callable[[str], Observation]) -> Observation:
        """What a group's coordinator answers, once there is one that has read up."""

        def ask() -> Observation:
            node = self._coordinator(group, key_type=0)
            return look(node) if node else Observation({"error": COORDINATOR_NOT_AVAILABLE})

        return eventually(
            ask,
            lambda seen: seen.fields["error"] not in COORDINATOR_ERRORS,
            reason=f"a coordinator of group {group}",
            seconds=COORDINATOR_SECONDS,
        )

    # -- transactions

    def start_idempotent_producer(self) -> Producer:
        """A producer id without transactions, from any broker. A young one needs a moment to get hold of ids."""
        return self._producer(lambda: self._init_producer_id(None, None), "an idempotent producer")

    def start_transactional_producer(self, transactional_id: str) -> Producer:
        """A producer id for transactions, from the coordinator that owns this transactional id."""

        def look() -> tuple[int, Producer | None]:
            node = self._transaction_coordinator(transactional_id)
            return self._init_producer_id(transactional_id, node) if node else (COORDINATOR_NOT_AVAILABLE, None)

        return self._producer(look, "a transactional producer")

    def _producer(self, look: Callable[[], tuple[int, Producer | None]], what: str) -> Producer:
        error, producer = eventually(
            look,
            lambda seen: seen[0] not in COORDINATOR_ERRORS,
            reason=f"an id for {what}",
            seconds=COORDINATOR_SECONDS,
        )
        require(error, f"start {what}")
        assert producer is not None
        return producer

    def _init_producer_id(self, transactional_id: str | None, node: str | None) -> tuple[int, Producer | None]:
        answer = self.ask(
            "init_producer_id",
            version=self.highest("init_producer_id", up_to=5),  # later ones add two-phase commit
            node=node,
            transactional_id=transactional_id,
            transaction_timeout=timedelta(seconds=60),
            producer_id=-1,
            producer_epoch=-1,
        )
        identity = int(answer.producer_id), int(answer.producer_epoch)
        return int(answer.error_code), Producer(*identity, transactional_id is not None)

    def _transaction_coordinator(self, transactional_id: str) -> str | None:
        return self._coordinator(transactional_id, key_type=1)

    def _coordinator(self, key: str, *, key_type: int) -> str | None:
        answer = self.ask("find_coordinator", key=key, key_type=key_type, coordinator_keys=(key,))
        entry = sole(answer.coordinators, "find_coordinator") if hasattr(answer, "coordinators") else answer
        return None if int(entry.error_code) else f"{entry.host}:{entry.port}"

    def add_to_transaction(self, transactional_id: str, producer: Producer, topic: str, partition: int) -> None:
        def look() -> int:
            answer = self.ask(
                "add_partitions_to_txn",
                version=self.highest("add_partitions_to_txn", up_to=3),  # later ones are for brokers
                node=self._transaction_coordinator(transactional_id),
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=producer.id,
                v3_and_below_producer_epoch=producer.epoch,
                v3_and_below_topics=[{"name": topic, "partitions": (partition,)}],
            )
            topics = answer.results_by_topic_v3_and_below
            added = sole(sole(topics, "add_partitions_to_txn").results_by_partition, "add_partitions_to_txn")
            return int(added.partition_error_code)

        self._settle(look, "add the partition to the transaction")

    def end_transaction(self, transactional_id: str, producer: Producer, *, commit: bool) -> None:
        """Commit or abort. The markers are written soon after this returns, not before."""

        def look() -> int:
            answer = self.ask(
                "end_txn",
                version=self.highest("end_txn", up_to=3),  # later ones begin the next transaction by themselves
                node=self._transaction_coordinator(transactional_id),
                transactional_id=transactional_id,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                committed=commit,
            )
            return int(answer.error_code)

        self._settle(look, "commit" if commit else "abort")

    def _settle(self, look: Any, doing: str) -> None:
        error = eventually(
            look,
            lambda seen: seen not in COORDINATOR_ERRORS,
            reason=f"the transaction coordinator to {doing}",
            seconds=COORDINATOR_SECONDS,
        )
        require(error, doing)


COORDINATOR_ERRORS = frozenset(
    {COORDINATOR_LOADING, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS}
)
"""What every client tries again after: the coordinator is moving in, or busy with the transaction before."""


def require(error: int, doing: str, message: str | None = None) -> None:
    """A step's error code must be 0, or the story cannot go on."""
    if error:
        raise StepFailed(f"{doing}: {error_name(error)}{f' ({message})' if message else ''}")


def sole(entries: Sequence[Any] | None, api: str) -> Any:
    """The entry about the one thing that was asked."""
    if not entries or len(entries) != 1:
        raise MalformedAnswer(f"{api}: {len(entries or ())} entries for the one thing that was asked")
    return entries[0]


def reachable(bootstrap: str, security: Security = PLAINTEXT) -> str | None:
    """None when a Kafka answers at the address, else one sentence on what is there instead."""
    try:
        with Cluster(bootstrap, answer_seconds=5.0, security=security):
            return None
    except BadAddress as error:
        return str(error)
    except NotAllowedIn as error:
        return str(error).removeprefix(f"{bootstrap}: ")
    except BrokerUnreachable as error:
        return f"nobody listens there ({error})"
    except WireError as error:
        return f"something listens there, but it does not answer like a Kafka ({error})"


def _errors(entries: Entries) -> set[int]:
    return {each.fields["error"] for answers in entries.values() for each in answers}


def _entries(answer: Any) -> Entries:
    entries: Entries = {}
    for topic in answer.topics:
        for each in topic.partitions:
            fields = {"error": int(each.error_code), "offset": int(each.offset), "timestamp": int(each.timestamp)}
            if hasattr(each, "leader_epoch"):
                fields["leader_epoch"] = int(each.leader_epoch)
            entries.setdefault((str(topic.name), int(each.partition_index)), []).append(Observation(fields))
    return entries
