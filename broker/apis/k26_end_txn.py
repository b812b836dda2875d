"""EndTxn: v0-v4. v5 would begin the next transaction with a new epoch (KIP-890), which is not done here."""

from __future__ import annotations

from typing import Any

from broker.api import OK, Call
from broker.broker import now_ms
from broker.codec import Fields
from broker.refusal import Refusal

VERSIONS = range(5)


async def handle(request: Any, call: Call) -> Fields:
    transactions = call.broker.transactions
    try:
        await transactions.end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            commit=request.committed,
            now=now_ms(),
        )
    except Refusal as refusal:
        return {"error_code": transactions.fencing_error(refusal.code, call.version >= 2)}
    return {"error_code": OK}
