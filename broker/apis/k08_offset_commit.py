"""OffsetCommit: v2-v10. From v10 on topics are named by their ids (KIP-848's follow-up)."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.broker import now_ms
from broker.codec import Fields
from broker.groups import Committed
from broker.refusal import Refusal

VERSIONS = range(2, 11)

TOPIC_IDS = 10


async def handle(request: Any, call: Call) -> Fields:
    try:
        group = call.broker.groups.check_commit(
            request.group_id,
            request.member_id,
            getattr(request, "group_instance_id", None),
            request.generation_id_or_member_epoch,
        )
    except Refusal as refusal:
        code = refusal.code
        return committed_answer(request, call, lambda _name, _entry: code)

    def commit(name: str, entry: Any) -> ErrorCode:
        committed = committable(call, name, entry)
        if isinstance(committed, Committed):
            group.offsets[name, entry.partition_index] = committed
            return OK
        return committed

    return committed_answer(request, call, commit)


def committable(call: Call, name: str, entry: Any) -> Committed | ErrorCode:
    """One entry as the offset that it commits, or why it does not."""
    metadata = entry.committed_metadata or ""
    if call.broker.topics.log(name, entry.partition_index) is None:
        return ErrorCode.unknown_topic_or_partition
    if len(metadata.encode()) > call.broker.settings["offset.metadata.max.bytes"]:
        return ErrorCode.offset_metadata_too_large
    epoch = getattr(entry, "committed_leader_epoch", -1)
    return Committed(entry.committed_offset, epoch, metadata, now_ms())


def committed_answer(request: Any, call: Call, commit: Any) -> Fields:
    """Commit entry by entry, and say of each how that went. Shared with TxnOffsetCommit."""
    topics = []
    for topic in request.topics:
        topic_id = getattr(topic, "topic_id", None)
        name = getattr(topic, "name", None)
        if name is None:
            known = call.broker.topics.get_by_id(topic_id)
            name = known.name if known else None
        topics.append(
            {
                "name": name or "",
                "topic_id": topic_id,
                "partitions": [
                    {
                        "partition_index": entry.partition_index,
                        "error_code": ErrorCode.unknown_topic_id if name is None else commit(name, entry),
                    }
                    for entry in topic.partitions
                ],
            }
        )
    return {"topics": topics}
