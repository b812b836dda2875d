"""Record batches: what is written has every byte where Kafka wants it, and no bytes can hurt the reader."""

import random
import resource
import struct
import time

import confluent_kafka
import cramjam
import pytest
from crc32c import crc32c

from conformance.batches import (
    CONTROL_BATCH,
    LOG_APPEND_TIME,
    MAX_INFLATED_BYTES,
    BadBatch,
    Codec,
    Producer,
    Record,
    StoredRecord,
    decode_batches,
    encode_batch,
)
from conformance.cluster import Cluster
from conformance.specs import T

RECORDS = [
    Record(T + 5000, value=b"first"),
    Record(T, value=b"older than the first", key=b"k"),
    Record(T + 9000, value=None, key=b"tombstone"),
    Record(T + 9000, value=b"", key=b""),
    Record(T + 9000, value=b"long " * 500),
]

BODY_AT = 21  # the checksum covers everything from here on
COUNT_AT = 57
PAYLOAD_AT = 61


def seal(batch: bytearray) -> bytes:
    """The batch with a length and a checksum that fit, so that a reader looks further in."""
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[BODY_AT:])))
    return bytes(batch)


def batch_of(payload: bytes, *, codec: int = Codec.NONE, count: int = 1) -> bytes:
    """A batch that is in order but for its payload."""
    batch = bytearray(encode_batch([Record(T)])[:PAYLOAD_AT])
    struct.pack_into(">h", batch, BODY_AT, codec)
    struct.pack_into(">i", batch, COUNT_AT, count)
    return seal(batch + payload)


# -- what is written


@pytest.mark.parametrize("codec", Codec)
def test_records_come_back_as_they_were_written(codec: Codec) -> None:
    stored = decode_batches(encode_batch(RECORDS, codec=codec, base_offset=40))
    assert stored == [
        StoredRecord(40 + index, record.timestamp, record.key, record.value, control=False)
        for index, record in enumerate(RECORDS)
    ]


def test_several_batches_are_read_in_a_row() -> None:
    data = encode_batch(RECORDS[:2]) + encode_batch(RECORDS[2:], codec=Codec.ZSTD, base_offset=2)
    assert [record.offset for record in decode_batches(data)] == [0, 1, 2, 3, 4]


def test_every_field_of_a_plain_batch_is_where_kafka_wants_it() -> None:
    batch = encode_batch([Record(T + 5), Record(T), Record(T + 3)], base_offset=7)
    assert struct.unpack_from(">qiib", batch) == (7, len(batch) - 12, -1, 2)
    assert struct.unpack_from(">I", batch, 17) == (crc32c(batch[BODY_AT:]),)
    attributes, last_delta, base_timestamp, max_timestamp = struct.unpack_from(">hiqq", batch, BODY_AT)
    assert (attributes, last_delta, base_timestamp, max_timestamp) == (0, 2, T + 5, T + 5)
    assert struct.unpack_from(">qhii", batch, 43) == (-1, -1, -1, 3)


@pytest.mark.parametrize("codec", Codec)
def test_the_codec_is_in_the_attributes(codec: Codec) -> None:
    assert struct.unpack_from(">h", encode_batch(RECORDS, codec=codec), BODY_AT) == (codec.value,)


@pytest.mark.parametrize(("transactional", "attributes"), [(False, 0), (True, 0x10)])
def test_a_producer_is_where_kafka_looks_for_it(transactional: bool, attributes: int) -> None:
    producer = Producer(id=2**40 + 1, epoch=5, transactional=transactional)
    batch = encode_batch(RECORDS, producer=producer, base_sequence=17)
    assert struct.unpack_from(">h", batch, BODY_AT) == (attributes,)
    assert struct.unpack_from(">qhii", batch, 43) == (2**40 + 1, 5, 17, len(RECORDS))


@pytest.mark.parametrize("timestamp", [-1, 0, T, 2**62])
def test_any_timestamp_can_be_chosen(timestamp: int) -> None:
    stored = decode_batches(encode_batch([Record(T), Record(timestamp)]))
    assert [record.timestamp for record in stored] == [T, timestamp]


