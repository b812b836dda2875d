"""Kafka messages to and from bytes, by kio's description of each of them.

kio knows every field of every version; reading and writing are done here, for three reasons. What arrives is
hostile: kio's reader reserves memory for as many entries as a request claims to have, and refuses tags that it does
not know, which Kafka ignores. An API says what it knows once: fields that a version does not have are left out of
an answer, fields that nobody gave take Kafka's defaults. And numbers next to each other are packed together, which
is several times faster than kio's writer. Durations and times are milliseconds.
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
from types import SimpleNamespace
from typing import Any

from kio.index import load_request_schema, load_response_schema

Fields = Mapping[str, Any]
"""An answer, or an entry of one: kio's field names and plain values."""

Writer = Callable[[bytearray, Any], None]

Reader = Callable[[bytes, int], tuple[Any, int]]
"""From bytes and a position to a value and the position behind it."""

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


class Undecodable(Exception):
    """The bytes are not the message that they are said to be."""


@dataclasses.dataclass(frozen=True, slots=True)
class Codec:
    """One API at one version."""

    flexible_request: bool
    flexible_answer: bool
    read: Reader
    write: Writer


@cache
def codec(key: int, version: int) -> Codec:
    """Loaded when first needed, so that a broker does not import hundreds of schemas to boot."""
    request = load_request_schema(key, version)
    answer = load_response_schema(key, version)
    return Codec(
        bool(request.__flexible__),
        int(answer.__header_schema__.__version__) > 0,
        request_reader(request),
        entity_writer(answer),
    )


_ONE_BYTE = [bytes((number,)) for number in range(0x80)]


def unsigned_varint(number: int) -> bytes:
    if number < 0x80:
        return _ONE_BYTE[number]
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


# -- writing


@cache
def entity_writer(entity: type) -> Writer:
    """Writes a mapping as this entity: its fields in order, runs of fixed-size ones in a single pack."""
    layout = _layout(entity)
    lines, names = ["def write(out, values):", "  get = values.get"], dict[str, object]()
    for number, (run, field) in enumerate(layout.parts):
        last = number + 1 == len(layout.parts)
        ends_here = layout.flexible and last and not field and not layout.tagged
        names |= {f"pack{number}": struct.Struct(_form(run) + ("x" if ends_here else "")).pack}
        names |= {f"default_{each.name}": _fixed_default(each) for each in run}
        if run:
            lines.append(
                f"  out += pack{number}({', '.join(f'get({each.name!r}, default_{each.name})' for each in run)})"
            )
        if field:
            names[f"write_{field.name}"] = _value_writer(field, layout.hints[field.name], layout.flexible)
            names[f"default_{field.name}"] = _variable_default(field, layout.hints[field.name])
            lines.append(f"  write_{field.name}(out, get({field.name!r}, default_{field.name}))")
    if layout.tagged:
        names["write_tags"] = _tags_writer(
            {each.metadata["tag"]: (each.name, _value_writer(each, layout.hints[each.name], True))
             for each in layout.tagged}
        )  # fmt: skip
        lines.append("  write_tags(out, values)")
    elif layout.flexible and not (layout.parts and not layout.parts[-1][1]):
        lines.append("  out.append(0)")  # the count of tags, which otherwise is the last byte of the last pack
    return typing.cast("Writer", _compiled("write", lines, names))


def _tags_writer(tags: Mapping[int, tuple[str, Writer]]) -> Writer:
    in_order = [(number, *tags[number]) for number in sorted(tags)]

    def write(out: bytearray, values: Fields) -> None:
        given = [tag for tag in in_order if tag[1] in values]
        out += unsigned_varint(len(given))
        for number, name, write_value in given:
            value = bytearray()
            write_value(value, values[name])
            out += unsigned_varint(number)
            out += unsigned_varint(len(value))
            out += value

    return write


