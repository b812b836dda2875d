"""One connection to one broker: a request goes out, its answer or the way it failed comes back.

Any API at any version that the codec (kio) knows; raw bytes for the versions it does not. Every read has a
deadline and every frame a bound, because what a broker sends is hostile input. Every exchange is kept, as
objects; turning them into text is left to those who want to show them. No retries and no routing here.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import socket
import ssl
import struct
import time
import typing
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_writer
from kio.serial._parse import get_reader
from kio.static.constants import EntityType

from conformance.answers import Silence
from conformance.security import PLAINTEXT, NotLetIn, Scram, Security, plain_message

CLIENT_ID = "offset-conformance"

ANSWER_SECONDS = 10.0
"""A broker answers offset questions in milliseconds; ten seconds is a busy machine, more is no answer."""

CONNECT_SECONDS = 5.0

MAX_FRAME_BYTES = 8 * 1024 * 1024
"""The largest answer a scenario can cause is a Fetch of 1 MiB; a length beyond this is not read at all."""

READ_BYTES = 64 * 1024
"""Enough for a usual answer with its length in one read."""

API_KEYS: Mapping[str, int] = {name: key for key, name in api_key_map.items()}

Reader = Callable[[bytes, int], tuple[Any, int]]
"""Reads one value at a position: the value, and how many bytes it took."""


class WireError(Exception):
    """No usable answer. `silence` says in which way; the text names the node, the API and the version."""

    silence: Silence


class BrokerUnreachable(WireError):
    silence = Silence.UNREACHABLE


class BadAddress(BrokerUnreachable):
    """Not even an address."""


class ConnectionClosed(WireError):
    silence = Silence.CLOSED


class NotAllowedIn(WireError):
    """A Kafka, maybe, but not for this client: its certificate, or ours, or the login. Trying again will not help."""

    silence = Silence.CLOSED


class NoAnswerInTime(WireError):
    silence = Silence.TIMEOUT


class MalformedAnswer(WireError):
    silence = Silence.MALFORMED


@dataclasses.dataclass(frozen=True)
class Exchange:
    """One request and what came of it."""

    api: str
    version: int
    node: str
    request: object
    response: object
    milliseconds: float


def split_address(address: str) -> tuple[str, int]:
    """Host and port of HOST:PORT; the host may be an IPv6 address, in brackets or not."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal() and int(port) < 2**16):
        raise BadAddress(f"{address!r} is not HOST:PORT, as in 127.0.0.1:9092")
    return host.strip("[]"), int(port)


@cache
def codec_versions(api: str) -> range:
    """The versions of `api` that the codec can write and read."""
    versions = schema_name_map[api]
    known = [version for version, kinds in versions.items() if EntityType.request in kinds]
    return range(min(known), max(known) + 1)


