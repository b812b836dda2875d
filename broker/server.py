"""The broker on a socket: accepts, keeps within its bounds, does background work, and stops in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Awaitable, Callable

from broker.apis import table
from broker.broker import Broker, now_ms
from broker.connection import Connection
from broker.metrics import render

log = logging.getLogger("broker.server")

IDLE_CHECK_SECONDS = 5.0
STOP_SECONDS = 2.0
"""How long answers that are under way may take to leave when the broker stops."""

BACKLOG = 4096
"""Connections that may wait to be accepted: a thousand clients reconnect at once after a restart."""

METRICS_SECONDS = 5.0
"""A scrape that takes longer to say what it wants is not one."""


class Server:
    """One broker, one socket, and one more for metrics where that is asked for."""

    def __init__(self, broker: Broker, *, tls: ssl.SSLContext | None = None) -> None:
        self.broker = broker
        self.apis = table()
        self.max_frame_bytes: int = broker.settings["socket.request.max.bytes"]
        self._tls = tls
        self._connections: set[Connection] = set()
        self._held = 0
        self._max_held: int = broker.settings["queued.max.request.bytes"]
        self._max_connections: int = broker.settings["max.connections"]
        self._idle_seconds: float = broker.settings["connections.max.idle.ms"] / 1000
        self._sockets: list[asyncio.Server] = []
        self._tasks: list[asyncio.Task[None]] = []

    # -- bounds, asked by connections

    def admit(self, connection: Connection) -> bool:
        if len(self._connections) >= self._max_connections:
            self.broker.metrics.closed["too many connections"] += 1
            return False
        self._connections.add(connection)
        self.broker.metrics.accepted += 1
        return True

    def forget(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def hold(self, size: int) -> bool:
        """Take `size` bytes of the sum that all connections may hold; False if they are not there."""
        if self._held + size > self._max_held:
            return False
        self._held += size
        return True

    def release(self, size: int) -> None:
        self._held -= size

    # -- start and stop

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen, and do background work from now on. The address that was bound."""
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(lambda: Connection(self), host, port, ssl=self._tls, backlog=BACKLOG)
        self._sockets.append(listener)
        settings = self.broker.settings
        for work, milliseconds in (
            (self._expire_logs, settings["log.retention.check.interval.ms"]),
            (self._compact_logs, settings["log.cleaner.backoff.ms"]),
            (self._expire_transactions, settings["transaction.abort.timed.out.transaction.cleanup.interval.ms"]),
            (self._close_idle_connections, min(IDLE_CHECK_SECONDS, self._idle_seconds) * 1000),
        ):
            self._tasks.append(loop.create_task(_every(milliseconds / 1000, work)))
        bound = listener.sockets[0].getsockname()
        return str(bound[0]), int(bound[1])

    async def start_metrics(self, host: str, port: int) -> tuple[str, int]:
        """Answer GET /metrics on another socket. The address that was bound."""
        listener = await asyncio.start_server(self._serve_metrics, host, port)
        self._sockets.append(listener)
        bound = listener.sockets[0].getsockname()
        return str(bound[0]), int(bound[1])

    async def stop(self) -> None:
        """Accept nobody any more, let answers that are written leave, end everything else."""
        for listener in self._sockets:
            listener.close()
        for task in self._tasks:
            task.cancel()
        for connection in list(self._connections):
            connection.close("stop")
        deadline = asyncio.get_running_loop().time() + STOP_SECONDS
        while self._connections and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(self._connections):
            connection.close("stop", abort=True)

    # -- background work

    async def _expire_logs(self) -> None:
        for topic in self.broker.topics.all():
            for partition in topic.partitions:
                await partition.expire(now_ms())
            await asyncio.sleep(0)
        self.broker.groups.expire(now_ms())

    async def _compact_logs(self) -> None:
        for topic in self.broker.topics.all():
            if topic.settings.compact:
                for partition in topic.partitions:
                    await partition.compact(now_ms())
                    await asyncio.sleep(0)

    async def _expire_transactions(self) -> None:
        await self.broker.transactions.expire(now_ms())

    async def _close_idle_connections(self) -> None:
        oldest = asyncio.get_running_loop().time() - self._idle_seconds
        for connection in [each for each in self._connections if each.last_active < oldest]:
            connection.close("idle", abort=True)

    # -- metrics

    async def _serve_metrics(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, asyncio.LimitOverrunError, asyncio.IncompleteReadError):
            request = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), METRICS_SECONDS)
            found = request.startswith(b"GET /metrics ")
            body = render(self.broker.metrics, self._gauges()) if found else "The page is /metrics.\n"
            status = "200 OK" if found else "404 Not Found"
            head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
            await asyncio.wait_for(writer.drain(), METRICS_SECONDS)
        writer.close()

    def _gauges(self) -> dict[str, float]:
        topics = self.broker.topics.all()
        return {
            "connections": len(self._connections),
            "held_bytes": self._held,
            "topics": len(topics),
            "partitions": self.broker.topics.count_partitions,
            "log_bytes": sum(partition.size() for topic in topics for partition in topic.partitions),
            "groups": len(self.broker.groups.all()),
        }


async def _every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    """Do something again and again. That it fails once is logged, and no reason not to do it the next time."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
        except Exception:
            log.exception("background work failed", extra={"work": work.__name__})