def test_librdkafka_writes_the_same_bytes() -> None:
    producer = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 50})
    for record in RECORDS:
        producer.produce("t", value=record.value, key=record.key, timestamp=record.timestamp, partition=0)
    assert producer.flush(10) == 0
    node = next(iter(producer.list_topics(timeout=10).brokers.values()))
    with Cluster(f"{node.host}:{node.port}") as cluster:
        cluster.await_leaders("t", [0])
        cluster.fetch("t", 0, 0)
        (theirs,) = [
            bytes(exchange.response.responses[0].partitions[0].records)  # type: ignore[attr-defined]
            for exchange in cluster.drain_exchanges()
            if exchange.api == "fetch"
        ]
    assert without_leader_epoch(theirs) == without_leader_epoch(encode_batch(RECORDS))


def without_leader_epoch(batch: bytes) -> bytes:
    """The four bytes that are the broker's to fill in, and that the checksum leaves out for that reason."""
    return batch[:12] + batch[16:]


# -- what brokers do to a batch


def test_a_batch_that_is_cut_off_at_the_end_is_left_out() -> None:
    whole, cut = encode_batch(RECORDS[:2]), encode_batch(RECORDS[2:], base_offset=2)
    for length in range(len(cut)):
        assert [record.offset for record in decode_batches(whole + cut[:length])] == [0, 1]


def test_append_time_replaces_every_timestamp() -> None:
    batch = bytearray(encode_batch(RECORDS))
    struct.pack_into(">h", batch, BODY_AT, LOG_APPEND_TIME)
    struct.pack_into(">q", batch, 35, T + 77)
    assert {record.timestamp for record in decode_batches(seal(batch))} == {T + 77}


def test_transaction_markers_say_that_they_are() -> None:
    batch = bytearray(encode_batch(RECORDS[:1]))
    struct.pack_into(">h", batch, BODY_AT, CONTROL_BATCH)
    assert [record.control for record in decode_batches(seal(batch))] == [True]


def test_headers_are_passed_over() -> None:
    fields = b"\x00\x00\x00" + b"\x01" + b"\x02v" + b"\x04" + b"\x02a\x02b" + b"\x02c\x01"
    (record,) = decode_batches(batch_of(bytes([len(fields) * 2]) + fields))
    assert record == StoredRecord(0, T, None, b"v", control=False)


def test_a_bare_snappy_block_is_read_as_well_as_javas_framing() -> None:
    payload = encode_batch(RECORDS)[PAYLOAD_AT:]
    bare = batch_of(bytes(cramjam.snappy.compress_raw(payload)), codec=Codec.SNAPPY, count=len(RECORDS))
    assert [record.value for record in decode_batches(bare)] == [record.value for record in RECORDS]


# -- what no broker should do


def spoilt(position: int, value: bytes) -> bytes:
    batch = bytearray(encode_batch(RECORDS))
    batch[position : position + len(value)] = value
    return bytes(batch)


BAD: dict[str, tuple[bytes, str]] = {
    "checksum": (spoilt(70, b"\xff"), "checksum of the batch at offset 0"),
    "magic 1": (spoilt(16, b"\x01"), "magic byte 1"),
    "magic -1": (spoilt(16, b"\xff"), "magic byte -1"),
    "negative length": (spoilt(8, struct.pack(">i", -1)), "length -1 is less"),
    "zero length": (spoilt(8, struct.pack(">i", 0)), "length 0 is less"),
    "no room for a header": (spoilt(8, struct.pack(">i", 48)), "length 48 is less"),
    "negative count": (batch_of(b"", count=-1), "a batch of -1 records"),
    "more records than bytes": (batch_of(b"", count=2**31 - 1), "runs past the end"),
    "a number without an end": (batch_of(b"\xff" * 20), "more than ten bytes"),
    "a number cut off": (batch_of(b"\x80"), "runs past the end"),
    "an endless key": (batch_of(b"\x00\x00\x00\x00" + b"\xfe" * 9 + b"\x01"), "runs past the end"),
    "a key of -2 bytes": (batch_of(b"\x00\x00\x00\x00\x03"), "a field of -2 bytes"),
    "endless headers": (batch_of(b"\x00\x00\x00\x00\x01\x01" + b"\xfe" * 9 + b"\x01"), "runs past the end"),
    "codec 5": (batch_of(b"", codec=5), "codec 5 is not one of Kafka's"),
    "codec 7": (batch_of(b"", codec=7), "codec 7 is not one of Kafka's"),
    **{
        f"garbage for {codec.name}": (batch_of(b"\x13garbage", codec=codec), "does not inflate")
        for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
    },
}