def _fixed_default(field: dataclasses.Field[Any]) -> int | float | bool:
    default = field.default
    if default is None:
        return -1  # a time that is not known
    if isinstance(default, timedelta):
        return round(default.total_seconds() * 1000)
    return 0 if default is dataclasses.MISSING else typing.cast("int", default)


def _variable_default(field: dataclasses.Field[Any], hint: Any) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if _is_array(hint):
        return ()
    if types.NoneType in typing.get_args(hint):
        return None
    return {"string": "", "bytes": b"", "records": b"", "uuid": None}.get(field.metadata.get("kafka_type", ""), {})


# -- what both need to know of a field


@dataclasses.dataclass(frozen=True)
class _Layout:
    """The fields of an entity: runs of numbers, each followed by a field of any size, and the tagged ones."""

    flexible: bool
    hints: Mapping[str, Any]
    parts: list[tuple[list[dataclasses.Field[Any]], dataclasses.Field[Any] | None]]
    tagged: list[dataclasses.Field[Any]]


def _layout(entity: type) -> _Layout:
    layout = _Layout(bool(entity.__flexible__), typing.get_type_hints(entity), [], [])  # type: ignore[attr-defined]
    run: list[dataclasses.Field[Any]] = []
    for field in dataclasses.fields(entity):
        if "tag" in field.metadata:
            layout.tagged.append(field)
        elif _is_number(field, layout.hints[field.name]):
            run.append(field)
        else:
            layout.parts.append((run, field))
            run = []
    if run:
        layout.parts.append((run, None))
    return layout


def _form(run: list[dataclasses.Field[Any]]) -> str:
    return ">" + "".join(FIXED[field.metadata["kafka_type"]] for field in run)


def _is_number(field: dataclasses.Field[Any], hint: Any) -> bool:
    return field.metadata.get("kafka_type") in FIXED and not _is_array(hint)


def _compiled(name: str, lines: list[str], names: dict[str, object]) -> object:
    """A function from its source, as `dataclasses` makes them: field by field, with nothing to look up."""
    exec("\n".join(lines), names)
    return names[name]


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


# -- reading


def request_reader(entity: type) -> Reader:
    """Reads a request as an object with kio's field names; `Undecodable` for anything that is not one."""
    read = entity_reader(entity)

    def read_request(data: bytes, position: int) -> tuple[Any, int]:
        try:
            return read(data, position)
        except (struct.error, IndexError) as error:
            raise Undecodable(str(error)) from None

    return read_request


@cache
def entity_reader(entity: type) -> Reader:
    """The mirror image of `entity_writer`. Tags that the version does not have are skipped, as Kafka does."""
    layout = _layout(entity)
    lines, names = ["def read(data, position):", "  entity = new()"], dict[str, object](new=SimpleNamespace)
    for number, (run, field) in enumerate(layout.parts):
        if run:
            form = struct.Struct(_form(run))
            names[f"unpack{number}"] = form.unpack_from
            lines.append(f"  {', '.join(f'entity.{each.name}' for each in run)}, = unpack{number}(data, position)")
            lines.append(f"  position += {form.size}")
        if field:
            names[f"read_{field.name}"] = _value_reader(field, layout.hints[field.name], layout.flexible)
            lines.append(f"  entity.{field.name}, position = read_{field.name}(data, position)")
    for each in layout.tagged:
        number_or_not = _is_number(each, layout.hints[each.name])
        default = _fixed_default(each) if number_or_not else _variable_default(each, layout.hints[each.name])
        names[f"default_{each.name}"] = default
        lines.append(f"  entity.{each.name} = default_{each.name}")
    if layout.flexible:
        names["read_tags"] = _tags_reader(
            {each.metadata["tag"]: (each.name, _value_reader(each, layout.hints[each.name], True))
             for each in layout.tagged}
        )  # fmt: skip
        lines.append("  position = read_tags(entity, data, position) if data[position] else position + 1")
    lines.append("  return entity, position")
    return typing.cast("Reader", _compiled("read", lines, names))


