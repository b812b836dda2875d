"""DeleteRecords: v0-v2 (KIP-107). -1 means everything up to the high watermark."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.codec import Fields
from broker.refusal import Refusal

VERSIONS = range(3)


async def handle(request: Any, call: Call) -> Fields:
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [await _delete(call, topic.name, entry) for entry in topic.partitions],
            }
            for topic in request.topics
        ]
    }


async def _delete(call: Call, name: str, entry: Any) -> Fields:
    try:
        topic = call.broker.topics.get(name)
        log = call.broker.topics.log(name, entry.partition_index)
        if topic is None or log is None:
            raise Refusal(ErrorCode.unknown_topic_or_partition, "no such partition")
        if topic.settings.compact and not topic.settings.delete:
            raise Refusal(ErrorCode.policy_violation, "records of a topic that is only compacted are not deleted")
        start = await log.delete_up_to(entry.offset)
    except Refusal as refusal:
        return {"partition_index": entry.partition_index, "low_watermark": -1, "error_code": refusal.code}
    return {"partition_index": entry.partition_index, "low_watermark": start, "error_code": OK}
