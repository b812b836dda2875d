"""Heartbeat: v0-v4. From v3 on static members say their instance id (KIP-345)."""

from __future__ import annotations

from typing import Any

from broker.api import OK, Call
from broker.codec import Fields
from broker.refusal import Refusal

VERSIONS = range(5)


async def handle(request: Any, call: Call) -> Fields:
    try:
        call.broker.groups.heartbeat(
            request.group_id, request.member_id, getattr(request, "group_instance_id", None), request.generation_id
        )
    except Refusal as refusal:
        return {"error_code": refusal.code}
    return {"error_code": OK}