class Connection:
    """A socket that carries one request at a time. Close it when done; it is a context manager."""

    def __init__(
        self, host: str, port: int, *, answer_seconds: float = ANSWER_SECONDS, security: Security = PLAINTEXT
    ) -> None:
        self.node = f"{host}:{port}"
        self.exchanges: list[Exchange] = []
        self._answer_seconds = answer_seconds
        self._correlation = itertools.count(1)
        self._arrived = bytearray()
        if not 0 < port < 2**16 or "\0" in host:  # the resolver would quietly take something else for it
            raise BrokerUnreachable(f"{self.node}: no such address")
        try:
            self._socket = socket.create_connection((host, port), timeout=CONNECT_SECONDS)
        except TimeoutError as error:
            raise NoAnswerInTime(f"{self.node}: no connection within {CONNECT_SECONDS:g} s") from error
        except OSError as error:
            raise BrokerUnreachable(f"{self.node}: {error.strerror or error}") from error
        except UnicodeError as error:
            raise BrokerUnreachable(f"{self.node}: no host name ({error})") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if security.tls:
                self._begin_tls(host, security)
            if security.mechanism:
                self._log_in(security)
        except WireError:
            self.close()
            raise

    def _begin_tls(self, host: str, security: Security) -> None:
        try:
            self._socket = security.tls_context().wrap_socket(self._socket, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            raise NotAllowedIn(
                f"{self.node}: its certificate is not trusted ({error.verify_message}); check ssl.ca.location"
            ) from error
        except TimeoutError as error:
            raise NoAnswerInTime(f"{self.node}: no TLS within {CONNECT_SECONDS:g} s") from error
        except (ssl.SSLEOFError, ConnectionError) as error:
            # A broker that is not up yet, behind somebody who accepts connections for it, ends like this too.
            raise ConnectionClosed(f"{self.node}: closed when TLS began; check security.protocol") from error
        except (ssl.SSLError, OSError) as error:
            why = getattr(error, "reason", None) or error.strerror or error
            raise NotAllowedIn(f"{self.node}: no TLS is spoken there ({why}); check security.protocol") from error

    def _log_in(self, security: Security) -> None:
        """SASL, as KIP-43 and KIP-152 have it. What is said here is kept nowhere: it carries secrets."""
        try:
            self._converse(security)
        except NotLetIn as error:
            raise self._refusal(security, str(error)) from error
        except ConnectionClosed as error:
            raise self._refusal(security, "the broker closed the connection") from error
        finally:
            self.exchanges.clear()

    def _converse(self, security: Security) -> None:
        offered = self.ask("sasl_handshake", 1, mechanism=security.mechanism)
        if int(offered.error_code):
            raise NotLetIn(f"the broker offers {', '.join(map(str, offered.mechanisms)) or 'no mechanism'}")
        if security.mechanism == "PLAIN":
            self._authenticate(plain_message(security))
            return
        scram = Scram(security)
        challenge = self._authenticate(scram.first())
        scram.verify(self._authenticate(scram.final(challenge)))

    def _authenticate(self, message: bytes) -> bytes:
        answer = self.ask("sasl_authenticate", 0, auth_bytes=message)
        if int(answer.error_code):
            raise NotLetIn(answer.error_message or error_name(int(answer.error_code)))
        return bytes(answer.auth_bytes)

    def _refusal(self, security: Security, why: str) -> NotAllowedIn:
        said = security.hide(" ".join(why.split()))
        return NotAllowedIn(
            f"{self.node}: user {security.user!r} is not let in with {security.mechanism} ({said}); "
            "check sasl.username, sasl.password and sasl.mechanism"
        )

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, api: str, version: int, **fields: object) -> Any:
        """The decoded answer to one request; `fields` that this version does not have are left out."""
        return self.exchange(api, compose(api, version, fields))

    def exchange(self, api: str, request: Any) -> Any:
        """The decoded answer to a request that is composed already."""
        version = int(request.__version__)
        buffer = io.BytesIO()
        kind: type = type(request)
        _writer(kind)(buffer, request)
        answer_kind = response_type(api, version)
        flexible_header = answer_kind.__header_schema__.__version__ > 0
        body = self._exchange(api, version, request, buffer.getvalue(), request.__flexible__, flexible_header)
        answered = self.exchanges[-1]
        try:
            response, _size = entity_reader(answer_kind)(body, 0)  # clients ignore what follows
        except Exception as error:  # the codec raises many kinds on hostile bytes; each means the same here
            self.close()
            detail = f"undecodable answer: {error!r}"
            self.exchanges[-1] = dataclasses.replace(answered, response=f"{detail} in {answered.response}")
            raise MalformedAnswer(f"{self.node}, {api} v{version}: {detail}") from error
        self.exchanges[-1] = dataclasses.replace(answered, response=response)
        return response

    def ask_raw(self, api: str, version: int, body: bytes, *, flexible: bool = False) -> bytes:
        """The undecoded answer to a body written by hand, for versions that the codec does not have."""
        return self._exchange(api, version, body.hex(), body, flexible, flexible)

    def _exchange(
        self, api: str, version: int, request: object, body: bytes, flexible: bool, flexible_answer: bool
    ) -> bytes:
        correlation = next(self._correlation)
        client = CLIENT_ID.encode()
        header = struct.pack(f">hhih{len(client)}s", API_KEYS[api], version, correlation, len(client), client)
        payload = header + (b"\x00" if flexible else b"") + body
        started = time.monotonic()
        deadline = started + self._answer_seconds
        try:
            self._socket.settimeout(self._answer_seconds)
            self._socket.sendall(struct.pack(">i", len(payload)) + payload)
            (length,) = struct.unpack(">i", self._read(4, deadline))
            if not 4 <= length <= MAX_FRAME_BYTES:
                raise MalformedAnswer(f"a frame of {length} bytes")
            frame = self._read(length, deadline)
            (answered,) = struct.unpack_from(">i", frame)
            if answered != correlation:
                raise MalformedAnswer(f"correlation id {answered} instead of {correlation}")
            skip = 4 + (tagged_fields_size(frame, 4) if flexible_answer else 0)
        except WireError as error:
            raise self._failed(api, version, request, type(error), str(error), started) from error
        except TimeoutError as error:
            detail = f"nothing within {self._answer_seconds:g} s"
            raise self._failed(api, version, request, NoAnswerInTime, detail, started) from error
        except OSError as error:
            detail = f"connection lost: {error.strerror or error}"
            raise self._failed(api, version, request, ConnectionClosed, detail, started) from error
        milliseconds = (time.monotonic() - started) * 1000
        self.exchanges.append(Exchange(api, version, self.node, request, frame[skip:].hex(), milliseconds))
        return frame[skip:]

    def _read(self, count: int, deadline: float) -> bytes:
        while len(self._arrived) < count:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            chunk = self._socket.recv(READ_BYTES)
            if not chunk:
                raise ConnectionClosed("the broker closed the connection without an answer")
            self._arrived += chunk
            if time.monotonic() > deadline:
                raise NoAnswerInTime(f"only {len(self._arrived)} of {count} bytes in time")
        taken = bytes(self._arrived[:count])
        del self._arrived[:count]
        return taken

    def _failed(
        self,
        api: str,
        version: int,
        request: object,
        kind: type[WireError],
        detail: str,
        started: float,
    ) -> WireError:
        """The error to raise, with the exchange kept as evidence and the connection given up."""
        self.close()
        milliseconds = (time.monotonic() - started) * 1000
        self.exchanges.append(Exchange(api, version, self.node, request, detail, milliseconds))
        return kind(f"{self.node}, {api} v{version}: {detail}")


