"""Second opinions: kafka-python, aiokafka, and the tool that comes with Apache Kafka."""

from __future__ import annotations

import asyncio
import os
import subprocess

import aiokafka
import kafka
import kafka.admin
import pytest
from confluent_kafka import Producer

from backends.java_runtime import find_java
from backends.kafka_jars import kafka_tools_classpath

SECONDS = 20.0
KAFKA = "4.3.1"


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_kafka_python_writes_and_reads_by_group_and_by_time(
    bootstrap: str, topic: str, compression: str | None
) -> None:
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([kafka.admin.NewTopic(topic, 2, 1)])
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, compression_type=compression, linger_ms=20)
    for number in range(100):
        producer.send(topic, str(number).encode(), partition=number % 2, timestamp_ms=1_700_000_000_000 + number)
    producer.flush(SECONDS)
    producer.close()
    reader = kafka.KafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=10_000
    )
    values = set()
    for message in reader:
        values.add(int(message.value))
        if len(values) == 100:
            break
    assert values == set(range(100))
    reader.commit()
    partition = kafka.TopicPartition(topic, 0)
    assert reader.committed(partition) == 50
    assert reader.offsets_for_times({partition: 1_700_000_000_051})[partition].offset == 26
    assert reader.beginning_offsets([partition]) == {partition: 0}
    assert reader.end_offsets([partition]) == {partition: 50}
    reader.close()
    admin.close()


def test_aiokafka_writes_in_transactions_and_reads_by_group(bootstrap: str, topic: str) -> None:
    async def story() -> list[bytes]:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"kept")
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"dropped")
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send_and_wait(topic, b"kept too")
        finally:
            await producer.stop()
        reader = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=topic,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await reader.start()
        try:
            return [(await asyncio.wait_for(reader.getone(), SECONDS)).value for _ in range(2)]
        finally:
            await reader.stop()

    assert asyncio.run(story()) == [b"kept", b"kept too"]


@pytest.mark.parametrize(
    ("time", "expected"),
    [("latest", 3), ("earliest", 0), ("max-timestamp", 1), ("earliest-local", 0), ("1700000000150", 1)],
)
def test_kafkas_own_get_offset_shell_is_answered(bootstrap: str, topic: str, time: str, expected: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for millis in (100, 300, 200):
        producer.produce(topic, b"v", partition=0, timestamp=1_700_000_000_000 + millis)
    assert producer.flush(SECONDS) == 0
    java = find_java()
    jars = kafka_tools_classpath(KAFKA, java)
    command = [str(java.executable), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command += ["-cp", os.pathsep.join(map(str, jars)), "org.apache.kafka.tools.GetOffsetShell"]
    command += ["--bootstrap-server", bootstrap, "--topic", topic, "--time", time]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert f"{topic}:0:{expected}" in done.stdout.splitlines(), done.stdout + done.stderr