def _tags_reader(tags: Mapping[int, tuple[str, Reader]]) -> Callable[[SimpleNamespace, bytes, int], int]:
    def read_tags(entity: SimpleNamespace, data: bytes, position: int) -> int:
        count, position = read_unsigned_varint(data, position)
        for _ in range(count):
            tag, position = read_unsigned_varint(data, position)
            size, position = read_unsigned_varint(data, position)
            end = _within(data, position + size)
            if tag in tags:
                name, read = tags[tag]
                value, position = read(data, position)
                setattr(entity, name, value)
                if position != end:
                    raise Undecodable(f"tag {tag} is not as long as it says")
            position = end
        return position

    return read_tags


def _value_reader(field: dataclasses.Field[Any], hint: Any, flexible: bool) -> Reader:
    nested = _entity_in(hint)
    nullable = types.NoneType in typing.get_args(hint)
    array = _is_array(hint)
    if nested:
        item = entity_reader(nested)
    else:
        item = _primitive_reader(field.metadata["kafka_type"], flexible, nullable and not array)
    if array:
        return _array_reader(item, flexible, nullable)
    return _nullable_entity_reader(item) if nested and nullable else item


def _array_reader(item: Reader, flexible: bool, nullable: bool) -> Reader:
    read_length = _read_compact_length if flexible else _read_legacy_length

    def read(data: bytes, position: int) -> tuple[Any, int]:
        count, position = read_length(data, position)
        if count < 0:
            if not nullable:
                raise Undecodable("a field is null that may not be")
            return None, position
        _within(data, position + count)  # an entry has one byte at least
        values = []
        for _ in range(count):
            value, position = item(data, position)
            values.append(value)
        return values, position

    return read


def _nullable_entity_reader(item: Reader) -> Reader:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        return (None, position + 1) if data[position] >= 0x80 else item(data, position + 1)

    return read


def _primitive_reader(kafka_type: str, flexible: bool, nullable: bool) -> Reader:
    if kafka_type in FIXED:
        form = struct.Struct(">" + FIXED[kafka_type])

        def read_number(data: bytes, position: int) -> tuple[Any, int]:
            return form.unpack_from(data, position)[0], position + form.size

        return read_number
    if kafka_type == "uuid":
        return _read_uuid
    if flexible:
        read_length = _read_compact_length
    else:
        read_length = _read_legacy_string_length if kafka_type == "string" else _read_legacy_length
    text = kafka_type == "string"

    def read_bytes(data: bytes, position: int) -> tuple[Any, int]:
        size, position = read_length(data, position)
        if size < 0:
            if not nullable:
                raise Undecodable("a field is null that may not be")
            return None, position
        end = _within(data, position + size)
        return (data[position:end].decode("utf-8", "replace") if text else data[position:end]), end

    return read_bytes


def _read_uuid(data: bytes, position: int) -> tuple[uuid.UUID | None, int]:
    value = data[position : _within(data, position + 16)]
    return (uuid.UUID(bytes=value) if any(value) else None), position + 16


def _read_compact_length(data: bytes, position: int) -> tuple[int, int]:
    size, position = read_unsigned_varint(data, position)
    return size - 1, position


def _read_legacy_length(data: bytes, position: int) -> tuple[int, int]:
    return struct.unpack_from(">i", data, position)[0], position + 4


def _read_legacy_string_length(data: bytes, position: int) -> tuple[int, int]:
    return struct.unpack_from(">h", data, position)[0], position + 2


def read_unsigned_varint(data: bytes, position: int) -> tuple[int, int]:
    """A number of seven bits a byte, five bytes at most."""
    byte = data[position]
    if byte < 0x80:
        return byte, position + 1
    number = byte & 0x7F
    for shift in (7, 14, 21, 28):
        position += 1
        byte = data[position]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position + 1
    raise Undecodable("a number of more than five bytes")


def _within(data: bytes, end: int) -> int:
    if end > len(data):
        raise Undecodable(f"something ends at {end}, the message at {len(data)}")
    return end
