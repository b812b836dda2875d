"""What the broker may cost: memory for many records, however they are batched."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path

from running_broker import start

from broker.log.batches import read_header
from broker.log.memory import MemoryLog
from broker.log.settings import LogSettings
from conformance.batches import Record, encode_batch
from conformance.cluster import Cluster

MILLION = 1_000_000
BOUND = 300 * 2**20


def test_a_million_records_of_a_hundred_bytes_take_less_than_300_mebibytes(tmp_path: Path, topic: str) -> None:
    batch = encode_batch([Record(0, b"v" * 100)] * 1000)
    with start(tmp_path, settings={"log.retention.ms": "-1"}) as broker, Cluster(broker.address) as cluster:
        cluster.create_topic(topic)
        for _ in range(MILLION // 1000):
            assert cluster.produce(topic, 0, batch).fields["error"] == 0
            cluster.drain_exchanges()
        assert cluster.fetch(topic, 0, MILLION).high_watermark == MILLION
        assert broker.memory_bytes() < BOUND


def test_a_batch_costs_little_more_than_its_bytes_even_with_a_single_record() -> None:
    batch = encode_batch([Record(0, b"v" * 100)])

    async def write() -> MemoryLog:
        log = MemoryLog(LogSettings(), 0)
        for _ in range(10_000):
            await log.append(read_header(batch), batch, 0)
        return log

    tracemalloc.start()
    log = asyncio.run(write())
    taken, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < log.size() * 1.4  # room to grow, and an index of 24 bytes a batch
