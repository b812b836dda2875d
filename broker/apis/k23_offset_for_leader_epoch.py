"""OffsetForLeaderEpoch: v2-v4 (KIP-320). Where the records of an epoch end."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call, check_leader_epoch
from broker.codec import Fields
from broker.refusal import Refusal

VERSIONS = range(2, 5)


async def handle(request: Any, call: Call) -> Fields:
    return {
        "topics": [
            {
                "topic": topic.topic,
                "partitions": [await _answer(call, topic.topic, entry) for entry in topic.partitions],
            }
            for topic in request.topics
        ]
    }


async def _answer(call: Call, name: str, entry: Any) -> Fields:
    try:
        log = call.broker.topics.log(name, entry.partition)
        if log is None:
            raise Refusal(ErrorCode.unknown_topic_or_partition, "no such partition")
        check_leader_epoch(entry.current_leader_epoch, (await log.ends()).leader_epoch)
        epoch, end = await log.end_of_epoch(entry.leader_epoch)
    except Refusal as refusal:
        return {"partition": entry.partition, "error_code": refusal.code, "leader_epoch": -1, "end_offset": -1}
    return {"partition": entry.partition, "error_code": OK, "leader_epoch": epoch, "end_offset": end}
