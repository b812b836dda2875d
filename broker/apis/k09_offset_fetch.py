"""OffsetFetch: v1-v10.

v2   without topics, everything that the group has committed
v7   a reader may ask to be told of open transactions (KIP-447)
v8   several groups at once (KIP-709)
v10  topic ids instead of names
"""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.codec import Fields
from broker.groups import Group, all_committed, is_unstable

VERSIONS = range(1, 11)

SEVERAL_GROUPS = 8


async def handle(request: Any, call: Call) -> Fields:
    stable = getattr(request, "require_stable", False)
    if call.version < SEVERAL_GROUPS:
        return _group(request.group_id, request.topics, call, stable)
    return {"groups": [_group(each.group_id, each.topics, call, stable) for each in request.groups]}


def _group(group_id: str, topics: Any, call: Call, stable: bool) -> Fields:
    group = call.broker.groups.get(group_id)
    if topics is None:
        wanted: dict[Any, list[int]] = {}
        for name, partition in all_committed(group) if group else ():
            topic = call.broker.topics.get(name)
            wanted.setdefault((name, topic.id if topic else None), []).append(partition)
    else:
        wanted = {}
        for topic in topics:
            topic_id = getattr(topic, "topic_id", None)
            known_as = getattr(topic, "name", None)
            if known_as is None:
                known = call.broker.topics.get_by_id(topic_id)
                known_as = known.name if known else None
            wanted.setdefault((known_as, topic_id), []).extend(topic.partition_indexes)
    return {
        "group_id": group_id,
        "error_code": OK,
        "topics": [
            {
                "name": name or "",
                "topic_id": topic_id,
                "partitions": [_partition(group, name, partition, stable) for partition in partitions],
            }
            for (name, topic_id), partitions in wanted.items()
        ],
    }


def _partition(group: Group | None, name: str | None, partition: int, stable: bool) -> Fields:
    entry: dict[str, Any] = {
        "partition_index": partition,
        "committed_offset": -1,
        "committed_leader_epoch": -1,
        "metadata": "",
        "error_code": OK,
    }
    if name is None:
        return entry | {"error_code": ErrorCode.unknown_topic_id}
    if group is None:
        return entry
    if stable and is_unstable(group, (name, partition)):
        return entry | {"error_code": ErrorCode.unstable_offset_commit}
    committed = group.offsets.get((name, partition))
    if committed is None:
        return entry
    return entry | {
        "committed_offset": committed.offset,
        "committed_leader_epoch": committed.leader_epoch,
        "metadata": committed.metadata,
    }