@cache
def request_type(api: str, version: int) -> Any:
    return load_request_schema(API_KEYS[api], version)


@cache
def response_type(api: str, version: int) -> Any:
    return load_response_schema(API_KEYS[api], version)


def compose(api: str, version: int, fields: Mapping[str, object]) -> Any:
    """A request of this version from plain values: nested entries are mappings in sequences.

    Required: every field that the version has without a default. Not required: that the version has all the
    fields given, so that one call can be made at every version.
    """
    return _compose(request_type(api, version), fields)


def _compose(entity: type, fields: Mapping[str, object]) -> Any:
    values = {}
    for name, nested in _nested_types(entity).items():
        if name not in fields:
            continue
        value = fields[name]
        if nested and isinstance(value, list | tuple):
            value = tuple(_compose(nested, each) for each in value)
        values[name] = tuple(value) if isinstance(value, list) else value
    return entity(**values)


@cache
def _nested_types(entity: type) -> dict[str, type | None]:
    """Each field of a kio entity, with the type of its entries where these are entities themselves."""
    hints = typing.get_type_hints(entity)
    nested: dict[str, type | None] = {}
    for each in dataclasses.fields(entity):
        options = [hints[each.name], *typing.get_args(hints[each.name])]
        entries = [
            entry
            for option in options
            if typing.get_origin(option) is tuple
            for entry in typing.get_args(option)
            if dataclasses.is_dataclass(entry)
        ]
        nested[each.name] = typing.cast("type", entries[0]) if entries else None
    return nested


@cache
def _writer(entity: type) -> Any:
    return entity_writer(entity)


