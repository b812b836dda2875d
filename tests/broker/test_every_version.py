"""Every version that is advertised is honoured: the same short story at each of them, over the wire."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from broker.apis import table
from conformance.batches import Producer, Record, decode_batches, encode_batch
from conformance.wire import Connection

VERSIONS = {api.name: api.versions for api in table().values()}
SOON = timedelta(seconds=10)
Ask = Callable[..., Any]


@pytest.fixture
def ask(bootstrap: str) -> Iterator[Ask]:
    host, _, port = bootstrap.rpartition(":")
    with Connection(host, int(port)) as connection:
        yield connection.ask


@pytest.fixture
def topic_id(ask: Ask, topic: str) -> uuid.UUID:
    entry = {"name": topic, "num_partitions": 1, "replication_factor": 1, "assignments": (), "configs": ()}
    (created,) = ask("create_topics", 7, topics=[entry], timeout=SOON, validate_only=False).topics
    assert created.error_code == 0
    return created.topic_id  # type: ignore[no-any-return]


def produce(ask: Ask, version: int, topic: str, topic_id: uuid.UUID, batch: bytes, **fields: Any) -> Any:
    data = {"name": topic, "topic_id": topic_id, "partition_data": [{"index": 0, "records": batch}]}
    answer = ask("produce", version, acks=-1, timeout=SOON, topic_data=[data], **fields)
    return answer.responses[0].partition_responses[0]


def test_the_versions_are_those_of_the_issue_and_no_more_than_the_codec_knows(ask: Ask) -> None:
    answer = ask("api_versions", 4, client_software_name="a", client_software_version="1")
    seen = {int(each.api_key): (each.min_version, each.max_version) for each in answer.api_keys}
    assert seen == {api.key: (api.versions[0], api.versions[-1]) for api in table().values()}
    assert (seen[0], seen[1], seen[2], seen[18]) == ((3, 13), (4, 18), (1, 11), (0, 4))


@pytest.mark.parametrize("version", VERSIONS["produce"])
def test_a_batch_is_written(ask: Ask, topic: str, topic_id: uuid.UUID, version: int) -> None:
    batch = encode_batch([Record(1), Record(2)])
    for offset in (0, 2):
        written = produce(ask, version, topic, topic_id, batch)
        assert (written.error_code, written.base_offset) == (0, offset)
    refused = produce(ask, version, "no-such-topic", uuid.uuid4(), batch)
    assert refused.error_code == (100 if version >= 13 else 3)


@pytest.mark.parametrize("version", VERSIONS["fetch"])
def test_a_batch_is_read(ask: Ask, topic: str, topic_id: uuid.UUID, version: int) -> None:
    produce(ask, 9, topic, topic_id, encode_batch([Record(1), Record(2)]))

    def fetch(name: str, identity: uuid.UUID, offset: int) -> Any:
        wanted = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 2**20}
        answer = ask(
            "fetch", version, replica_id=-1, max_wait=timedelta(0), min_bytes=1, max_bytes=2**20,
            isolation_level=1, forgotten_topics_data=(), rack_id="",
            topics=[{"topic": name, "topic_id": identity, "partitions": [wanted]}],
        )  # fmt: skip
        return answer.responses[0].partitions[0]

    read = fetch(topic, topic_id, 0)
    assert (read.error_code, read.high_watermark, read.last_stable_offset) == (0, 2, 2)
    assert [record.offset for record in decode_batches(bytes(read.records))] == [0, 1]
    assert fetch(topic, topic_id, 9).error_code == 1
    assert fetch("no-such-topic", uuid.uuid4(), 0).error_code == (100 if version >= 13 else 3)


@pytest.mark.parametrize("version", VERSIONS["metadata"])
def test_a_topic_is_described(ask: Ask, topic: str, topic_id: uuid.UUID, version: int) -> None:
    fields = {
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": True,
    }
    answer = ask("metadata", version, topics=[{"name": topic, "topic_id": None}], **fields)
    (seen,) = answer.topics
    assert (seen.error_code, seen.name, len(seen.partitions)) == (0, topic, 1)
    assert seen.partitions[0].leader_id == answer.brokers[0].node_id
    if version >= 10:
        assert seen.topic_id == topic_id
    if version >= 12:
        (by_id,) = ask("metadata", version, topics=[{"name": None, "topic_id": topic_id}], **fields).topics
        assert by_id.name == topic
        (unknown,) = ask("metadata", version, topics=[{"name": None, "topic_id": uuid.uuid4()}], **fields).topics
        assert unknown.error_code == 100
    everything = ask("metadata", version, topics=None if version else (), **fields)
    assert topic in [each.name for each in everything.topics]


@pytest.mark.parametrize("version", VERSIONS["create_topics"])
def test_a_topic_is_created_with_an_assignment_or_only_in_thought(ask: Ask, topic: str, version: int) -> None:
    assigned = {
        "name": topic,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [{"partition_index": 0, "broker_ids": (1,)}, {"partition_index": 1, "broker_ids": (1,)}],
        "configs": [{"name": "retention.ms", "value": "7"}],
    }
    for validate_only, error in ((True, 0), (False, 0), (False, 36)):
        (seen,) = ask("create_topics", version, topics=[assigned], timeout=SOON, validate_only=validate_only).topics
        assert seen.error_code == error
    elsewhere = assigned | {"name": f"{topic}-2", "assignments": [{"partition_index": 0, "broker_ids": (2,)}]}
    (seen,) = ask("create_topics", version, topics=[elsewhere], timeout=SOON, validate_only=False).topics
    assert seen.error_code == 39


@pytest.mark.parametrize("version", VERSIONS["delete_topics"])
def test_a_topic_is_deleted(ask: Ask, topic: str, topic_id: uuid.UUID, version: int) -> None:
    fields: Any = {"topic_names": (topic,)}
    if version >= 6:
        fields = {"topics": [{"name": None, "topic_id": topic_id}]}
    for error in (0, 100 if version >= 6 else 3):
        (seen,) = ask("delete_topics", version, timeout=SOON, **fields).responses
        assert seen.error_code == error


@pytest.mark.usefixtures("topic_id")
@pytest.mark.parametrize("version", VERSIONS["create_partitions"])
def test_a_topic_grows_and_does_not_shrink(ask: Ask, topic: str, version: int) -> None:
    for count, error in ((3, 0), (3, 37), (1, 37)):
        entry = {"name": topic, "count": count, "assignments": None}
        (seen,) = ask("create_partitions", version, topics=[entry], timeout=SOON, validate_only=False).results
        assert seen.error_code == error


@pytest.mark.usefixtures("topic_id")
@pytest.mark.parametrize("version", VERSIONS["describe_configs"])
def test_settings_are_described(ask: Ask, topic: str, version: int) -> None:
    resources = [
        {"resource_type": 2, "resource_name": topic, "configuration_keys": ("retention.ms",)},
        {"resource_type": 4, "resource_name": "1", "configuration_keys": ("num.partitions",)},
        {"resource_type": 2, "resource_name": "no-such-topic", "configuration_keys": None},
        {"resource_type": 8, "resource_name": "x", "configuration_keys": None},
    ]
    seen = ask("describe_configs", version, resources=resources, include_synonyms=True, include_documentation=True)
    assert [int(each.error_code) for each in seen.results] == [0, 0, 3, 42]
    assert [each.configs[0].value for each in seen.results[:2]] == ["-1", "1"]


@pytest.mark.usefixtures("topic_id")
@pytest.mark.parametrize("version", VERSIONS["incremental_alter_configs"])
def test_settings_are_changed_or_refused(ask: Ask, topic: str, version: int) -> None:
    for name, operation, value, error in (
        ("retention.ms", 0, "5", 0),
        ("retention.ms", 1, None, 0),
        ("retention.ms", 0, None, 42),
        ("retention.ms", 2, "5", 40),
        ("cleanup.policy", 2, "compact", 0),
        ("cleanup.policy", 3, "compact", 0),
        ("cleanup.policy", 0, "burn", 40),
        ("no.such", 0, "1", 40),
        ("remote.storage.enable", 0, "true", 40),
        ("segment.bytes", 0, "1000", 40),
        ("internal.segment.bytes", 0, "1000", 0),
    ):
        change = {"name": name, "config_operation": operation, "value": value}
        resource = {"resource_type": 2, "resource_name": topic, "configs": [change]}
        (seen,) = ask("incremental_alter_configs", version, resources=[resource], validate_only=False).responses
        assert seen.error_code == error, (name, operation, value)


@pytest.mark.parametrize("version", VERSIONS["delete_records"])
def test_records_are_deleted(ask: Ask, topic: str, topic_id: uuid.UUID, version: int) -> None:
    produce(ask, 9, topic, topic_id, encode_batch([Record(1), Record(2)]))
    for offset, expected in ((1, (0, 1)), (-1, (0, 2)), (7, (1, -1))):
        entry = {"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}
        (seen,) = ask("delete_records", version, topics=[entry], timeout=SOON).topics[0].partitions
        assert (seen.error_code, seen.low_watermark) == expected


@pytest.mark.parametrize("version", VERSIONS["offset_for_leader_epoch"])
def test_the_end_of_an_epoch_is_told(ask: Ask, topic: str, topic_id: uuid.UUID, version: int) -> None:
    produce(ask, 9, topic, topic_id, encode_batch([Record(1), Record(2)]))
    for current, asked, expected in ((-1, 0, (0, 0, 2)), (0, 0, (0, 0, 2)), (-1, 5, (0, -1, -1)), (3, 0, (75, -1, -1))):
        entry = {"partition": 0, "current_leader_epoch": current, "leader_epoch": asked}
        topics = [{"topic": topic, "partitions": [entry]}]
        (seen,) = ask("offset_for_leader_epoch", version, replica_id=-1, topics=topics).topics[0].partitions
        assert (seen.error_code, seen.leader_epoch, seen.end_offset) == expected


@pytest.mark.parametrize("version", VERSIONS["find_coordinator"])
def test_the_coordinator_is_this_broker(ask: Ask, bootstrap: str, version: int) -> None:
    answer = ask("find_coordinator", version, key="g", key_type=0, coordinator_keys=("g",))
    seen = answer.coordinators[0] if version >= 4 else answer
    assert f"{seen.host}:{seen.port}" == bootstrap


def joined(ask: Ask, group: str, version: int = 9, **fields: Any) -> Any:
    """A member of a group, through as many requests as its version takes."""
    given = {
        "group_id": group,
        "session_timeout": timedelta(seconds=6),
        "rebalance_timeout": timedelta(seconds=6),
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"m"}],
        **fields,
    }
    answer = ask("join_group", version, **given)
    if answer.error_code == 79:
        answer = ask("join_group", version, **given | {"member_id": answer.member_id})
    return answer


@pytest.mark.parametrize("version", VERSIONS["join_group"])
def test_a_member_joins_alone_and_leads(ask: Ask, topic: str, version: int) -> None:
    seen = joined(ask, topic, version)
    assert seen.error_code == 0
    assert seen.leader == seen.member_id
    assert [member.member_id for member in seen.members] == [seen.member_id]
    assert joined(ask, topic, version, member_id="nobody").error_code == 25
    assert joined(ask, "", version).error_code == 24
    assert joined(ask, topic, version, session_timeout=timedelta(milliseconds=1)).error_code == 26
    assert joined(ask, topic, version, protocols=[{"name": "other", "metadata": b""}]).error_code == 23


@pytest.mark.parametrize("version", VERSIONS["sync_group"])
def test_the_leader_assigns(ask: Ask, topic: str, version: int) -> None:
    member = joined(ask, topic)
    fields = {"group_id": topic, "member_id": member.member_id, "protocol_type": "consumer", "protocol_name": "range"}
    mine = [{"member_id": member.member_id, "assignment": b"all of it"}]
    seen = ask("sync_group", version, generation_id=member.generation_id, assignments=mine, **fields)
    assert (seen.error_code, seen.assignment) == (0, b"all of it")
    again = ask("sync_group", version, generation_id=member.generation_id, assignments=(), **fields)
    assert again.assignment == b"all of it"
    assert ask("sync_group", version, generation_id=99, assignments=(), **fields).error_code == 22


@pytest.mark.parametrize("version", VERSIONS["heartbeat"])
def test_a_heartbeat_is_answered(ask: Ask, topic: str, version: int) -> None:
    member = joined(ask, topic)
    fields = {"group_id": topic, "member_id": member.member_id}
    assert ask("heartbeat", version, generation_id=member.generation_id, **fields).error_code == 0
    assert ask("heartbeat", version, generation_id=99, **fields).error_code == 22
    assert ask("heartbeat", version, generation_id=1, group_id=topic, member_id="nobody").error_code == 25


@pytest.mark.parametrize("version", VERSIONS["leave_group"])
def test_a_member_leaves_once(ask: Ask, topic: str, version: int) -> None:
    member = joined(ask, topic).member_id
    for error in (0, 25):
        one = {"member_id": member, "group_instance_id": None, "reason": None}
        seen = ask("leave_group", version, group_id=topic, member_id=member, members=[one])
        assert (seen.members[0] if version >= 3 else seen).error_code == error


@pytest.mark.parametrize("version", VERSIONS["offset_commit"])
@pytest.mark.parametrize("reader", [1, 7, 8, 10])
def test_an_offset_is_committed_and_fetched(
    ask: Ask, topic: str, topic_id: uuid.UUID, version: int, reader: int
) -> None:
    entry = {"partition_index": 0, "committed_offset": 42, "committed_leader_epoch": 0, "committed_metadata": "m"}
    answer = ask(
        "offset_commit", version, group_id=topic, member_id="", generation_id_or_member_epoch=-1,
        retention_time=timedelta(milliseconds=-1),
        topics=[{"name": topic, "topic_id": topic_id, "partitions": [entry]}],
    )  # fmt: skip
    assert answer.topics[0].partitions[0].error_code == 0
    wanted = [{"name": topic, "topic_id": topic_id, "partition_indexes": (0, 1)}]
    group = {"group_id": topic, "topics": wanted}
    seen = ask("offset_fetch", reader, groups=[group], **group)
    partitions = (seen.groups[0] if reader >= 8 else seen).topics[0].partitions
    assert [(each.committed_offset, each.metadata) for each in partitions] == [(42, "m"), (-1, "")]
    if reader >= 2:
        everything = {"group_id": topic, "topics": None}
        seen = ask("offset_fetch", reader, groups=[everything], **everything)
        assert len((seen.groups[0] if reader >= 8 else seen).topics) == 1


@pytest.mark.parametrize("version", VERSIONS["describe_groups"])
def test_a_group_is_described(ask: Ask, topic: str, version: int) -> None:
    joined(ask, topic)
    seen = ask("describe_groups", version, groups=(topic, "no-such-group"), include_authorized_operations=True).groups
    assert [each.group_state for each in seen] == ["CompletingRebalance", "Dead"]
    assert seen[1].error_code == (69 if version >= 6 else 0)


@pytest.mark.parametrize("version", VERSIONS["list_groups"])
def test_groups_are_listed(ask: Ask, topic: str, version: int) -> None:
    joined(ask, topic)
    seen = ask("list_groups", version, states_filter=("CompletingRebalance",), types_filter=("classic",))
    assert topic in [each.group_id for each in seen.groups]


@pytest.mark.parametrize("version", VERSIONS["init_producer_id"])
def test_each_producer_gets_an_id_and_each_restart_an_epoch(ask: Ask, topic: str, version: int) -> None:
    def init(transactional_id: str | None, **fields: Any) -> tuple[int, int, int]:
        seen = ask(
            "init_producer_id", version, transactional_id=transactional_id,
            **{"transaction_timeout": timedelta(seconds=9)} | fields,
        )  # fmt: skip
        return int(seen.error_code), int(seen.producer_id), int(seen.producer_epoch)

    assert init(None)[1] != init(None)[1]
    _, producer_id, _ = init(topic)
    assert init(topic) == (0, producer_id, 1)
    assert init("")[0] == 42
    assert init(topic, transaction_timeout=timedelta(hours=9))[0] == 50
    if version >= 3:
        assert init(topic, producer_id=producer_id, producer_epoch=1) == (0, producer_id, 2)
        assert init(topic, producer_id=producer_id, producer_epoch=0)[0] == (90 if version >= 4 else 47)


@pytest.mark.parametrize("version", range(5))
def test_a_transaction_is_written_and_ended(ask: Ask, topic: str, topic_id: uuid.UUID, version: int) -> None:
    """AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit and EndTxn, each at this version where it has it."""
    started = ask("init_producer_id", 4, transactional_id=topic, transaction_timeout=timedelta(seconds=9))
    who = {"producer_id": started.producer_id, "producer_epoch": started.producer_epoch}
    batch = encode_batch([Record(1)], producer=Producer(started.producer_id, 0, transactional=True), base_sequence=0)
    assert produce(ask, 9, topic, topic_id, batch, transactional_id=topic).error_code == 48

    adding = min(version, 3)

    def add(partition: int, epoch: int = 0) -> int:
        answer = ask(
            "add_partitions_to_txn", adding, v3_and_below_transactional_id=topic,
            v3_and_below_producer_id=started.producer_id, v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[{"name": topic, "partitions": (partition,)}],
        )  # fmt: skip
        return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    assert add(7) == 3
    assert add(0, epoch=5) == (90 if adding >= 2 else 47)
    assert add(0) == 0
    assert produce(ask, 9, topic, topic_id, batch, transactional_id=topic).error_code == 0

    assert ask("add_offsets_to_txn", version, transactional_id=topic, group_id=topic, **who).error_code == 0
    entry = {"partition_index": 0, "committed_offset": 7, "committed_metadata": None}
    topics = [{"name": topic, "partitions": [entry]}]
    committed = ask("txn_offset_commit", version, transactional_id=topic, group_id=topic, topics=topics, **who)
    assert committed.topics[0].partitions[0].error_code == 0
    wanted = {"group_id": topic, "topics": [{"name": topic, "partition_indexes": (0,)}]}
    unstable = ask("offset_fetch", 7, require_stable=True, **wanted).topics[0].partitions[0]
    assert unstable.error_code == 88

    for commit, error in ((True, 0), (True, 0), (False, 48)):
        assert ask("end_txn", version, transactional_id=topic, committed=commit, **who).error_code == error
    settled = ask("offset_fetch", 7, require_stable=True, **wanted).topics[0].partitions[0]
    assert settled.committed_offset == 7


def test_from_v12_on_a_write_adds_its_partition_to_the_transaction(ask: Ask, topic: str, topic_id: uuid.UUID) -> None:
    started = ask("init_producer_id", 4, transactional_id=topic, transaction_timeout=timedelta(seconds=9))
    batch = encode_batch([Record(1)], producer=Producer(started.producer_id, 0, transactional=True), base_sequence=0)
    assert produce(ask, 12, topic, topic_id, batch, transactional_id=topic).error_code == 0
    assert produce(ask, 12, topic, topic_id, batch).error_code == 53
