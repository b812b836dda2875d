"""Requests and answers as a proxy meets them: bytes first, decoded only when somebody looks, encoded only when bent."""

from __future__ import annotations

import dataclasses
import io
import struct
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from kio.schema.index import api_key_map
from kio.serial import entity_writer

from conformance.wire import codec_versions, entity_reader, request_type, response_type, tagged_fields_size

HEADER = struct.Struct(">hhi")  # api key, version, correlation id


class Undecodable(Exception):
    """Bytes that are not the message they should be, or of a version that the codec does not have."""


@dataclass(frozen=True)
class Asked:
    """One request on its way to the broker. `connection` counts the proxy's connections from 0."""

    frame: bytes
    connection: int = 0

    @property
    def correlation(self) -> int:
        return int(HEADER.unpack_from(self.frame)[2])

    @property
    def version(self) -> int:
        return int(HEADER.unpack_from(self.frame)[1])

    @cached_property
    def api(self) -> str:
        """The API's name; its bare number where the codec has none."""
        key = HEADER.unpack_from(self.frame)[0]
        return api_key_map.get(key, str(key))

    @property
    def readable(self) -> bool:
        """Whether the codec has this API at this version."""
        return not self.api.lstrip("-").isdecimal() and self.version in codec_versions(self.api)

    @cached_property
    def request(self) -> Any:
        """The request itself, as the codec's frozen value."""
        entity = request_type(self.api, self.version)
        return _decode(entity, self.frame, self._body_at)

    @cached_property
    def _body_at(self) -> int:
        position = HEADER.size + 2 + max(0, int(struct.unpack_from(">h", self.frame, HEADER.size)[0]))
        flexible: bool = request_type(self.api, self.version).__header_schema__.__version__ > 1
        return position + (tagged_fields_size(self.frame, position) if flexible else 0)

    def bent(self, request: Any) -> Asked:
        """The same header with another request of the same version."""
        return Asked(self.frame[: self._body_at] + _encode(request), self.connection)

    def decode(self, answer: bytes) -> Any:
        """The answer to this request, from a frame with its header."""
        return _decode(response_type(self.api, self.version), answer, self._answer_body_at(answer))

    def encode(self, answer: Any, frame: bytes) -> bytes:
        """An answer in the place of the one in `frame`, whose header is kept."""
        return frame[: self._answer_body_at(frame)] + _encode(answer)

    def _answer_body_at(self, frame: bytes) -> int:
        flexible = response_type(self.api, self.version).__header_schema__.__version__ > 0
        return 4 + (tagged_fields_size(frame, 4) if flexible else 0)

    @property
    def flexible(self) -> bool:
        """Whether the answer ends in tagged fields."""
        return bool(response_type(self.api, self.version).__flexible__)


@dataclass(frozen=True)
class Answered:
    """One answer on its way to the client, beside its question."""

    asked: Asked
    frame: bytes

    @cached_property
    def answer(self) -> Any:
        """The answer itself, as the codec's frozen value."""
        return self.asked.decode(self.frame)


def _decode(entity: type, data: bytes, position: int) -> Any:
    try:
        value, _size = entity_reader(entity)(data, position)
    except Exception as error:  # the codec raises many kinds on hostile bytes; each means the same here
        raise Undecodable(f"{entity.__name__}: {error!r}") from error
    return value


def _encode(entity: Any) -> bytes:
    buffer = io.BytesIO()
    kind: type = type(entity)
    entity_writer(kind)(buffer, _writable(kind)(entity))
    return buffer.getvalue()


class _Code(int):
    """An error code as the codec wants it. The codec's own type refuses codes of a later Kafka."""

    @property
    def value(self) -> int:
        return int(self)


@cache
def _writable(entity: type) -> Callable[[Any], Any]:
    """Turns what was read into what can be written: error codes are read as plain numbers."""
    hints = typing.get_type_hints(entity)
    changes: dict[str, Callable[[Any], Any]] = {}
    for each in dataclasses.fields(entity):
        nested = [kind for kind in _parts(hints[each.name]) if dataclasses.is_dataclass(kind)]
        if each.metadata.get("kafka_type") == "error_code":
            changes[each.name] = _Code
        elif nested:
            changes[each.name] = _nested_change(typing.cast("type", nested[0]))

    def change(value: Any) -> Any:
        if not changes:
            return value
        return dataclasses.replace(value, **{name: to(getattr(value, name)) for name, to in changes.items()})

    return change


def _nested_change(entity: type) -> Callable[[Any], Any]:
    def change(value: Any) -> Any:
        each = _writable(entity)
        if value is None:
            return None
        return tuple(each(entry) for entry in value) if isinstance(value, tuple) else each(value)

    return change


def _parts(hint: Any) -> list[Any]:
    return [hint, *(part for argument in typing.get_args(hint) for part in _parts(argument))]
