"""SaslHandshake: v1. v0 would go on with bare tokens outside the protocol, which no client of today does."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.codec import Fields

VERSIONS = range(1, 2)

MECHANISMS = ("PLAIN",)


async def handle(request: Any, call: Call) -> Fields:
    if call.broker.users is None or call.peer.user is not None:
        return {"error_code": ErrorCode.illegal_sasl_state, "mechanisms": MECHANISMS}
    if request.mechanism not in MECHANISMS:
        return {"error_code": ErrorCode.unsupported_sasl_mechanism, "mechanisms": MECHANISMS}
    call.peer.mechanism = request.mechanism
    return {"error_code": OK, "mechanisms": MECHANISMS}
