"""AddOffsetsToTxn: v0-v4. The group whose offsets a transaction will commit."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.broker import now_ms
from broker.codec import Fields
from broker.refusal import Refusal

VERSIONS = range(5)


async def handle(request: Any, call: Call) -> Fields:
    if not request.group_id:
        return {"error_code": ErrorCode.invalid_group_id}
    try:
        call.broker.transactions.add_group(
            request.transactional_id, request.producer_id, request.producer_epoch, request.group_id, now_ms()
        )
    except Refusal as refusal:
        return {"error_code": call.broker.transactions.fencing_error(refusal.code, call.version >= 2)}
    return {"error_code": OK}
