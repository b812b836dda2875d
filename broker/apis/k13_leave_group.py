"""LeaveGroup: v0-v5. From v3 on several members may be sent away at once (KIP-345)."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.codec import Fields
from broker.refusal import Refusal

VERSIONS = range(6)


async def handle(request: Any, call: Call) -> Fields:
    if call.version < 3:
        return {"error_code": _leave(call, request.group_id, request.member_id, None)}
    return {
        "error_code": OK if request.group_id else ErrorCode.invalid_group_id,
        "members": [
            {
                "member_id": member.member_id,
                "group_instance_id": member.group_instance_id,
                "error_code": _leave(call, request.group_id, member.member_id, member.group_instance_id),
            }
            for member in request.members
        ],
    }


def _leave(call: Call, group_id: str, member_id: str, instance: str | None) -> ErrorCode:
    try:
        call.broker.groups.leave(group_id, member_id, instance)
    except Refusal as refusal:
        return refusal.code
    return OK
