"""The broker's reading and writing of messages, beside kio's own."""

from __future__ import annotations

import dataclasses
import struct
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from kio.index import load_response_schema
from kio.serial import entity_reader
from random_requests import encoded, random_request

from broker.apis import table
from broker.codec import Undecodable, codec

ALL = [(api.key, version) for api in table().values() for version in api.versions]


def same(theirs: Any, ours: Any) -> bool:
    """Whether a kio entity and an object of the broker's say the same."""
    if dataclasses.is_dataclass(theirs):
        return all(same(getattr(theirs, each.name), getattr(ours, each.name)) for each in dataclasses.fields(theirs))
    if isinstance(theirs, tuple):
        return len(theirs) == len(ours) and all(map(same, theirs, ours))
    if isinstance(theirs, timedelta):
        return round(theirs.total_seconds() * 1000) == ours
    return bool(theirs == ours)


@pytest.mark.parametrize(("key", "version"), ALL)
def test_every_version_of_every_request_is_read_as_kio_writes_it(key: int, version: int) -> None:
    random = Random(key * 100 + version)
    for _ in range(20):
        request = random_request(key, version, random)
        data = encoded(request)
        seen, end = codec(key, version).read(b"before" + data, 6)
        assert end == 6 + len(data)
        assert same(request, seen)


@pytest.mark.parametrize(("key", "version"), ALL)
def test_every_version_of_every_answer_is_read_back_by_kio(key: int, version: int) -> None:
    out = bytearray()
    codec(key, version).write(out, {})
    read = entity_reader(load_response_schema(key, version))
    assert read(bytes(out), 0)[1] == len(out)


def test_tags_that_a_version_does_not_have_are_skipped() -> None:
    tag = b"\x01\x63\x01\x2a"  # one tag: number 99, one byte long
    body = struct.pack(">ibBB1sBiiq", -1, 0, 2, 2, b"t", 2, 0, -1, -1) + 3 * tag
    request, end = codec(2, 6).read(body, 0)
    assert end == len(body)
    assert request.topics[0].partitions[0].timestamp == -1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00" * 4,
        struct.pack(">ib", -1, 0) + b"\xff\xff\xff\xff\x0f",  # four billion topics
        struct.pack(">ib", -1, 0) + b"\x00",  # null, where null may not be
        struct.pack(">ibBB", -1, 0, 2, 100) + b"t",  # a name that is longer than the message
    ],
)
def test_what_is_not_a_request_is_undecodable(body: bytes) -> None:
    with pytest.raises(Undecodable):
        codec(2, 6).read(body, 0)
