"""Produce: v3-v13. Batches are checked and stored as they came.

v3   the first version of batches in format v2 (KIP-98)
v7   zstd (KIP-110)
v8   error messages (KIP-467)
v12  a transactional write adds its partition to the transaction (KIP-890)
v13  topic ids instead of names (KIP-516)
"""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.broker import now_ms
from broker.codec import Fields
from broker.log.batches import check_produced
from broker.refusal import CloseConnection, Refusal
from broker.topics import Topic

VERSIONS = range(3, 14)

ADDS_TO_TRANSACTION = 12
TOPIC_IDS = 13


async def handle(request: Any, call: Call) -> Fields | None:
    responses = []
    failed = ""
    for entry in request.topic_data:
        if call.version >= TOPIC_IDS:
            topic, unknown = call.broker.topics.get_by_id(entry.topic_id), ErrorCode.unknown_topic_id
        else:
            topic, unknown = call.broker.topics.get(entry.name), ErrorCode.unknown_topic_or_partition
        partitions = []
        for data in entry.partition_data:
            try:
                partitions.append(await _append(request, call, topic, unknown, data))
            except Refusal as refusal:
                failed = refusal.message
                partitions.append(_refused(data.index, refusal))
        responses.append(
            {
                "name": getattr(entry, "name", ""),
                "topic_id": getattr(entry, "topic_id", None),
                "partition_responses": partitions,
            }
        )
    if request.acks == 0:
        if failed:
            raise CloseConnection(f"a write without an answer failed: {failed}")  # the only way to tell the client
        return None
    return {"responses": responses}


async def _append(request: Any, call: Call, topic: Topic | None, unknown: ErrorCode, data: Any) -> Fields:
    if request.acks not in (-1, 0, 1):
        raise Refusal(ErrorCode.invalid_required_acks, f"acks={request.acks} is not -1, 0 or 1")
    if topic is None:
        raise Refusal(unknown, "This server does not host this topic.")
    if not 0 <= data.index < len(topic.partitions):
        raise Refusal(ErrorCode.unknown_topic_or_partition, "This server does not host this topic-partition.")
    now = now_ms()
    header = check_produced(data.records, call.version, topic.settings, now)
    if header.transactional:
        call.broker.transactions.check_write(
            request.transactional_id,
            header.producer_id,
            header.producer_epoch,
            (topic.name, data.index),
            now,
            may_add=call.version >= ADDS_TO_TRANSACTION,
        )
    appended = await topic.partitions[data.index].append(header, data.records[: header.size], now)
    return {
        "index": data.index,
        "error_code": OK,
        "base_offset": appended.base_offset,
        "log_append_time": appended.append_time,
        "log_start_offset": appended.log_start,
    }


def _refused(index: int, refusal: Refusal) -> Fields:
    return {
        "index": index,
        "error_code": refusal.code,
        "base_offset": -1,
        "log_append_time": -1,
        "log_start_offset": -1,
        "error_message": refusal.message,
    }
