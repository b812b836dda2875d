"""Record batches, built and read here because client libraries hide exactly what offset questions turn on:
which records share a batch, their single timestamps, the codec, and the producer's sequence numbers.

The layout is that of message format v2 (KIP-98). Older formats are not written.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import cramjam

NO_PRODUCER = -1
CONTROL_BATCH = 0x20
TRANSACTIONAL = 0x10
LOG_APPEND_TIME = 0x08
CODEC_MASK = 0x07

MAX_INFLATED_BYTES = 4 * 1024 * 1024
"""No scenario writes more than a few kilobytes, so batches that inflate beyond this are an attack or a bug.

For all batches of one Fetch together: a mebibyte has room for two thousand that are a bomb each.
"""

_PREFIX = struct.Struct(">qiibI")  # base offset, length, leader epoch, magic, crc
_BODY = struct.Struct(">hiqqqhii")  # attributes, last delta, base ts, max ts, producer id, epoch, sequence, count
_LENGTH_COUNTS_FROM = 12  # the length field leaves out itself and the base offset before it
_XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)  # the framing that Java's snappy writes and expects


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class BadBatch(Exception):
    """The bytes are not a record batch of format v2."""


@dataclass(frozen=True)
class Record:
    """One record; `timestamp` is in milliseconds. The offset is the broker's to give."""

    timestamp: int
    value: bytes | None = b"v"
    key: bytes | None = None


@dataclass(frozen=True)
class Producer:
    """The identity that idempotent and transactional batches carry."""

    id: int
    epoch: int
    transactional: bool = False


