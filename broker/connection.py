"""One client's connection: frames in, answers out, in order and one at a time.

What arrives is hostile. A length is judged before anything is kept, a frame is whole before it is looked at, and
a request is refused by closing where the protocol has no way to say it. A client that does not read is not read
from either: there is never more than one answer waiting for it.
"""

from __future__ import annotations

import asyncio
import logging
import struct
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from broker.api import Call, Peer
from broker.apis import k18_api_versions
from broker.codec import Codec, Undecodable, codec, read_unsigned_varint
from broker.refusal import CloseConnection

if TYPE_CHECKING:
    from broker.server import Server

log = logging.getLogger("broker.connection")

PRODUCE, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 0, 17, 18, 36
BEFORE_LOGIN = frozenset({SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE})

_LENGTH = struct.Struct(">i")
_HEADER = struct.Struct(">hhi")
_PREFIX = struct.Struct(">ii")

HEADER_BYTES = _HEADER.size
"""The shortest request header: api key, version, correlation id. Nothing shorter is a request."""

MAX_BYTES_BEFORE_LOGIN = 64 * 2**10
MAX_BYTES_WITHOUT_RECORDS = 2**20
"""Only Produce carries records. Names and numbers fill a mebibyte when ten thousand partitions are asked about, and
every entry becomes an object, several times larger than on the wire."""

JUDGED_FROM = 6
"""Behind the length comes the api key, which decides how long the frame may be."""

READ_AHEAD = 256 * 2**10
"""How much of later requests is taken in while one is being answered."""

COUNTED_FROM = 64 * 2**10
"""Frames and unsent answers from this size on are counted against the sum that all connections may hold."""

TURNS = 64
"""Requests answered without a pause before other connections get their turn."""


