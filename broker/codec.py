"""Kafka messages to and from bytes, by kio's description of each of them.

Requests are read by kio itself, which is native and quick. Answers are written from plain mappings instead of
kio's frozen entities: an API says what it knows once, fields that a version does not have are left out, fields
that it has and nobody gave take Kafka's defaults, and numbers next to each other are packed together, which is
several times faster than kio's own writer. Durations and times are milliseconds.
"""

from __future__ import annotations

import dataclasses
import struct
import types
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader

Fields = Mapping[str, Any]
"""An answer, or an entry of one: kio's field names and plain values."""

Writer = Callable[[bytearray, Any], None]

FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
}
"""The struct code of each kafka_type that always takes the same number of bytes."""


def name_of(key: int) -> str | None:
    """Kafka's name for an API key, in kio's spelling."""
    return api_key_map.get(key)


def versions_of(key: int) -> range:
    """The versions of an API that kio can read."""
    known = schema_name_map[api_key_map[key]]
    return range(min(known), max(known) + 1)


@dataclasses.dataclass(frozen=True, slots=True)
class Codec:
    """One API at one version."""

    flexible_request: bool
    flexible_answer: bool
    read: Callable[[bytes, int], tuple[Any, int]]
    write: Writer


@cache
def codec(key: int, version: int) -> Codec:
    """Loaded when first needed, so that a broker does not import hundreds of schemas to boot."""
    request = load_request_schema(key, version)
    answer = load_response_schema(key, version)
    return Codec(
        bool(request.__flexible__),
        int(answer.__header_schema__.__version__) > 0,
        typing.cast("Callable[[bytes, int], tuple[Any, int]]", entity_reader(request)),
        entity_writer(answer),
    )


def unsigned_varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


@cache
def entity_writer(entity: type) -> Writer:
    """Writes a mapping as this entity: its fields in order, runs of fixed-size ones in a single pack."""
    flexible = bool(entity.__flexible__)  # type: ignore[attr-defined]
    hints = typing.get_type_hints(entity)
    steps: list[Callable[[bytearray, Fields], None]] = []
    run: list[dataclasses.Field[Any]] = []
    tags: list[tuple[int, str, Writer]] = []

    def end_run() -> None:
        if run:
            steps.append(_fixed_step(tuple(run)))
            run.clear()

    for field in dataclasses.fields(entity):
        if "tag" in field.metadata:
            tags.append((field.metadata["tag"], field.name, _value_writer(field, hints[field.name], True)))
        elif field.metadata.get("kafka_type") in FIXED and not _is_array(hints[field.name]):
            run.append(field)
        else:
            end_run()
            steps.append(_variable_step(field, hints[field.name], flexible))
    end_run()
    if flexible:
        steps.append(_tags_step(tuple(sorted(tags, key=lambda tag: tag[0]))))

    def write(out: bytearray, values: Fields) -> None:
        for step in steps:
            step(out, values)

    return write


def _fixed_step(fields: tuple[dataclasses.Field[Any], ...]) -> Callable[[bytearray, Fields], None]:
    pack = struct.Struct(">" + "".join(FIXED[field.metadata["kafka_type"]] for field in fields)).pack
    wanted = tuple((field.name, _fixed_default(field)) for field in fields)

    def step(out: bytearray, values: Fields) -> None:
        get = values.get
        out += pack(*[get(name, default) for name, default in wanted])

    return step


def _fixed_default(field: dataclasses.Field[Any]) -> int | float | bool:
    default = field.default
    if default is None:
        return -1  # a time that is not known
    if isinstance(default, timedelta):
        return round(default.total_seconds() * 1000)
    return 0 if default is dataclasses.MISSING else typing.cast("int", default)


def _variable_step(field: dataclasses.Field[Any], hint: Any, flexible: bool) -> Callable[[bytearray, Fields], None]:
    name, write = field.name, _value_writer(field, hint, flexible)
    default = _variable_default(field, hint)

    def step(out: bytearray, values: Fields) -> None:
        write(out, values.get(name, default))

    return step


def _variable_default(field: dataclasses.Field[Any], hint: Any) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if _is_array(hint):
        return ()
    if types.NoneType in typing.get_args(hint):
        return None
    return {"string": "", "bytes": b"", "records": b"", "uuid": None}.get(field.metadata.get("kafka_type", ""), {})


def _tags_step(tags: tuple[tuple[int, str, Writer], ...]) -> Callable[[bytearray, Fields], None]:
    def step(out: bytearray, values: Fields) -> None:
        given = [tag for tag in tags if tag[1] in values]
        out += unsigned_varint(len(given))
        for number, name, write in given:
            value = bytearray()
            write(value, values[name])
            out += unsigned_varint(number)
            out += unsigned_varint(len(value))
            out += value

    return step


def _is_array(hint: Any) -> bool:
    return typing.get_origin(hint) is tuple or any(
        typing.get_origin(option) is tuple for option in typing.get_args(hint)
    )


def _entity_in(hint: Any) -> type | None:
    """The entity that a field holds, alone, in an array, or in either that may be null."""
    if dataclasses.is_dataclass(hint):
        return typing.cast("type", hint)
    return next((found for option in typing.get_args(hint) if (found := _entity_in(option))), None)


def _value_writer(field: dataclasses.Field[Any], hint: Any, flexible: bool) -> Writer:
    nested = _entity_in(hint)
    item = entity_writer(nested) if nested else _primitive_writer(field.metadata["kafka_type"], flexible)
    if _is_array(hint):
        return _array_writer(item, flexible)
    if nested and types.NoneType in typing.get_args(hint):
        return _nullable_entity_writer(item)
    return item


def _array_writer(item: Writer, flexible: bool) -> Writer:
    length = _compact_length if flexible else _legacy_length

    def write(out: bytearray, values: Sequence[Any] | None) -> None:
        if values is None:
            out += length(None)
            return
        out += length(len(values))
        for value in values:
            item(out, value)

    return write


def _nullable_entity_writer(item: Writer) -> Writer:
    """KIP-893: one byte says whether the structure is there."""

    def write(out: bytearray, value: Fields | None) -> None:
        if value is None:
            out += b"\xff"
        else:
            out += b"\x01"
            item(out, value)

    return write


def _compact_length(size: int | None) -> bytes:
    return b"\x00" if size is None else unsigned_varint(size + 1)


def _legacy_length(size: int | None) -> bytes:
    return struct.pack(">i", -1 if size is None else size)


def _legacy_string_length(size: int | None) -> bytes:
    return struct.pack(">h", -1 if size is None else size)


def _primitive_writer(kafka_type: str, flexible: bool) -> Writer:
    if kafka_type in FIXED:
        pack = struct.Struct(">" + FIXED[kafka_type]).pack

        def write_number(out: bytearray, value: float) -> None:
            out += pack(value)

        return write_number
    if kafka_type == "uuid":
        return _write_uuid
    length = _compact_length if flexible else (_legacy_string_length if kafka_type == "string" else _legacy_length)

    def write_bytes(out: bytearray, value: str | bytes | None) -> None:
        if value is None:
            out += length(None)
            return
        encoded = value.encode() if isinstance(value, str) else value
        out += length(len(encoded))
        out += encoded

    return write_bytes


def _write_uuid(out: bytearray, value: uuid.UUID | None) -> None:
    out += value.bytes if value else bytes(16)
