"""ListOffsets: v1-v11.

v1   one offset for a time (KIP-79)               -1 latest, -2 earliest
v2   isolation levels (KIP-98)
v4   leader epochs (KIP-320)
v7   -3 max timestamp (KIP-734)
v8   -4 earliest local (KIP-405)
v9   -5 latest tiered (KIP-1005)
v10  a timeout for remote reads (KIP-1075), of which there are none here
v11  -6 earliest pending upload (KIP-1023)

The order of refusals is Kafka's: duplicates, then numbers that the version does not have, then the rest.
"""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call, check_leader_epoch
from broker.codec import Fields
from broker.log.partition_log import Found
from broker.refusal import Refusal

VERSIONS = range(1, 12)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
SINCE = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
CONSUMER = -1

NOT_FOUND = Found(-1, -1, -1)


async def handle(request: Any, call: Call) -> Fields:
    asked: dict[str, dict[int, Any]] = {}
    twice: set[tuple[str, int]] = set()
    for topic in request.topics:
        partitions = asked.setdefault(topic.name, {})
        for entry in topic.partitions:
            if entry.partition_index in partitions:
                twice.add((topic.name, entry.partition_index))
            partitions[entry.partition_index] = entry
    answered = []
    for name, partitions in asked.items():
        entries = []
        for index, entry in partitions.items():
            try:
                if twice and (name, index) in twice:
                    raise Refusal(ErrorCode.invalid_request, "the partition is listed twice")
                entries.append(await _answer(request, call, name, entry))
            except Refusal as refusal:
                entries.append(_entry(index, refusal.code, NOT_FOUND))
        if entries:
            answered.append({"name": name, "partitions": entries})
    return {"topics": answered}


async def _answer(request: Any, call: Call, name: str, entry: Any) -> Fields:
    if entry.timestamp < 0 and call.version < SINCE.get(entry.timestamp, 2**15):
        raise Refusal(ErrorCode.unsupported_version, f"{entry.timestamp} is not a question of v{call.version}")
    isolation = getattr(request, "isolation_level", READ_UNCOMMITTED)
    if isolation not in (READ_UNCOMMITTED, READ_COMMITTED) and request.replica_id == CONSUMER:
        raise Refusal(ErrorCode.unknown_server_error, f"isolation level {isolation} is not 0 or 1")
    log = call.broker.topics.log(name, entry.partition_index)
    if log is None:
        raise Refusal(ErrorCode.unknown_topic_or_partition, "no such partition")
    ends = await log.ends()
    check_leader_epoch(getattr(entry, "current_leader_epoch", -1), ends.leader_epoch)
    # Brokers and debugging tools see everything, whatever they say of isolation.
    visible = ends.stable if isolation == READ_COMMITTED and request.replica_id == CONSUMER else ends.end
    found: Found | None
    match entry.timestamp:
        case -1:
            found = Found(visible, -1, ends.leader_epoch)
        case -2 | -4:
            found = Found(ends.start, -1, ends.start_epoch)
        case -3:
            found = await log.find_newest()
        case -5 | -6:
            found = None  # nothing is tiered here
        case timestamp:
            found = await log.find_by_time(timestamp)
    if found is None or (entry.timestamp not in (LATEST, EARLIEST, EARLIEST_LOCAL) and found.offset >= visible):
        found = NOT_FOUND
    return _entry(entry.partition_index, OK, found)


def _entry(index: int, code: ErrorCode, found: Found) -> Fields:
    return {
        "partition_index": index,
        "error_code": code,
        "timestamp": found.timestamp,
        "offset": found.offset,
        "leader_epoch": found.leader_epoch,
    }
