"""Requests that are well formed and mean nothing: any API, any version, any values. Written by kio's own writer."""

from __future__ import annotations

import dataclasses
import io
import types
import typing
import uuid
from datetime import timedelta
from random import Random
from typing import Any

from kio.index import load_request_schema
from kio.serial import entity_writer

NAMES = ("", "a", "t", "é" * 50, "no/such", "x" * 300)
"""Names of topics, groups, members and settings: few, so that requests meet each other's."""


def random_request(key: int, version: int, random: Random) -> Any:
    return random_entity(load_request_schema(key, version), random)


def random_entity(entity: type, random: Random) -> Any:
    hints = typing.get_type_hints(entity)
    values = {}
    for field in dataclasses.fields(entity):
        hint = hints[field.name]
        options = [hint, *typing.get_args(hint)]
        array = next((option for option in options if typing.get_origin(option) is tuple), None)
        inner = [*options, *(typing.get_args(array) if array else ())]
        nested = next((option for option in inner if dataclasses.is_dataclass(option)), None)
        kind = field.metadata.get("kafka_type", "")
        if types.NoneType in options and random.random() < 0.2:
            values[field.name] = None
        elif array:
            values[field.name] = tuple(_value(nested, kind, random) for _ in range(random.choice((0, 1, 1, 2, 5))))
        else:
            values[field.name] = _value(nested, kind, random)
    return entity(**values)


def _value(nested: Any, kind: str, random: Random) -> Any:
    if nested:
        return random_entity(nested, random)
    match kind:
        case "int8":
            return random.choice((-128, -1, 0, 1, 2, 4, 127))
        case "int16":
            return random.choice((-(2**15), -1, 0, 1, 2, 2**15 - 1))
        case "int32":
            return random.choice((-(2**31), -2, -1, 0, 1, 3, 2**31 - 1))
        case "int64":
            return random.choice((-(2**63), -6, -3, -2, -1, 0, 1, 10**12, 2**63 - 1))
        case "uint16":
            return random.choice((0, 65535))
        case "bool":
            return random.random() < 0.5
        case "string":
            return random.choice(NAMES)
        case "bytes" | "records":
            return random.randbytes(random.choice((0, 1, 60, 200)))
        case "uuid":
            return uuid.UUID(int=random.getrandbits(128))
        case "timedelta_i32":
            return timedelta(milliseconds=random.choice((-(2**31), -1, 0, 1, 50, 6000, 2**31 - 1)))
        case "timedelta_i64":
            return timedelta(milliseconds=random.choice((-1, 0, 1, 86_400_000)))
    raise NotImplementedError(kind)


def encoded(request: Any) -> bytes:
    buffer = io.BytesIO()
    request_type: type = type(request)
    entity_writer(request_type)(buffer, request)
    return buffer.getvalue()
