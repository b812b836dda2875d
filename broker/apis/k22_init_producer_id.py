"""InitProducerId: v0-v5. An id for an idempotent producer, or the next epoch of a transactional one.

v3   a producer may ask for its own next epoch after an error (KIP-360)
v4   a fenced producer is told so by name (KIP-588)
"""

from __future__ import annotations

from typing import Any

from broker.api import OK, Call
from broker.broker import now_ms
from broker.codec import Fields
from broker.refusal import Refusal

VERSIONS = range(6)


async def handle(request: Any, call: Call) -> Fields:
    try:
        producer_id, epoch = await call.broker.transactions.init_producer(
            request.transactional_id,
            request.transaction_timeout,
            getattr(request, "producer_id", -1),
            getattr(request, "producer_epoch", -1),
            now_ms(),
        )
    except Refusal as refusal:
        return {
            "error_code": call.broker.transactions.fencing_error(refusal.code, call.version >= 4),
            "producer_id": -1,
            "producer_epoch": -1,
        }
    return {"error_code": OK, "producer_id": producer_id, "producer_epoch": epoch}
