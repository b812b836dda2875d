"""A fuzzer over frames and batches: no crash, no hang, memory within a bound.

Frames go to a broker process over a socket. Batches are checked, stored and looked up in this process, because
millions of them are worth more than thousands over a wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from crc32c import crc32c
from hostile_client import API_VERSIONS, PRODUCE, answer, connect, is_alive, request
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_requests import encoded, random_request
from running_broker import RunningBroker, start

from broker.apis import table
from broker.codec import codec
from broker.log.batches import check_produced, iter_records
from broker.log.memory import MemoryLog
from broker.log.settings import LogSettings
from broker.refusal import Refusal
from conformance.batches import Codec, Producer, Record, encode_batch

SECONDS = float(os.environ.get("BROKER_FUZZ_SECONDS", "60")) / 2
"""For frames, and as much again for batches. Set the variable to fuzz for longer."""

MEMORY_BOUND = 400 * 2**20
"""256 MiB of unfinished requests and answers, and the broker itself with what the fuzzer makes it keep."""

ANSWER_SECONDS = 10.0
MAY_WAIT = {1, 11, 14}
"""Fetch, JoinGroup and SyncGroup answer when something happens; the fuzzer does not wait for that."""

FUZZ = settings(
    max_examples=100,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # an example is a seed, and a smaller seed is no smaller example
    suppress_health_check=list(HealthCheck),
)


def until(end: float, fuzz: Callable[[], None]) -> None:
    """Fuzz a hundred examples at a time until the time is up."""
    while time.monotonic() < end:
        fuzz()


@pytest.fixture
def fuzzed(tmp_path: Path) -> Iterator[RunningBroker]:
    with start(tmp_path, settings={"log.retention.check.interval.ms": "100", "num.partitions": "2"}) as broker:
        yield broker


def test_no_frame_crashes_or_hangs_the_broker(fuzzed: RunningBroker) -> None:
    end = time.monotonic() + SECONDS
    sent = 0

    @FUZZ
    @given(st.randoms(use_true_random=True))
    def frames(random: Random) -> None:
        nonlocal sent
        sent += 1
        with connect(fuzzed.host_and_port) as connection:
            for _ in range(10):
                key, frame = random_frame(random)
                connection.settimeout(0.05 if key in MAY_WAIT else ANSWER_SECONDS)
                try:
                    connection.sendall(frame)
                    if answer(connection) is None:
                        break
                except TimeoutError:
                    assert key in MAY_WAIT, f"no answer to {frame.hex()}"
                    break
                except ConnectionError:
                    break
        if sent % 20 == 0:
            assert is_alive(fuzzed.host_and_port)
            assert fuzzed.memory_bytes() < MEMORY_BOUND
            assert "Traceback" not in fuzzed.log.read_text(), fuzzed.log.read_text()[-3000:]

    until(end, frames)
    assert sent > 20
    print(f"{sent} conversations, {fuzzed.memory_bytes() / 2**20:.0f} MiB")


def random_frame(random: Random) -> tuple[int, bytes]:
    """A request that is valid, or nearly, or not at all."""
    api = random.choice(list(table().values()))
    version = random.choice(api.versions)
    body = bytearray(encoded(random_request(api.key, version, random)))
    for _ in range(random.choice((0, 0, 1, 1, 3))):
        spoil(body, random)
    flexible = codec(api.key, version).flexible_request
    if random.random() < 0.02:
        version = random.choice((-1, api.versions[-1] + 1, 2**15 - 1))
    frame = bytearray(request(api.key, version, bytes(body), flexible=flexible))
    if random.random() < 0.02:
        struct.pack_into(">i", frame, 0, random.choice((-1, 0, 5, 2**31 - 1)))
    if api.key == PRODUCE:
        frame += request(API_VERSIONS, 0)  # a write may ask for no answer; this one does
    return api.key, bytes(frame)


def spoil(data: bytearray, random: Random) -> None:
    """Change a few bytes, cut some out, or put some in."""
    position = random.randrange(len(data) + 1)
    match random.randrange(4):
        case 0:
            data[position : position + 1] = random.randbytes(1)
        case 1:
            data[position:position] = random.choice(
                (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff", b"\x00")
            )
        case 2:
            del data[position : position + random.randrange(1, 8)]
        case 3:
            data[position : position + 4] = random.choice(
                (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00")
            )


def test_no_batch_crashes_the_log() -> None:
    end = time.monotonic() + SECONDS
    seen = {"accepted": 0, "refused": 0}
    topic = LogSettings(max_message_bytes=2**20, retention_ms=-1, segment_ms=500, compact=True)

    @FUZZ
    @given(st.randoms(use_true_random=True))
    def batches(random: Random) -> None:
        for _ in range(20):
            batch, honest = random_batch(random)
            try:
                header = check_produced(batch, 9, topic, 1_700_000_000_000)
            except Refusal as refusal:
                if honest and "without a key" not in refusal.message:
                    pytest.fail(f"an honest batch was refused: {refusal.message}: {batch.hex()}")
                seen["refused"] += 1
                continue
            seen["accepted"] += 1
            batch = batch[: header.size]
            assert len(list(iter_records(batch, header)[1])) == header.record_count
            asyncio.run(stored_and_found(topic, batch))

    until(end, batches)
    assert min(seen.values()) > 100, seen
    print(seen)


async def stored_and_found(topic: LogSettings, batch: bytes) -> None:
    """Whatever was accepted can be written, found, read and compacted."""
    log = MemoryLog(topic, 0)
    for _ in range(3):
        header = check_produced(batch, 9, topic, 1_700_000_000_000)
        with contextlib.suppress(Refusal):  # a sequence that is out of order
            await log.append(header, batch, 1_700_000_000_000)
    for timestamp in (0, 1, header.max_timestamp, header.max_timestamp + 1):
        await log.find_by_time(timestamp)
    await log.find_newest()
    await log.compact(1_700_000_000_000)
    await log.delete_up_to(1)
    await log.find_by_time(0)
    await log.read(1, 100, committed=True, at_least_one=True)
    await log.expire(1_700_000_000_000)


def random_batch(random: Random) -> tuple[bytes, bool]:
    """A batch, and whether it is an honest one.

    Otherwise it is spoilt, and mostly sealed again, so that the checksum does not hide what else is wrong.
    """
    records = [
        Record(
            random.choice((-1, 0, 1, 1000, 10**12)),
            random.randbytes(random.choice((0, 1, 70, 9000))),
            random.choice((b"", b"k", b"k" * 63, b"k" * 64, b"k" * 9000, None)),
        )
        for _ in range(random.choice((1, 1, 2, 5)))
    ]
    producer = Producer(random.choice((0, 7)), random.choice((0, 1))) if random.random() < 0.3 else None
    batch = bytearray(
        encode_batch(records, codec=random.choice(list(Codec)), producer=producer, base_sequence=0 if producer else -1)
    )
    if random.random() < 0.3:
        return bytes(batch), True
    spoil(batch, random)
    if len(batch) >= 61 and random.random() < 0.8:
        struct.pack_into(">i", batch, 8, len(batch) - 12)
        struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return bytes(batch), False
