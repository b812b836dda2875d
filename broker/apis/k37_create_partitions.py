"""CreatePartitions: v0-v3 (KIP-195)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.codec import Fields
from broker.refusal import Refusal

VERSIONS = range(4)


async def handle(request: Any, call: Call) -> Fields:
    times = Counter(entry.name for entry in request.topics)
    answers = []
    for entry in {entry.name: entry for entry in request.topics}.values():
        try:
            if times[entry.name] > 1:
                raise Refusal(ErrorCode.invalid_request, "Duplicate topic name.")
            _grow(entry, call, validate_only=request.validate_only)
            answers.append({"name": entry.name, "error_code": OK, "error_message": None})
        except Refusal as refusal:
            answers.append({"name": entry.name, "error_code": refusal.code, "error_message": refusal.message})
    return {"results": answers}


def _grow(entry: Any, call: Call, *, validate_only: bool) -> None:
    topic = call.broker.topics.get(entry.name)
    if topic is None:
        raise Refusal(ErrorCode.unknown_topic_or_partition, "This server does not host this topic.")
    if entry.assignments is not None:
        nodes = {tuple(each.broker_ids) for each in entry.assignments}
        if nodes != {(call.broker.node_id,)} or len(entry.assignments) != entry.count - len(topic.partitions):
            raise Refusal(
                ErrorCode.invalid_replica_assignment,
                f"Each new partition must be assigned, and to broker {call.broker.node_id} alone.",
            )
    call.broker.topics.grow(topic, entry.count, validate_only=validate_only)
