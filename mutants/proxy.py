"""A proxy in front of one broker that passes everything on byte for byte, except what it was told to bend.

Answers that name brokers are rewritten in any case, so that clients keep talking to the proxy. Loopback only, frames
are bounded, and each proxy has a memory of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import socket
import struct
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from conformance.wire import MAX_FRAME_BYTES, split_address
from mutants.bending import CUT, Bending, Part
from mutants.memory import Memory
from mutants.messages import HEADER, Answered, Asked, Undecodable

LOOPBACK = "127.0.0.1"

LOCALHOST = "localhost"
"""A broker may name itself so; that is the same listener, and the name is left as it is."""

SETTLE_SECONDS = 10.0
"""Opening and closing a listener takes a millisecond; ten seconds is a machine that is stuck."""

NAMES_BROKERS = frozenset({"metadata", "find_coordinator", "describe_cluster"})
"""The answers in which brokers' addresses are."""

MAX_IN_FLIGHT = 1000
"""Requests without an answer yet, on one connection. Clients have five; what is never answered must not pile up."""

V = TypeVar("V")


class BendingProxy:
    """One proxy with one bending. Made by `ProxyThread.open`."""

    def __init__(self, broker: str, bending: Bending, *, recording: bool) -> None:
        self.bending = bending
        self.memory = Memory()
        self.heard: list[Answered] = []
        self.bent = 0
        self._recording = recording
        self._broker = split_address(broker)
        self._servers: dict[tuple[str, int], asyncio.Server] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._count = 0

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"{LOOPBACK}:{self._port(self._broker)}"

    def _port(self, broker: tuple[str, int]) -> int:
        return int(self._servers[broker].sockets[0].getsockname()[1])

    async def open(self) -> None:
        await self._listen_for(self._broker)

    async def close(self) -> None:
        for server in self._servers.values():
            server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _listen_for(self, broker: tuple[str, int]) -> int:
        """The port on which this proxy stands for a broker; one is opened for a broker that is new to it."""
        if broker not in self._servers:

            def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                task = asyncio.create_task(self._serve(broker, reader, writer))
                self._connections.add(task)
                task.add_done_callback(self._connections.discard)

            self._servers[broker] = await asyncio.start_server(accept, LOOPBACK, 0, limit=MAX_FRAME_BYTES + 4)
        return self._port(broker)

    async def _serve(self, broker: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: what either side closes is closed on the other."""
        number, self._count = self._count, self._count + 1
        in_flight: dict[int, Asked] = {}
        ways: list[asyncio.Task[None]] = []
        writers = [writer]
        try:
            answers, requests = await asyncio.open_connection(*broker, limit=MAX_FRAME_BYTES + 4)
            writers.append(requests)
            for each in writers:
                each.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ways = [
                asyncio.create_task(self._carry_requests(reader, requests, in_flight, number)),
                asyncio.create_task(self._carry_answers(answers, writer, in_flight)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            return  # the broker is not there: the client learns it from its closed connection
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for each in writers:
                each.close()

    async def _carry_requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, in_flight: dict[int, Asked], number: int
    ) -> None:
        while (frame := await _read_frame(reader)) is not None:
            if len(frame) >= HEADER.size:
                asked = self._ask(Asked(frame, number))
                if asked is None:
                    return
                in_flight[asked.correlation] = asked
                if len(in_flight) > MAX_IN_FLIGHT:
                    del in_flight[next(iter(in_flight))]
                frame = asked.frame
            await _write_frame(writer, frame)

    def _ask(self, asked: Asked) -> Asked | None:
        """The request to pass on; None to close the connection instead."""
        if self.bending.ask is None or not asked.readable:
            return asked
        with contextlib.suppress(Undecodable):
            bent = self.bending.ask(asked, self.memory)
            self.bent += bent is not asked
            return bent
        return asked

    async def _carry_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, in_flight: dict[int, Asked]
    ) -> None:
        while (frame := await _read_frame(reader)) is not None:
            asked = in_flight.pop(struct.unpack_from(">i", frame)[0], None) if len(frame) >= 4 else None
            if asked is None or not asked.readable:
                await _write_frame(writer, frame)
                continue
            answered = Answered(asked, frame)
            if self._recording:
                self.heard.append(answered)
            for part in await self._bend(answered):
                if part is CUT:
                    await writer.drain()
                    return
                if isinstance(part, float):
                    await asyncio.sleep(part)
                else:
                    writer.write(part)
                    await writer.drain()

    async def _bend(self, answered: Answered) -> list[Part]:
        asked, frame = answered.asked, answered.frame
        with contextlib.suppress(Undecodable):
            bent = self.bending.bend(answered, self.memory)
            self.bent += bent is not None
            if asked.api in NAMES_BROKERS:
                bent = await self._with_own_addresses(answered.answer if bent is None else bent)
            frame = frame if bent is None else asked.encode(bent, frame)
        whole = struct.pack(">i", len(frame)) + frame
        if self.bending.deliver is None:
            return [whole]
        parts = self.bending.deliver(asked, whole, self.memory)
        if parts is None:
            return [whole]
        self.bent += 1
        return parts

    async def _with_own_addresses(self, answer: Any) -> Any:
        """The same answer, with this proxy in the place of every broker that it names."""
        for name in ("brokers", "coordinators"):
            if hasattr(answer, name):
                entries = [await self._with_own_addresses(entry) for entry in getattr(answer, name)]
                return dataclasses.replace(answer, **{name: tuple(entries)})
        if not answer.host or answer.port < 0:  # no broker, as in the refusal to name a coordinator
            return answer
        host = LOOPBACK if answer.host == LOCALHOST else answer.host
        port = await self._listen_for((host, int(answer.port)))
        return dataclasses.replace(answer, host=LOCALHOST if answer.host == LOCALHOST else LOOPBACK, port=port)


async def _read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The next frame without its length; None at the end, and for a length that no client or broker would send."""
    try:
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        return await reader.readexactly(length) if 0 <= length <= MAX_FRAME_BYTES else None
    except (asyncio.IncompleteReadError, OSError):
        return None


async def _write_frame(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(struct.pack(">i", len(frame)) + frame)
    await writer.drain()


@dataclass
class ProxyThread:
    """The thread in which proxies run, any number of them. A context manager."""

    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def __enter__(self) -> ProxyThread:
        self._thread = threading.Thread(target=self._loop.run_forever, name="bending-proxies", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SETTLE_SECONDS)
        self._loop.close()

    @contextmanager
    def open(self, broker: str, bending: Bending, *, recording: bool = False) -> Iterator[BendingProxy]:
        """A proxy in front of `broker` until the context is left."""
        proxy = BendingProxy(broker, bending, recording=recording)
        self._wait(proxy.open())
        try:
            yield proxy
        finally:
            self._wait(proxy.close())

    def _wait(self, work: Coroutine[Any, Any, V]) -> V:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SETTLE_SECONDS)
