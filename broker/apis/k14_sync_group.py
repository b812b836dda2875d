"""SyncGroup: v0-v5. From v5 on a member says which protocol it believes in (KIP-559)."""

from __future__ import annotations

from typing import Any

from broker.api import OK, Call
from broker.codec import Fields
from broker.refusal import Refusal

VERSIONS = range(6)


async def handle(request: Any, call: Call) -> Fields:
    try:
        group, assignment = await call.broker.groups.sync(
            request.group_id,
            request.member_id,
            getattr(request, "group_instance_id", None),
            request.generation_id,
            {each.member_id: bytes(each.assignment) for each in request.assignments},
            (getattr(request, "protocol_type", None), getattr(request, "protocol_name", None)),
        )
    except Refusal as refusal:
        return {"error_code": refusal.code, "assignment": b""}
    return {
        "error_code": OK,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol,
        "assignment": assignment,
    }