@pytest.mark.parametrize("name", BAD)
def test_a_batch_that_is_none_says_what_is_wrong_with_it(name: str) -> None:
    data, words = BAD[name]
    with pytest.raises(BadBatch, match=words):
        decode_batches(data)


BOMB_BYTES = 128 * 1024 * 1024
CHUNK = bytes(1024 * 1024)


def inflates_to_bomb(codec: str) -> bytes:
    """So many zeros that keeping them would show, compressed piece by piece so that making them does not."""
    match codec:
        case "snappy":  # says how long it will be, and begins to be it
            return b"\x80\x80\x80\x40" + bytes(cramjam.snappy.compress_raw(CHUNK))[3:]
        case "xerial":
            block = bytes(cramjam.snappy.compress_raw(CHUNK))
            framed = struct.pack(">i", len(block)) + block
            return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + framed * (BOMB_BYTES // len(CHUNK))
        case _:
            compressor = getattr(cramjam, codec).Compressor()
            for _ in range(BOMB_BYTES // len(CHUNK)):
                compressor.compress(CHUNK)
            return bytes(compressor.finish())


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("gzip", Codec.GZIP),
        ("lz4", Codec.LZ4),
        ("zstd", Codec.ZSTD),
        ("snappy", Codec.SNAPPY),
        ("xerial", Codec.SNAPPY),
    ],
)
def test_a_bomb_is_given_up_before_it_takes_memory_or_time(name: str, codec: Codec) -> None:
    data = batch_of(inflates_to_bomb(name), codec=codec)
    before, started = peak_megabytes(), time.monotonic()
    with pytest.raises(BadBatch, match="inflate"):
        decode_batches(data)
    assert time.monotonic() - started < 1
    assert peak_megabytes() - before < 4 * MAX_INFLATED_BYTES // 2**20


def peak_megabytes() -> int:
    """The most that this process has had so far; so it can miss a small growth, and never invents one."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def test_many_small_bombs_in_one_fetch_share_one_bound() -> None:
    small = batch_of(bytes(cramjam.zstd.compress(CHUNK)), codec=Codec.ZSTD)
    fitting = MAX_INFLATED_BYTES // len(CHUNK)
    assert len(decode_batches(small * fitting)) == fitting
    with pytest.raises(BadBatch):
        decode_batches(small * (fitting + 1))


def test_thousands_of_tiny_snappy_blocks_take_no_longer_than_their_bytes() -> None:
    block = struct.pack(">i", 3) + b"\x01\x00a"
    data = batch_of(b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + block * 50_000, codec=Codec.SNAPPY)
    started = time.monotonic()
    with pytest.raises(BadBatch):
        decode_batches(data)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("codec", Codec)
def test_whatever_is_changed_in_a_batch_the_reader_gives_records_or_says_it_is_bad(codec: Codec) -> None:
    chance = random.Random(codec)
    original = encode_batch(RECORDS, codec=codec)
    for turn in range(600):
        batch = bytearray(original)
        for _ in range(chance.randrange(1, 4)):
            batch[chance.randrange(len(batch))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        if chance.random() < 0.3:
            del batch[chance.randrange(len(batch)) :]
        if len(batch) > PAYLOAD_AT and turn % 4:  # mostly with a good checksum, so that the payload is looked at
            batch[16] = 2
            seal(batch)
        try:
            records = decode_batches(bytes(batch))
        except BadBatch:
            continue
        assert all(isinstance(record, StoredRecord) for record in records)