class Connection(asyncio.Protocol):
    """The bytes and the conversation. Made by the server for each client."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = bytearray()
        self._wanted = 4
        self._held = 0
        self._unsent = 0
        self._arrived: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._reading = True
        self.last_active = 0.0

    # -- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()
        self.last_active = self._loop.time()
        peer = self._transport.get_extra_info("peername") or ("unknown", 0)
        self._peer = Peer(str(peer[0]))
        if not self._server.admit(self):
            self._transport.abort()
            return
        self._task = self._loop.create_task(self._converse())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self.last_active = self._loop.time()
        if self._arrived is not None:
            if len(self._buffer) >= self._wanted and not self._arrived.done():
                self._arrived.set_result(None)
        elif self._reading and len(self._buffer) > READ_AHEAD:
            self._transport.pause_reading()
            self._reading = False

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()
        self._unsent = self._transport.get_write_buffer_size()
        if not self._server.hold(self._unsent):
            self._unsent = 0
            self.close("unsent answers of all clients are too much to hold", abort=True)

    def resume_writing(self) -> None:
        self._release_unsent()
        if self._writable and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def connection_lost(self, _error: Exception | None) -> None:
        self._release_unsent()
        self._release_frame()
        self._server.forget(self)
        if hasattr(self, "_task"):
            self._task.cancel()

    def close(self, reason: str, *, abort: bool = False) -> None:
        """End the connection from this side."""
        self._server.broker.metrics.closed[reason] += 1
        if abort:
            self._transport.abort()
        else:
            self._transport.close()

    def _release_unsent(self) -> None:
        self._server.release(self._unsent)
        self._unsent = 0

    def _release_frame(self) -> None:
        self._server.release(self._held)
        self._held = 0

    # -- the conversation

    async def _converse(self) -> None:
        try:
            turns = 0
            metrics = self._server.broker.metrics
            while True:
                frame = self._take_frame()
                if frame is None:
                    turns = 0
                    await self._wait_for_more()
                    continue
                answer = await self._answer(frame)
                if self._held:
                    self._release_frame()
                metrics.bytes_in += len(frame) + _LENGTH.size
                if answer is not None:
                    self._transport.write(answer)
                    metrics.bytes_out += len(answer)
                if self._writable is not None:
                    await self._writable
                turns += 1
                if turns >= TURNS:
                    turns = 0
                    await asyncio.sleep(0)
        except CloseConnection as reason:
            log.info("connection closed", extra={"peer": self._peer.host, "reason": str(reason)})
            self.close("not the protocol")
        except Exception:
            # A defect of this broker, or bytes that a codec chokes on: the client loses its connection, nobody else.
            log.exception("request failed", extra={"peer": self._peer.host, "client_id": self._peer.client_id})
            self.close("failure")

    def _take_frame(self) -> bytes | None:
        """The next whole request. A length that cannot be is a reason to close, before its bytes are waited for."""
        buffer = self._buffer
        if len(buffer) < self._wanted:
            return None
        size: int = _LENGTH.unpack_from(buffer)[0]
        self._judge(size)
        self._wanted = end = _LENGTH.size + size
        if len(buffer) >= end:
            frame = bytes(memoryview(buffer)[_LENGTH.size : end])
            del buffer[:end]
            self._wanted = _LENGTH.size
            return frame
        if not self._held and size >= COUNTED_FROM:
            if not self._server.hold(size):
                raise CloseConnection("requests of all clients are too much to hold")
            self._held = size
        if len(buffer) < JUDGED_FROM:
            self._wanted = JUDGED_FROM
        return None

    async def _wait_for_more(self) -> None:
        if not self._reading:
            self._transport.resume_reading()
            self._reading = True
        self._arrived = self._loop.create_future()
        try:
            await self._arrived
        finally:
            self._arrived = None

    def _judge(self, size: int) -> None:
        most = self._server.max_frame_bytes
        if self._server.broker.users is not None and self._peer.user is None:
            most = MAX_BYTES_BEFORE_LOGIN
        elif len(self._buffer) >= JUDGED_FROM and (self._buffer[4] or self._buffer[5]):  # the key: not Produce
            most = min(most, MAX_BYTES_WITHOUT_RECORDS)
        if not HEADER_BYTES <= size <= most:
            raise CloseConnection(f"a request of {size} bytes; {HEADER_BYTES} to {most} are accepted")

    async def _answer(self, frame: bytes) -> bytes | bytearray | None:
        key, version, correlation = _HEADER.unpack_from(frame)
        api = self._server.apis.get(key)
        if api is None:
            raise CloseConnection(f"api key {key} is not one of this broker's")
        if self._server.broker.users is not None and self._peer.user is None and key not in BEFORE_LOGIN:
            raise CloseConnection(f"{api.name} before login")
        if version not in api.versions:
            if key == API_VERSIONS:
                return _framed(codec(key, 0), correlation, k18_api_versions.unsupported())
            raise CloseConnection(f"{api.name} v{version} is not one of this broker's")
        form = codec(key, version)
        position = self._read_client_id(frame)
        if form.flexible_request:
            position = _skip_tags(frame, position)
        try:
            request, _end = form.read(frame, position)
        except Undecodable as error:
            raise CloseConnection(f"{api.name} v{version} does not decode: {error}") from None
        started = time.perf_counter()
        answer = await api.handle(request, Call(key, version, self._peer, self._server.broker))
        served = self._server.broker.metrics.requests[api.name]
        served.count += 1
        served.seconds += time.perf_counter() - started
        return None if answer is None else _framed(form, correlation, answer)

    def _read_client_id(self, frame: bytes) -> int:
        """Remember what the client calls itself; the position behind it."""
        if len(frame) < 10:
            raise CloseConnection("a header without a client id")
        size = int.from_bytes(frame[8:10], "big", signed=True)
        if size < -1 or 10 + size > len(frame):
            raise CloseConnection("a header that is longer than its frame")
        if size >= 0:
            self._peer.client_id = frame[10 : 10 + size].decode("utf-8", "replace")
        return 10 + max(size, 0)


def _framed(form: Codec, correlation: int, answer: Mapping[str, object]) -> bytearray:
    out = bytearray(_PREFIX.pack(0, correlation))  # the length is filled in when it is known
    if form.flexible_answer:
        out.append(0)  # no tags in the header
    form.write(out, answer)
    _LENGTH.pack_into(out, 0, len(out) - _LENGTH.size)
    return out


def _skip_tags(frame: bytes, position: int) -> int:
    """The position behind a header's tagged fields, of which none matters here."""
    try:
        count, position = read_unsigned_varint(frame, position)
        for _ in range(count):
            _tag, position = read_unsigned_varint(frame, position)
            size, position = read_unsigned_varint(frame, position)
            position += size
    except (IndexError, Undecodable):
        raise CloseConnection("a header that is longer than its frame") from None
    return position
