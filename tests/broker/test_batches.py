"""What is let into a log: batches of honest clients, whatever is in their records."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode
from logs import NOW

from broker.log.batches import Header, check_produced, iter_records
from broker.log.settings import LogSettings
from broker.refusal import Refusal
from conformance.batches import Codec, Record, encode_batch

SIZES = (0, 1, 63, 64, 100, 8191, 8192, 100_000)
"""Around the sizes at which a length takes one more byte."""


def checked(batch: bytes, version: int = 9, **settings: int | bool) -> Header:
    return check_produced(batch, version, LogSettings(**settings), NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("size", SIZES)
def test_keys_and_values_of_every_size_are_let_in(size: int, codec: Codec) -> None:
    records = [Record(NOW, b"v" * size, None), Record(NOW, b"v" * size, b"k"), Record(NOW, b"v", b"k" * size)]
    batch = encode_batch(records, codec=codec)
    header = checked(batch)
    assert [len(record.key or b"") for record in iter_records(batch, header)[1]] == [0, 1, size]


def test_a_record_without_a_value_is_let_in() -> None:
    batch = encode_batch([Record(NOW, None, b"k")])  # type: ignore[arg-type]
    (record,) = iter_records(batch, checked(batch))[1]
    assert not record.has_value


@pytest.mark.parametrize("count", [1, 64, 65, 8192, 10_000])
def test_batches_of_every_length_are_let_in(count: int) -> None:
    batch = encode_batch([Record(NOW - number, b"") for number in range(count)])
    assert checked(batch).record_count == count


@pytest.mark.parametrize(
    ("timestamp", "settings", "code"),
    [
        (NOW + 3_600_001, {}, ErrorCode.invalid_timestamp),
        (NOW + 3_600_000, {}, None),
        (NOW + 10**9, {"timestamp_after_max_ms": 10**9}, None),
        (NOW + 10**9, {"log_append_time": True}, None),
        (NOW - 1001, {"timestamp_before_max_ms": 1000}, ErrorCode.invalid_timestamp),
        (NOW - 1000, {"timestamp_before_max_ms": 1000}, None),
        (-1, {"timestamp_before_max_ms": 1000}, None),
    ],
)
def test_a_record_that_is_dated_too_far_from_now_is_refused(
    timestamp: int, settings: dict[str, int | bool], code: ErrorCode | None
) -> None:
    batch = encode_batch([Record(timestamp)])
    if code is None:
        checked(batch, **settings)
        return
    with pytest.raises(Refusal) as refused:
        checked(batch, **settings)
    assert refused.value.code is code


def test_zstd_is_refused_to_clients_that_are_too_old_for_it() -> None:
    batch = encode_batch([Record(NOW)], codec=Codec.ZSTD)
    with pytest.raises(Refusal) as refused:
        checked(batch, version=6)
    assert refused.value.code is ErrorCode.unsupported_compression_type
