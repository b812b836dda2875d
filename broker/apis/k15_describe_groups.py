"""DescribeGroups: v0-v6. From v6 on a group that is not there is an error, and not a dead group."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import ALL_GROUP_OPERATIONS, OK, Call
from broker.codec import Fields
from broker.groups import State

VERSIONS = range(7)


async def handle(request: Any, call: Call) -> Fields:
    return {"groups": [_described(group_id, request, call) for group_id in request.groups]}


def _described(group_id: str, request: Any, call: Call) -> Fields:
    group = call.broker.groups.get(group_id)
    answer: dict[str, Any] = {"group_id": group_id, "error_code": OK}
    if getattr(request, "include_authorized_operations", False):
        answer["authorized_operations"] = ALL_GROUP_OPERATIONS
    if group is None:
        answer |= {"group_state": "Dead", "protocol_type": "", "protocol_data": ""}
        if call.version >= 6:
            answer |= {"error_code": ErrorCode.group_id_not_found, "error_message": f"Group {group_id} not found."}
        return answer
    protocol = group.protocol if group.state is State.STABLE else None
    return answer | {
        "group_state": group.state.value,
        "protocol_type": group.protocol_type or "",
        "protocol_data": protocol or "",
        "members": [
            {
                "member_id": member.id,
                "group_instance_id": member.instance,
                "client_id": member.client_id,
                "client_host": f"/{member.host}",
                "member_metadata": member.protocols.get(protocol, b"") if protocol else b"",
                "member_assignment": member.assignment,
            }
            for member in group.members.values()
        ],
    }
