"""JoinGroup: v0-v9.

v1   a rebalance timeout of its own
v4   a new member is first given an id (KIP-394)
v5   static members (KIP-345)
v9   a leader that comes back may be told that nothing is to be done (KIP-814)
"""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.codec import Fields
from broker.groups import Joining, MemberIdRequired
from broker.refusal import Refusal

VERSIONS = range(10)


async def handle(request: Any, call: Call) -> Fields:
    session_ms = request.session_timeout
    asked = Joining(
        group=request.group_id,
        member=request.member_id,
        instance=getattr(request, "group_instance_id", None),
        client_id=call.peer.client_id,
        host=call.peer.host,
        session_ms=session_ms,
        rebalance_ms=request.rebalance_timeout if call.version >= 1 else session_ms,
        protocol_type=request.protocol_type,
        protocols={protocol.name: bytes(protocol.metadata) for protocol in request.protocols},
        must_know_its_id=call.version >= 4,
        may_skip_assignment=call.version >= 9,
    )
    try:
        joined = await call.broker.groups.join(asked)
    except MemberIdRequired as given:
        return _refused(ErrorCode.member_id_required, given.member_id, call)
    except Refusal as refusal:
        return _refused(refusal.code, request.member_id, call)
    return {
        "error_code": OK,
        "generation_id": joined.generation,
        "protocol_type": joined.protocol_type,
        "protocol_name": joined.protocol,
        "leader": joined.leader,
        "skip_assignment": joined.skip_assignment,
        "member_id": joined.member,
        "members": [
            {"member_id": member, "group_instance_id": instance, "metadata": metadata}
            for member, instance, metadata in joined.members
        ],
    }


def _refused(code: ErrorCode, member_id: str, call: Call) -> Fields:
    return {
        "error_code": code,
        "generation_id": -1,
        "protocol_name": "" if call.version < 7 else None,
        "leader": "",
        "member_id": member_id,
    }
