"""A client that says what no honest client says, byte by byte."""

from __future__ import annotations

import socket
import struct

API_VERSIONS, PRODUCE, FETCH, LIST_OFFSETS, METADATA = 18, 0, 1, 2, 3

ANSWER_SECONDS = 10.0


def connect(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, timeout=ANSWER_SECONDS)


def request(key: int, version: int, body: bytes = b"", *, flexible: bool = False) -> bytes:
    payload = struct.pack(">hhih", key, version, 7, -1) + (b"\x00" if flexible else b"") + body
    return struct.pack(">i", len(payload)) + payload


def answer(connection: socket.socket) -> bytes | None:
    """The next answer without its length, or None when the broker closes instead."""
    try:
        head = _exactly(connection, 4)
        return None if head is None else _exactly(connection, struct.unpack(">i", head)[0])
    except ConnectionResetError:
        return None


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        if not chunk:
            return None
        data += chunk
    return data


def is_alive(address: tuple[str, int]) -> bool:
    """Whether the broker still answers an honest question."""
    with connect(address) as connection:
        connection.sendall(request(API_VERSIONS, 0))
        said = answer(connection)
        return said is not None and said[:6] == struct.pack(">ih", 7, 0)
