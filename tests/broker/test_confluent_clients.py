"""An unmodified confluent-kafka: producer, consumer group and admin client."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from conformance.waiting import eventually

SECONDS = 20.0


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def create(admin: AdminClient, topic: str, partitions: int = 1, **config: str) -> None:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(SECONDS)


def write(bootstrap: str, topic: str, count: int, *, first: int = 0, **config: object) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **config})
    for number in range(first, first + count):
        producer.produce(topic, key=str(number), value=str(number))
    assert producer.flush(SECONDS) == 0


@contextlib.contextmanager
def consumer(bootstrap: str, group: str, **config: object) -> Iterator[Consumer]:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
        **config,
    }
    one = Consumer(settings)
    try:
        yield one
    finally:
        one.close()


def read(one: Consumer, count: int) -> list[str]:
    """Values of the next `count` records."""
    values: list[str] = []
    deadline = time.monotonic() + SECONDS
    while len(values) < count and time.monotonic() < deadline:
        message = one.poll(0.2)
        if message is not None:
            assert message.error() is None, message.error()
            values.append(message.value().decode())
    return values


def test_what_an_idempotent_producer_writes_a_group_reads(bootstrap: str, topic: str, admin: AdminClient) -> None:
    create(admin, topic, 3)
    write(bootstrap, topic, 1000)
    with consumer(bootstrap, topic) as one:
        one.subscribe([topic])
        assert sorted(map(int, read(one, 1000))) == list(range(1000))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_come_back_as_they_were(bootstrap: str, topic: str, admin: AdminClient, codec: str) -> None:
    create(admin, topic)
    write(bootstrap, topic, 500, **{"compression.type": codec, "linger.ms": 50})
    with consumer(bootstrap, topic) as one:
        one.assign([TopicPartition(topic, 0, 0)])
        assert read(one, 500) == [str(number) for number in range(500)]


def test_headers_of_records_come_back_as_they_were(bootstrap: str, topic: str, admin: AdminClient) -> None:
    create(admin, topic)
    headers = [("empty", b""), ("null", None), ("", b"x" * 100)]
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"value", b"k" * 100, headers=headers)
    assert producer.flush(SECONDS) == 0
    with consumer(bootstrap, topic) as one:
        one.assign([TopicPartition(topic, 0, 0)])
        message = eventually(lambda: one.poll(0.2), bool, reason="the record", seconds=SECONDS)
        assert message is not None
        assert message.headers() == headers


def test_a_group_resumes_where_it_committed(bootstrap: str, topic: str, admin: AdminClient) -> None:
    create(admin, topic)
    write(bootstrap, topic, 10)
    with consumer(bootstrap, topic) as first:
        first.subscribe([topic])
        assert read(first, 4) == ["0", "1", "2", "3"]
        first.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
    with consumer(bootstrap, topic) as second:
        second.subscribe([topic])
        assert read(second, 6) == ["4", "5", "6", "7", "8", "9"]
        (committed,) = second.committed([TopicPartition(topic, 0)], timeout=SECONDS)
        assert committed.offset == 4


MEMBER = """
import sys, time
from confluent_kafka import Consumer
bootstrap, topic = sys.argv[1:]
one = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest",
                "session.timeout.ms": 1000, "heartbeat.interval.ms": 200, "enable.auto.commit": False})
one.subscribe([topic])
while True:
    message = one.poll(0.1)
    assigned = [each.partition for each in one.assignment()]
    print("assigned", *sorted(assigned), flush=True)
    if message is not None and not message.error():
        print("read", message.partition(), message.value().decode(), flush=True)
        one.commit(message, asynchronous=False)
