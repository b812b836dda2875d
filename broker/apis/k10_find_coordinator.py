"""FindCoordinator: v0-v6. Of groups and of transactional ids: it is always this broker.

v4   several keys at once (KIP-699)
v6   share groups (KIP-932), which there are none of here
"""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.codec import Fields

VERSIONS = range(7)

GROUP, TRANSACTION = 0, 1


async def handle(request: Any, call: Call) -> Fields:
    broker = call.broker
    here = {"node_id": broker.node_id, "host": broker.host, "port": broker.port, "error_code": OK}
    if getattr(request, "key_type", GROUP) not in (GROUP, TRANSACTION):
        here = {
            "node_id": -1,
            "host": "",
            "port": -1,
            "error_code": ErrorCode.invalid_request,
            "error_message": "This broker coordinates groups and transactions only.",
        }
    if call.version < 4:
        return here
    return {"coordinators": [{"key": key} | here for key in request.coordinator_keys]}
