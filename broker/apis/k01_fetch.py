"""Fetch: v4-v18. Whole batches, up to the end of one segment for each partition.

v4   isolation levels and aborted transactions (KIP-98)
v7   fetch sessions (KIP-227): none is ever kept, which the answer says with session id 0
v9   leader epochs (KIP-320)
v12  divergence is told in the answer (KIP-595)
v13  topic ids instead of names (KIP-516)
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call, check_leader_epoch
from broker.codec import Fields
from broker.log.partition_log import PartitionLog
from broker.refusal import Refusal

VERSIONS = range(4, 19)

TOPIC_IDS = 13
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
NEW_SESSION, NO_SESSION = 0, -1


async def handle(request: Any, call: Call) -> Fields:
    if getattr(request, "session_epoch", NO_SESSION) not in (NEW_SESSION, NO_SESSION):
        return {"error_code": ErrorCode.fetch_session_id_not_found}
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.max_wait / 1000
    while True:
        reading = _Reading(request, call)
        responses = await reading.everything()
        left = deadline - loop.time()
        if reading.complete or reading.bytes >= request.min_bytes or left <= 0 or not reading.logs:
            return {"error_code": OK, "session_id": 0, "responses": responses}
        await _change_of(reading.logs, left)


async def _change_of(logs: list[PartitionLog], seconds: float) -> None:
    """Wait for the first change of any log, or for the time to pass."""
    loop = asyncio.get_running_loop()
    changed: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not changed.done():
            changed.set_result(None)

    stops = [log.watch(wake) for log in logs]
    timer = loop.call_later(seconds, wake)
    try:
        await changed
    finally:
        timer.cancel()
        for stop in stops:
            stop()


class _Reading:
    """One pass over everything that a request asks for."""

    def __init__(self, request: Any, call: Call) -> None:
        self._request = request
        self._call = call
        self._left = min(request.max_bytes, call.broker.settings["fetch.max.bytes"])
        self.bytes = 0
        self.complete = False
        """Whether there is something to tell now, however little was read."""
        self.logs: list[PartitionLog] = []

    async def everything(self) -> list[Fields]:
        return [
            {
                "topic": getattr(topic, "topic", ""),
                "topic_id": getattr(topic, "topic_id", None),
                "partitions": [await self._partition(topic, wanted) for wanted in topic.partitions],
            }
            for topic in self._request.topics
        ]

    async def _partition(self, topic: Any, wanted: Any) -> Fields:
        try:
            log = self._log(topic, wanted.partition)
            ends = await log.ends()
            check_leader_epoch(getattr(wanted, "current_leader_epoch", -1), ends.leader_epoch)
            if self._request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
                raise Refusal(ErrorCode.unknown_server_error, "no such isolation level")
            diverging = await _divergence(log, wanted)
            if diverging:
                self.complete = True
                return _positions(wanted.partition, ends.end, ends.stable, ends.start) | {"diverging_epoch": diverging}
            committed = self._request.isolation_level == READ_COMMITTED
            piece = await log.read(
                wanted.fetch_offset,
                min(wanted.partition_max_bytes, self._left),
                committed=committed,
                at_least_one=self.bytes == 0,
            )
        except Refusal as refusal:
            self.complete = True
            return _positions(wanted.partition, -1, -1, -1) | {"error_code": refusal.code}
        self.logs.append(log)
        self.bytes += len(piece.data)
        self._left -= len(piece.data)
        aborted = [{"producer_id": each.producer_id, "first_offset": each.first_offset} for each in piece.aborted]
        return _positions(wanted.partition, piece.ends.end, piece.ends.stable, piece.ends.start) | {
            "aborted_transactions": aborted if committed else None,
            "records": piece.data,
        }

    def _log(self, topic: Any, partition: int) -> PartitionLog:
        topics = self._call.broker.topics
        if self._call.version < TOPIC_IDS:
            log = topics.log(topic.topic, partition)
        else:
            topic_id: uuid.UUID | None = topic.topic_id
            known = topics.get_by_id(topic_id)
            if known is None:
                raise Refusal(ErrorCode.unknown_topic_id, "no topic has this id")
            log = topics.log(known.name, partition)
        if log is None:
            raise Refusal(ErrorCode.unknown_topic_or_partition, "no such partition")
        return log


async def _divergence(log: PartitionLog, wanted: Any) -> Fields | None:
    """Where the client's history parts from the log's, if it does (KIP-595)."""
    last_epoch = getattr(wanted, "last_fetched_epoch", -1)
    if last_epoch == -1:
        return None
    epoch, end = await log.end_of_epoch(last_epoch)
    if epoch == -1:
        raise Refusal(ErrorCode.offset_out_of_range, f"epoch {last_epoch} is not one of this log")
    return {"epoch": epoch, "end_offset": end} if epoch < last_epoch or end < wanted.fetch_offset else None


def _positions(partition: int, high_watermark: int, stable: int, start: int) -> dict[str, Any]:
    return {
        "partition_index": partition,
        "error_code": OK,
        "high_watermark": high_watermark,
        "last_stable_offset": stable,
        "log_start_offset": start,
        "aborted_transactions": None,
        "records": b"",
    }