"""


def test_a_group_of_three_goes_on_when_one_member_is_killed(
    bootstrap: str, topic: str, admin: AdminClient, tmp_path: Path
) -> None:
    create(admin, topic, 6)
    members: list[subprocess.Popen[bytes]] = []
    outs = [tmp_path / f"member-{number}" for number in range(3)]
    script = tmp_path / "member.py"
    script.write_text(textwrap.dedent(MEMBER))

    def said(number: int, word: str) -> list[list[str]]:
        """What a member said, whole lines only: the last may still be on its way."""
        lines = outs[number].read_text().split("\n")[:-1]
        return [line.split()[1:] for line in lines if line.startswith(word)]

    def assigned(number: int) -> tuple[int, ...]:
        return tuple(map(int, (said(number, "assigned") or [[]])[-1]))

    def values() -> set[str]:
        return {value for number in range(3) for _partition, value in said(number, "read")}

    try:
        members += [
            subprocess.Popen([sys.executable, str(script), bootstrap, topic], stdout=out.open("wb")) for out in outs
        ]
        eventually(
            lambda: [assigned(number) for number in range(3)],
            lambda seen: sorted(sum(seen, ())) == list(range(6)) and all(len(each) == 2 for each in seen),
            reason="each of three members to read two partitions",
            seconds=30,
        )
        write(bootstrap, topic, 300)
        eventually(values, lambda seen: len(seen) == 300, reason="the group to read everything", seconds=30)
        members[0].kill()
        members[0].wait(10)
        eventually(
            lambda: [assigned(number) for number in (1, 2)],
            lambda seen: sorted(sum(seen, ())) == list(range(6)),
            reason="the two that live to take over",
            seconds=30,
        )
        write(bootstrap, topic, 300, first=300)
        eventually(values, lambda seen: len(seen) == 600, reason="the rest to read what came later", seconds=30)
    finally:
        for member in members:
            member.kill()
            member.wait(10)


def test_readers_of_committed_records_see_commits_and_no_aborts(bootstrap: str, topic: str, admin: AdminClient) -> None:
    create(admin, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(SECONDS)
    for number, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        for letter in "abc":
            producer.produce(topic, f"{number}{letter}")
        producer.flush(SECONDS)
        producer.commit_transaction(SECONDS) if commit else producer.abort_transaction(SECONDS)
    with consumer(bootstrap, topic, **{"isolation.level": "read_committed"}) as one:
        one.assign([TopicPartition(topic, 0, 0)])
        assert read(one, 6) == ["0a", "0b", "0c", "2a", "2b", "2c"]
    with consumer(bootstrap, topic, **{"isolation.level": "read_uncommitted"}) as one:
        one.assign([TopicPartition(topic, 0, 0)])
        assert len(read(one, 9)) == 9
        assert one.get_watermark_offsets(TopicPartition(topic, 0), timeout=SECONDS) == (0, 12)


def test_offsets_of_a_transaction_are_the_groups_once_it_commits(
    bootstrap: str, topic: str, admin: AdminClient
) -> None:
    create(admin, topic)
    create(admin, f"{topic}-out")
    write(bootstrap, topic, 5)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(SECONDS)
    with consumer(bootstrap, topic) as one:
        one.subscribe([topic])
        for upto, commit in ((3, False), (5, True)):
            while not one.assignment():
                one.poll(0.1)
            producer.begin_transaction()
            producer.produce(f"{topic}-out", "copied")
            producer.send_offsets_to_transaction(
                [TopicPartition(topic, 0, upto)], one.consumer_group_metadata(), SECONDS
            )
            producer.commit_transaction(SECONDS) if commit else producer.abort_transaction(SECONDS)
            (committed,) = one.committed([TopicPartition(topic, 0)], timeout=SECONDS)
            assert committed.offset == (5 if commit else -1001)


def test_a_second_producer_with_the_same_transactional_id_fences_the_first(
    bootstrap: str, topic: str, admin: AdminClient
) -> None:
    create(admin, topic)
    first = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    first.init_transactions(SECONDS)
    first.begin_transaction()
    first.produce(topic, "lost")
    first.flush(SECONDS)
    second = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    second.init_transactions(SECONDS)
    with pytest.raises(KafkaException) as refused:
        first.commit_transaction(SECONDS)
    assert refused.value.args[0].code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
    second.begin_transaction()
    second.produce(topic, "kept")
    second.commit_transaction(SECONDS)
    with consumer(bootstrap, topic, **{"isolation.level": "read_committed"}) as one:
        one.assign([TopicPartition(topic, 0, 0)])
        assert read(one, 1) == ["kept"]


def test_a_transaction_that_takes_too_long_is_aborted(bootstrap: str, topic: str, admin: AdminClient) -> None:
    create(admin, topic)
    slow = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "transaction.timeout.ms": 1000})
    slow.init_transactions(SECONDS)
    slow.begin_transaction()
    slow.produce(topic, "too slow")
    slow.flush(SECONDS)
    with consumer(bootstrap, topic) as one:
        stable = lambda: one.get_watermark_offsets(TopicPartition(topic, 0), timeout=SECONDS)[1]  # noqa: E731
        assert stable() == 0
        eventually(stable, lambda seen: seen == 2, reason="the transaction to be aborted", seconds=10)


def test_records_are_found_by_time(bootstrap: str, topic: str, admin: AdminClient) -> None:
    create(admin, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in range(10):
        producer.produce(topic, str(number), timestamp=1_700_000_000_000 + number * 1000)
    producer.flush(SECONDS)
    with consumer(bootstrap, topic) as one:
        (found,) = one.offsets_for_times([TopicPartition(topic, 0, 1_700_000_004_500)], timeout=SECONDS)
        assert found.offset == 5
        (found,) = one.offsets_for_times([TopicPartition(topic, 0, 1_800_000_000_000)], timeout=SECONDS)
        assert found.offset == -1
    newest = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.max_timestamp()})
    assert newest[TopicPartition(topic, 0)].result(SECONDS).offset == 9


def test_an_admin_describes_alters_grows_and_deletes_a_topic(topic: str, admin: AdminClient) -> None:
    create(admin, topic, 2, retention_ms="12345")
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    config = admin.describe_configs([resource])[resource].result(SECONDS)
    assert config["retention.ms"].value == "12345"
    assert config["cleanup.policy"].value == "delete"
    change = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
            ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE),
        ],
    )
    admin.incremental_alter_configs([change])[change].result(SECONDS)
    config = admin.describe_configs([resource])[resource].result(SECONDS)
    assert config["cleanup.policy"].value == "delete,compact"
    assert config["retention.ms"].value == "-1"
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(SECONDS)
    assert len(admin.list_topics(topic, timeout=SECONDS).topics[topic].partitions) == 5
    admin.delete_topics([topic])[topic].result(SECONDS)
    assert topic not in admin.list_topics(timeout=SECONDS).topics


def test_an_admin_is_refused_what_cannot_be(topic: str, admin: AdminClient) -> None:
    create(admin, topic)
    for bad, code in (
        (NewTopic(topic, 1, 1), KafkaError.TOPIC_ALREADY_EXISTS),
        (NewTopic("no/such topic!", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic(f"{topic}-2", 99_999, 1), KafkaError.POLICY_VIOLATION),
        (NewTopic(f"{topic}-2", 1, 3), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic(f"{topic}-2", 1, 1, config={"no.such": "thing"}), KafkaError.INVALID_CONFIG),
        (NewTopic(f"{topic}-2", 1, 1, config={"retention.ms": "soon"}), KafkaError.INVALID_CONFIG),
    ):
        with pytest.raises(KafkaException) as refused:
            admin.create_topics([bad])[bad.topic].result(SECONDS)
        assert refused.value.args[0].code() == code, refused.value


def test_an_admin_lists_and_describes_groups(bootstrap: str, topic: str, admin: AdminClient) -> None:
    create(admin, topic, 2)
    with consumer(bootstrap, topic, **{"group.instance.id": "one", "client.id": "reader"}) as one:
        one.subscribe([topic])
        eventually(lambda: one.poll(0.1) or one.assignment(), bool, reason="an assignment", seconds=SECONDS)
        described = admin.describe_consumer_groups([topic])[topic].result(SECONDS)
        assert described.state.name == "STABLE"
        (member,) = described.members
        assert member.client_id == "reader"
        assert member.group_instance_id == "one"
        assert {each.partition for each in member.assignment.topic_partitions} == {0, 1}
        listed = admin.list_consumer_groups().result(SECONDS)
        assert topic in [group.group_id for group in listed.valid]


def test_an_offset_that_is_gone_sends_a_consumer_to_the_start(bootstrap: str, topic: str, admin: AdminClient) -> None:
    create(admin, topic)
    write(bootstrap, topic, 10)
    admin.delete_records([TopicPartition(topic, 0, 6)])[TopicPartition(topic, 0, 6)].result(SECONDS)
    with consumer(bootstrap, topic) as one:
        one.assign([TopicPartition(topic, 0, 2)])
        assert read(one, 4) == ["6", "7", "8", "9"]
