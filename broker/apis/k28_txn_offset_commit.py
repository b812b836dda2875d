"""TxnOffsetCommit: v0-v4. Offsets that become the group's when the transaction commits.

v3   a member says who it is, so that one that was replaced is refused (KIP-447)
"""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.apis.k08_offset_commit import committable, committed_answer
from broker.codec import Fields
from broker.groups import Committed
from broker.refusal import Refusal

VERSIONS = range(5)


async def handle(request: Any, call: Call) -> Fields:
    broker = call.broker
    try:
        broker.transactions.check_group_write(
            request.transactional_id, request.producer_id, request.producer_epoch, request.group_id
        )
        group = broker.groups.check_transactional_commit(
            request.group_id,
            getattr(request, "member_id", ""),
            getattr(request, "group_instance_id", None),
            getattr(request, "generation_id", -1),
        )
    except Refusal as refusal:
        code = broker.transactions.fencing_error(refusal.code, False)
        return committed_answer(request, call, lambda _name, _entry: code)

    def commit(name: str, entry: Any) -> ErrorCode:
        committed = committable(call, name, entry)
        if isinstance(committed, Committed):
            broker.groups.commit_in_transaction(group, request.producer_id, {(name, entry.partition_index): committed})
            return OK
        return committed

    return committed_answer(request, call, commit)