@dataclass(frozen=True)
class StoredRecord:
    """One record as a Fetch returned it. Control records (transaction markers) say so."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    control: bool


def encode_batch(
    records: Sequence[Record],
    *,
    codec: Codec = Codec.NONE,
    producer: Producer | None = None,
    base_sequence: int = -1,
    base_offset: int = 0,
) -> bytes:
    """One batch with all `records`. At least one is required; timestamps need not be in order."""
    base_timestamp = records[0].timestamp
    payload = b"".join(
        _encode_record(record, index, record.timestamp - base_timestamp) for index, record in enumerate(records)
    )
    attributes = codec | (TRANSACTIONAL if producer and producer.transactional else 0)
    body = _BODY.pack(
        attributes,
        len(records) - 1,
        base_timestamp,
        max(record.timestamp for record in records),
        producer.id if producer else NO_PRODUCER,
        producer.epoch if producer else NO_PRODUCER,
        base_sequence,
        len(records),
    ) + _deflate(codec, payload)
    length = _PREFIX.size - _LENGTH_COUNTS_FROM + len(body)
    return _PREFIX.pack(base_offset, length, -1, 2, _checksum(body)) + body


def decode_batches(data: bytes) -> list[StoredRecord]:
    """All records of the complete batches in `data`; a batch cut off at the end is left out, as in any Fetch."""
    records: list[StoredRecord] = []
    position, room = 0, MAX_INFLATED_BYTES
    while position + _PREFIX.size <= len(data):
        base_offset, length, _epoch, magic, crc = _PREFIX.unpack_from(data, position)
        if magic != 2:
            raise BadBatch(f"magic byte {magic}, want 2")
        if length < _PREFIX.size - _LENGTH_COUNTS_FROM + _BODY.size:
            raise BadBatch(f"length {length} is less than a batch header")
        end = position + _LENGTH_COUNTS_FROM + length
        if end > len(data):
            break
        body = data[position + _PREFIX.size : end]
        if _checksum(body) != crc:
            raise BadBatch(f"checksum of the batch at offset {base_offset} does not match")
        decoded, inflated = _decode_body(base_offset, body, room)
        records.extend(decoded)
        position, room = end, room - inflated
    return records


def _decode_body(base_offset: int, body: bytes, room: int) -> tuple[list[StoredRecord], int]:
    """The records of one batch, and how many bytes came out of its codec."""
    attributes, _last_delta, base_timestamp, max_timestamp, *_producer, count = _BODY.unpack_from(body)
    if count < 0:
        raise BadBatch(f"a batch of {count} records")
    codec = attributes & CODEC_MASK
    payload = body[_BODY.size :]
    if codec != Codec.NONE:
        payload = _inflate(codec, payload, room)
    reader = _Reader(payload)
    records = []
    for _ in range(count):
        reader.varint()  # the record's length; its fields say the same
        reader.take(1)  # attributes, unused so far
        timestamp = base_timestamp + reader.varint()
        offset = base_offset + reader.varint()
        key, value = reader.nullable(), reader.nullable()
        for _ in range(reader.varint()):
            reader.nullable(), reader.nullable()
        if attributes & LOG_APPEND_TIME:
            timestamp = max_timestamp
        records.append(StoredRecord(offset, timestamp, key, value, bool(attributes & CONTROL_BATCH)))
    return records, len(payload) if codec != Codec.NONE else 0


def _checksum(body: bytes) -> int:
    # Imported on first use: it takes as long to load as `offsets get` takes to ask, which reads no batch.
    from crc32c import crc32c

    return crc32c(body)


def _encode_record(record: Record, offset_delta: int, timestamp_delta: int) -> bytes:
    fields = (
        b"\x00"
        + _varint(timestamp_delta)
        + _varint(offset_delta)
        + _nullable(record.key)
        + _nullable(record.value)
        + _varint(0)
    )
    return _varint(len(fields)) + fields


def _nullable(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Zigzag, then seven bits a byte."""
    zigzag = (number << 1) ^ (number >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


class _Reader:
    """Reads a batch's payload; whatever would run past its end is a `BadBatch`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, count: int) -> bytes:
        end = self._position + count
        if count < 0 or end > len(self._data):
            raise BadBatch(f"a field of {count} bytes at {self._position} runs past the end of the batch")
        data, self._position = self._data[self._position : end], end
        return data

    def varint(self) -> int:
        zigzag = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            zigzag |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return (zigzag >> 1) ^ -(zigzag & 1)
        raise BadBatch("a number of more than ten bytes")

    def nullable(self) -> bytes | None:
        length = self.varint()
        return None if length == -1 else self.take(length)


def _deflate(codec: Codec, payload: bytes) -> bytes:
    match codec:
        case Codec.NONE:
            return payload
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(payload))
        case Codec.SNAPPY:
            block = bytes(cramjam.snappy.compress_raw(payload))
            return _XERIAL_HEADER + struct.pack(">i", len(block)) + block
        case Codec.LZ4:
            # Kafka reads frames of independent blocks only.
            frame = cramjam.lz4.Compressor(block_linked=False)
            frame.compress(payload)
            return bytes(frame.finish())
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(payload))


def _inflate(codec: int, payload: bytes, room: int) -> bytes:
    """The payload of a compressed batch; more than `room` bytes of it is a `BadBatch`."""
    target = bytearray(room)  # the codecs cannot grow this one, as they would cramjam's own Buffer
    try:
        match codec:
            case Codec.GZIP:
                size = cramjam.gzip.decompress_into(payload, target)
            case Codec.SNAPPY:
                return _inflate_snappy(payload, room)
            case Codec.LZ4:
                size = cramjam.lz4.decompress_into(payload, target)
            case Codec.ZSTD:
                size = cramjam.zstd.decompress_into(payload, target)
            case _:
                raise BadBatch(f"codec {codec} is not one of Kafka's")
    except cramjam.DecompressionError as error:
        raise BadBatch(f"the batch does not inflate: {error}") from error
    return bytes(target[:size])


def _inflate_snappy(payload: bytes, room: int) -> bytes:
    """Java writes snappy in blocks behind a header; librdkafka writes one bare block."""
    if not payload.startswith(_XERIAL_HEADER[:8]):
        return _snappy_block(payload, room)
    position, inflated = len(_XERIAL_HEADER), bytearray()
    while position + 4 <= len(payload):
        (size,) = struct.unpack_from(">i", payload, position)
        inflated += _snappy_block(payload[position + 4 : position + 4 + max(size, 0)], room - len(inflated))
        position += 4 + max(size, 0)
    return bytes(inflated)


def _snappy_block(block: bytes, room: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > room:
        raise BadBatch("a snappy block inflates beyond the bound")
    return bytes(cramjam.snappy.decompress_raw(block))
