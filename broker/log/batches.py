"""Record batches of format v2 (KIP-98): read, checked and patched in place, never re-encoded on the way in.

What a producer sends is hostile until checked here: lengths, checksum, codec, the size it inflates to, and every
record's place. A batch that passes can be read later without checking again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import cramjam
from crc32c import crc32c
from kio.schema.errors import ErrorCode

from broker.log.settings import LogSettings
from broker.refusal import Refusal

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4

MAX_INFLATED_BYTES = 64 * 2**20
"""A batch is at most a mebibyte by default, and text deflates to a tenth: 64 MiB is no honest batch."""

NO_TIMESTAMP = -1
NO_PRODUCER = -1

_HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = _HEADER.size
_LENGTH_COUNTS_FROM = 12  # the length field leaves out itself and the base offset before it
_SHORTEST_LENGTH = 14  # of a record in the oldest format, which is what Kafka compares with before it knows better
_CRC_AT = 17
_CRC_COVERS_FROM = 21
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_SIZE = 16


class Header(NamedTuple):
    """The fixed part of a batch."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return self.length + _LENGTH_COUNTS_FROM

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def last_sequence(self) -> int:
        """Sequence numbers start over after the largest int32."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


class Record(NamedTuple):
    """One record: where its bytes are in the inflated payload, and what lookups and compaction need of it."""

    start: int
    end: int
    timestamp: int
    offset: int
    key: bytes | None
    has_value: bool


def read_header(data: bytes | bytearray | memoryview, position: int = 0) -> Header:
    """The header of a stored batch."""
    return Header._make(_HEADER.unpack_from(data, position))


def check_produced(records: bytes | None, version: int, settings: LogSettings, now: int) -> Header:
    """The header of the one batch that `records` begins with; a `Refusal`, with Kafka's code, for anything else.

    As in Kafka, a second batch is refused, and the beginning of one that ends in the middle is left out.
    """
    size = _whole_batch(records or b"")
    if not records or size is None:
        raise Refusal(ErrorCode.invalid_record, "a produce request must carry a record batch for each partition")
    magic = records[16]
    if magic > 2:
        raise Refusal(ErrorCode.corrupt_message, f"batch format {magic} is not one of Kafka's")
    if magic < 2:
        raise Refusal(ErrorCode.invalid_record, f"batch format {magic} is not accepted, only 2")
    if size < len(records) and _whole_batch(records[size:]) is not None:
        raise Refusal(ErrorCode.invalid_record, "a produce request must carry one batch for each partition, not more")
    if size < HEADER_SIZE:
        raise Refusal(ErrorCode.corrupt_message, f"{size} bytes are less than a batch header")
    header = read_header(records)
    records = records[:size]
    if size > settings.max_message_bytes:
        raise Refusal(
            ErrorCode.message_too_large,
            f"the batch has {size} bytes, more than max.message.bytes={settings.max_message_bytes}",
        )
    if crc32c(memoryview(records)[_CRC_COVERS_FROM:]) != header.crc:
        raise Refusal(ErrorCode.corrupt_message, "the checksum of the batch does not match")
    codec = header.attributes & CODEC_MASK
    if codec == ZSTD and version < 7:
        raise Refusal(ErrorCode.unsupported_compression_type, "zstd needs Produce v7")
    if header.control:
        raise Refusal(ErrorCode.invalid_record, "clients may not write control batches")
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        raise Refusal(
            ErrorCode.invalid_record,
            f"{header.record_count} records with a last offset delta of {header.last_offset_delta}",
        )
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise Refusal(ErrorCode.invalid_record, "a producer id without a sequence number")
    _check_records(header, bytes(inflate(codec, memoryview(records)[HEADER_SIZE:])), settings, now)
    return header


def _whole_batch(data: bytes) -> int | None:
    """The size of the batch at the beginning of some bytes, None if it is not there whole."""
    if len(data) < _LENGTH_COUNTS_FROM:
        return None
    size = int.from_bytes(data[8:12], "big", signed=True)
    if size < _SHORTEST_LENGTH:
        raise Refusal(ErrorCode.corrupt_message, f"a batch of {size} bytes")
    return size + _LENGTH_COUNTS_FROM if size + _LENGTH_COUNTS_FROM <= len(data) else None


def _check_records(header: Header, payload: bytes, settings: LogSettings, now: int) -> None:
    """Every record is where the header says, in order, and dated within the topic's bounds.

    This is where most of the time of a write goes. Numbers of one byte, which are by far the most frequent, are
    therefore read in line, and headers, which are rare, elsewhere.
    """
    earliest = latest = base = header.base_timestamp
    keyless = False
    position, end = 0, len(payload)
    try:
        for index in range(header.record_count):
            byte = payload[position]
            if byte < 0x80:
                length, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                length, position = _varint(payload, position)
            record_end = position + length
            if length < 0 or record_end > end:
                raise _broken("a record that is longer than the batch")
            byte = payload[position + 1]  # before it are the attributes, unused so far
            if byte < 0x80:
                delta, position = (byte >> 1) ^ -(byte & 1), position + 2
            else:
                delta, position = _varint(payload, position + 1)
            timestamp = base + delta
            if timestamp > latest:
                latest = timestamp
            elif timestamp < earliest:
                earliest = timestamp
            byte = payload[position]
            if byte < 0x80:
                delta, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                delta, position = _varint(payload, position)
            if delta != index:
                raise _broken(f"record {index} has the offset delta {delta}")
            byte = payload[position]
            if byte < 0x80:
                length, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                length, position = _varint(payload, position)
            if length >= 0:
                position += length
            else:
                keyless = True
            key_length = length
            byte = payload[position]
            if byte < 0x80:
                length, position = (byte >> 1) ^ -(byte & 1), position + 1
            else:
                length, position = _varint(payload, position)
            if length > 0:
                position += length
            if key_length < -1 or length < -1 or position >= record_end:
                raise _broken("a key or value that is longer than its record, or shorter than nothing")
            if position + 1 != record_end or payload[position]:
                _check_headers(payload, position, record_end)
            position = record_end
    except IndexError:
        raise _broken("records that end in the middle") from None
    if position != end:
        raise _broken(f"{end - position} bytes after the last record")
    if keyless and settings.compact:
        raise Refusal(ErrorCode.invalid_record, "a compacted topic takes no record without a key")
    if not settings.log_append_time and latest != NO_TIMESTAMP:
        if latest - now > settings.timestamp_after_max_ms:
            raise Refusal(ErrorCode.invalid_timestamp, f"timestamp {latest} is too far in the future")
        if earliest != NO_TIMESTAMP and now - earliest > settings.timestamp_before_max_ms:
            raise Refusal(ErrorCode.invalid_timestamp, f"timestamp {earliest} is too far in the past")


def _check_headers(payload: bytes, position: int, end: int) -> None:
    """The headers fill the rest of their record exactly."""
    count, position = _varint(payload, position)
    if count < 0 or count > end - position:
        raise _broken(f"a record with {count} headers")
    for _ in range(count):
        for least in (0, -1):  # a header's key may not be null, its value may
            length, position = _varint(payload, position)
            position += max(length, 0)
            if length < least or position > end:
                raise _broken("a header that is longer than its record")
    if position != end:
        raise _broken("a record whose length is not that of its fields")


def _broken(what: str) -> Refusal:
    return Refusal(ErrorCode.invalid_record, f"the batch has {what}")


def _varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """A zigzag number and the position behind it."""
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
        if shift > 63:
            raise _broken("a number of more than ten bytes")


def _encode_varint(number: int) -> bytes:
    zigzag = (number << 1) ^ (number >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


# -- stored batches


def iter_records(data: bytes | memoryview, header: Header) -> tuple[bytes | memoryview, Iterator[Record]]:
    """The inflated payload of a stored batch, and its records in order."""
    payload = inflate(header.attributes & CODEC_MASK, memoryview(data)[HEADER_SIZE:])
    return payload, _records(payload, header)


def _records(payload: bytes | memoryview, header: Header) -> Iterator[Record]:
    position = 0
    stamped = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    for _ in range(header.record_count):
        start = position
        length, position = _varint(payload, position)
        end = position + length
        timestamp_delta, position = _varint(payload, position + 1)
        offset_delta, position = _varint(payload, position)
        key_length, position = _varint(payload, position)
        key = None if key_length < 0 else bytes(payload[position : position + key_length])
        value_length, _ = _varint(payload, position + max(key_length, 0))
        timestamp = header.base_timestamp + timestamp_delta if stamped is None else stamped
        yield Record(start, end, timestamp, header.base_offset + offset_delta, key, value_length >= 0)
        position = end


def patch(batch: bytearray, base_offset: int, leader_epoch: int, append_time: int | None) -> None:
    """Give a batch its place in the log, and the time of its arrival where the topic wants that."""
    struct.pack_into(">q", batch, 0, base_offset)
    struct.pack_into(">i", batch, 12, leader_epoch)
    if append_time is not None:
        (attributes,) = struct.unpack_from(">h", batch, _ATTRIBUTES_AT)
        struct.pack_into(">h", batch, _ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
        struct.pack_into(">q", batch, _MAX_TIMESTAMP_AT, append_time)
        _seal(batch)


def _seal(batch: bytearray) -> None:
    struct.pack_into(">I", batch, _CRC_AT, crc32c(memoryview(batch)[_CRC_COVERS_FROM:]))


def marker(producer_id: int, producer_epoch: int, *, commit: bool, timestamp: int) -> bytearray:
    """A transaction marker: a control batch of one record. Its place in the log is still to be patched in."""
    key = struct.pack(">hh", 0, int(commit))
    value = struct.pack(">hi", 0, 0)
    fields = b"\x00\x00\x00" + _encode_varint(len(key)) + key + _encode_varint(len(value)) + value + b"\x00"
    payload = _encode_varint(len(fields)) + fields
    batch = bytearray(
        _HEADER.pack(
            0,
            HEADER_SIZE - _LENGTH_COUNTS_FROM + len(payload),
            -1,
            2,
            0,
            TRANSACTIONAL | CONTROL,
            0,
            timestamp,
            timestamp,
            producer_id,
            producer_epoch,
            -1,
            1,
        )
    )
    batch += payload
    _seal(batch)
    return batch


def with_records(header: Header, payload: bytes | memoryview, kept: list[Record]) -> bytes:
    """The same batch with only some of its records, which keep their offsets: what compaction leaves of it.

    The batch still spans all of its offsets, so that readers see no gap between it and the next.
    """
    body = _deflate(header.attributes & CODEC_MASK, b"".join(bytes(payload[each.start : each.end]) for each in kept))
    newest = max(each.timestamp for each in kept)
    smaller = header._replace(
        length=HEADER_SIZE - _LENGTH_COUNTS_FROM + len(body), record_count=len(kept), max_timestamp=newest
    )
    batch = bytearray(_HEADER.pack(*smaller)) + body
    _seal(batch)
    return bytes(batch)


# -- codecs


def inflate(codec: int, payload: bytes | memoryview) -> bytes | memoryview:
    """What a batch's payload says; a `Refusal` where it does not inflate, or inflates beyond all reason."""
    try:
        match codec:
            case 0:
                return payload
            case 1:
                return _inflate_into(cramjam.gzip.decompress_into, payload)
            case 2:
                return _inflate_snappy(bytes(payload))
            case 3:
                return _inflate_into(cramjam.lz4.decompress_into, payload)
            case 4:
                return _inflate_into(cramjam.zstd.decompress_into, payload)
    except cramjam.DecompressionError as error:
        raise Refusal(ErrorCode.corrupt_message, f"the batch does not inflate: {error}") from None
    raise Refusal(ErrorCode.unsupported_compression_type, f"codec {codec} is not one of Kafka's")


