"""SaslAuthenticate: v0-v2, with PLAIN (RFC 4616). A session has no end of its own (KIP-368)."""

from __future__ import annotations

import hmac
from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.codec import Fields

VERSIONS = range(3)


async def handle(request: Any, call: Call) -> Fields:
    users = call.broker.users
    if users is None or call.peer.mechanism is None:
        return _refused(ErrorCode.illegal_sasl_state, "SaslHandshake comes first")
    call.peer.mechanism = None
    _authorization, _, credentials = bytes(request.auth_bytes).partition(b"\x00")
    name, _, password = credentials.partition(b"\x00")
    known = users.get(name.decode("utf-8", "replace"))
    # The comparison takes the same time for an unknown user, so that names cannot be guessed by the clock.
    same = hmac.compare_digest(password, (known or "").encode())
    if known is None or not same:
        return _refused(ErrorCode.sasl_authentication_failed, "Authentication failed: Invalid username or password")
    call.peer.user = name.decode()
    return {"error_code": OK, "error_message": None, "auth_bytes": b""}


def _refused(code: ErrorCode, message: str) -> Fields:
    return {"error_code": code, "error_message": message, "auth_bytes": b""}