@cache
def entity_reader(entity: type) -> Reader:
    """Reads an entity of the codec from what a broker sent.

    The codec reads single values. Its own reader of whole entities is not fit for hostile bytes: it reserves
    memory for as many entries as an array claims to have, which can end this process; it takes null for an
    array that must not be null; and it refuses tags and error codes of a later Kafka, which clients pass over.
    """
    hints = typing.get_type_hints(entity)
    flexible: bool = entity.__flexible__  # type: ignore[attr-defined]
    plain: dict[str, Reader] = {}
    tagged: dict[int, tuple[str, Reader]] = {}
    for each in dataclasses.fields(entity):
        read = _field_reader(hints[each.name], each.metadata.get("kafka_type", ""), flexible)
        if "tag" in each.metadata:
            tagged[each.metadata["tag"]] = each.name, read
        else:
            plain[each.name] = read

    def read_entity(data: bytes, start: int) -> tuple[Any, int]:
        values, position = {}, start
        for name, read in plain.items():
            values[name], size = read(data, position)
            position += size
        if flexible:
            count, position = _unsigned_varint(data, position)
            for _ in range(count):
                tag, position = _unsigned_varint(data, position)
                length, position = _unsigned_varint(data, position)
                if tag in tagged:
                    name, read = tagged[tag]
                    values[name], _size = read(data[position : position + length], 0)
                position += length
        return entity(**values), position - start

    return read_entity


def _field_reader(hint: Any, kafka_type: str, flexible: bool) -> Reader:
    options = typing.get_args(hint) if typing.get_origin(hint) is not tuple else ()
    nullable = NoneType in options
    kind = next((option for option in options if option is not NoneType), hint) if nullable else hint
    if typing.get_origin(kind) is tuple:
        return _array_reader(_field_reader(typing.get_args(kind)[0], kafka_type, flexible), flexible, nullable)
    if dataclasses.is_dataclass(kind):
        read_entity = entity_reader(typing.cast("type", kind))
        return _nullable_reader(read_entity) if nullable else read_entity
    reader: Reader = get_reader("int16" if kafka_type == "error_code" else kafka_type, flexible, nullable)
    return reader


def _array_reader(read: Reader, flexible: bool, nullable: bool) -> Reader:
    def read_array(data: bytes, start: int) -> tuple[Any, int]:
        if flexible:
            count, position = _unsigned_varint(data, start)
            count -= 1
        else:
            (count,), position = struct.unpack_from(">i", data, start), start + 4
        if count == -1 and nullable:
            return None, position - start
        if not 0 <= count <= len(data) - position:  # an entry takes a byte at least
            raise MalformedAnswer(f"an array of {count} entries in {len(data) - position} bytes")
        entries = []
        for _ in range(count):
            entry, size = read(data, position)
            entries.append(entry)
            position += size
        return tuple(entries), position - start

    return read_array


def _nullable_reader(read: Reader) -> Reader:
    """An entity behind a byte that says whether there is one."""

    def read_nullable(data: bytes, start: int) -> tuple[Any, int]:
        (present,) = struct.unpack_from(">b", data, start)
        if present < 0:
            return None, 1
        entity, size = read(data, start + 1)
        return entity, size + 1

    return read_nullable


def tagged_fields_size(frame: bytes, position: int) -> int:
    """The size of a response header's tagged fields, whose content no scenario depends on."""
    start = position
    count, position = _unsigned_varint(frame, position)
    for _ in range(min(count, len(frame))):
        _tag, position = _unsigned_varint(frame, position)
        size, position = _unsigned_varint(frame, position)
        position += size
    return position - start


def _unsigned_varint(data: bytes, position: int) -> tuple[int, int]:
    number = 0
    for index in range(5):
        if position + index >= len(data):
            break
        number |= (data[position + index] & 0x7F) << (7 * index)
        if not data[position + index] & 0x80:
            return number, position + index + 1
    raise MalformedAnswer("a header with a broken number")


def error_name(code: int) -> str:
    """Kafka's name for an error code; the bare number for one that it does not have."""
    try:
        return ErrorCode(code).name.upper()
    except ValueError:
        return f"ERROR_{code}"