FIRST_GUESS = 8
"""A batch that inflates to more than eight times its size is rare; then the next guess is eight times larger."""


def _inflate_into(decompress_into: object, payload: bytes | memoryview) -> memoryview:
    """Inflate into a buffer that grows to the bound and no further."""
    size = max(4096, FIRST_GUESS * len(payload))
    data = bytes(payload)
    while True:
        target = bytearray(min(size, MAX_INFLATED_BYTES))
        try:
            written: int = decompress_into(data, target)  # type: ignore[operator]
            return memoryview(target)[:written]
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise
            if size >= MAX_INFLATED_BYTES:
                raise _bomb() from None
            size *= FIRST_GUESS


def _bomb() -> Refusal:
    return Refusal(ErrorCode.message_too_large, f"the batch inflates to more than {MAX_INFLATED_BYTES} bytes")


def _inflate_snappy(payload: bytes) -> bytes:
    """Java writes snappy in blocks behind a header; librdkafka writes one bare block."""
    if not payload.startswith(_XERIAL_MAGIC):
        return _inflate_snappy_block(payload, MAX_INFLATED_BYTES)
    position, inflated = _XERIAL_HEADER_SIZE, bytearray()
    while position < len(payload):
        size = int.from_bytes(payload[position : position + 4], "big", signed=True)
        position += 4
        if size <= 0 or position + size > len(payload):
            raise Refusal(ErrorCode.corrupt_message, "a snappy block that runs past the end of the batch")
        inflated += _inflate_snappy_block(payload[position : position + size], MAX_INFLATED_BYTES - len(inflated))
        position += size
    return bytes(inflated)


def _inflate_snappy_block(block: bytes, most: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > most:
        raise _bomb()
    return bytes(cramjam.snappy.decompress_raw(block))


def _deflate(codec: int, payload: bytes) -> bytes:
    match codec:
        case 1:
            return bytes(cramjam.gzip.compress(payload))
        case 2:
            block = bytes(cramjam.snappy.compress_raw(payload))
            return _XERIAL_MAGIC + struct.pack(">iii", 1, 1, len(block)) + block
        case 3:
            # Kafka's clients read frames of independent blocks only.
            frame = cramjam.lz4.Compressor(block_linked=False)
            frame.compress(payload)
            return bytes(frame.finish())
        case 4:
            return bytes(cramjam.zstd.compress(payload))
    return payload
