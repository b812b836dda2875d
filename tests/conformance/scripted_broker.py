"""Brokers of a few lines, on real loopback sockets: a function plays each connection, in a thread of its own.

Answers are written with `struct`, so that nothing of what is tested takes part in testing it.
"""

import socket
import struct
import threading
from collections.abc import Callable, Sequence

Play = Callable[[socket.socket], None]
Address = tuple[str, int]

API_VERSIONS, METADATA, LIST_OFFSETS, FETCH = 18, 3, 2, 1

PEER_SECONDS = 10.0
"""No client of a test is silent for so long: a play that waits longer than this is stuck."""


class Loopback:
    """Listens on a port that nobody fixed until it is closed."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: Address = self._listener.getsockname()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Stop listening; connections that are being played go on."""
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        except OSError:
            return  # closed before
        self._listener.close()

    def join(self) -> None:
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(PEER_SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                connection, _peer = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._play_one, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _play_one(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(PEER_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                self._play(connection)
            except OSError:
                return  # the client had enough, which is what some tests want to see


def read_request(connection: socket.socket) -> bytes:
    """One request without its length; empty when the client has closed."""
    length = _read(connection, 4)
    return _read(connection, struct.unpack(">i", length)[0]) if length else b""


def _read(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        if not chunk:
            return b""
        data += chunk
    return data


def await_close(connection: socket.socket) -> None:
    while connection.recv(1024):
        pass


def replying(raw: bytes) -> Play:
    """Reads one request, sends these bytes whatever they are, and then says no more."""

    def play(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(raw)
        await_close(connection)

    return play


def frame(body: bytes, *, correlation: int = 1) -> bytes:
    return struct.pack(">ii", len(body) + 4, correlation) + body


class ScriptedBroker:
    """Answers each API by calling its function for the body; None closes the connection instead.

    It advertises only versions whose answers are easily written by hand.
    """

    def __init__(self, serve: Callable[[Play], Loopback]) -> None:
        self.asked: list[int] = []
        self.answers: dict[int, Callable[[], bytes | None]] = {API_VERSIONS: api_versions}
        self._loopback = serve(self._play)
        host, port = self._loopback.address
        self.bootstrap = f"{host}:{port}"
        self.lead(host, port)

    def lead(self, host: str, port: int) -> None:
        """Name this address as the leader of partition 0 of topic t."""
        self.answers[METADATA] = lambda: metadata(host, port)

    def answer(self, api: int, *bodies: bytes | None) -> None:
        """Give these answers one after the other, and the last of them ever after."""
        rest = list(bodies)
        self.answers[api] = lambda: rest.pop(0) if len(rest) > 1 else rest[0]

    def stop_listening(self) -> None:
        self._loopback.close()

    def _play(self, connection: socket.socket) -> None:
        while request := read_request(connection):
            api, _version, correlation = struct.unpack_from(">hhi", request)
            self.asked.append(api)
            body = self.answers[api]()
            if body is None:
                return
            connection.sendall(frame(body, correlation=correlation))


def text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def array(entries: Sequence[bytes]) -> bytes:
    return struct.pack(">i", len(entries)) + b"".join(entries)


HAND_WRITTEN = {API_VERSIONS: (0, 0), METADATA: (0, 0), LIST_OFFSETS: (0, 1), FETCH: (4, 4)}


def api_versions(ranges: dict[int, tuple[int, int]] = HAND_WRITTEN, *, error: int = 0) -> bytes:
    """ApiVersions v0."""
    return struct.pack(">h", error) + array([struct.pack(">hhh", key, *each) for key, each in ranges.items()])


def metadata(host: str, port: int) -> bytes:
    """Metadata v0: one node, which leads partition 0 of topic t."""
    node = struct.pack(">i", 7) + text(host) + struct.pack(">i", port)
    partition = struct.pack(">hii", 0, 0, 7) + array([]) + array([])
    return array([node]) + array([struct.pack(">h", 0) + text("t") + array([partition])])


def list_offsets(*, topic: str = "t", partitions: Sequence[int] = (0,), error: int = 0, offset: int = 5) -> bytes:
    """ListOffsets v1: an entry for each partition, all alike."""
    entries = [struct.pack(">ihqq", index, error, -1, offset) for index in partitions]
    return array([text(topic) + array(entries)])


def fetch(records: bytes) -> bytes:
    """Fetch v4: partition 0 of topic t."""
    entry = struct.pack(">ihqq", 0, 0, 5, 5) + array([]) + struct.pack(">i", len(records)) + records
    return struct.pack(">i", 0) + array([text("t") + array([entry])])
