"""The same questions through confluent-kafka, so that a difference can be pinned on the broker or on a client.

It can ask for earliest, latest, max-timestamp and times. The other specs, versions and epochs are out of its
reach, which is why the suite has a client of its own.
"""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import OFFSET_STORED, Consumer, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import OffsetSpec as ConfluentSpec  # type: ignore[attr-defined]

from conformance.answers import Observation, Silence
from conformance.cluster import READ_UNCOMMITTED
from conformance.security import PLAINTEXT, Security
from conformance.specs import EARLIEST, LATEST, MAX_TIMESTAMP, OffsetSpec
from conformance.waiting import DeadlinePassed

ANSWER_SECONDS = 10.0

GROUP_SECONDS = 20.0
"""A broker as it is installed waits three seconds for company before a group begins."""

INVALID_OFFSET = -1001
"""What librdkafka leaves in a result when the leader could not be reached: no exception, and no answer either."""


class SecondClient:
    """librdkafka's admin client for one broker."""

    def __init__(self, bootstrap: str, security: Security = PLAINTEXT) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **security.properties})

    def list_offsets(
        self, topic: str, partition: int, spec: OffsetSpec, *, isolation: int = READ_UNCOMMITTED
    ) -> Observation:
        """Offset and timestamp, or the error code that the client reports."""
        level = IsolationLevel.READ_COMMITTED if isolation else IsolationLevel.READ_UNCOMMITTED
        futures = self._admin.list_offsets(
            {TopicPartition(topic, partition): _confluent_spec(spec)},
            isolation_level=level,
            request_timeout=ANSWER_SECONDS,
        )
        try:
            (future,) = futures.values()
            result = future.result(timeout=ANSWER_SECONDS + 5)
        except (KafkaException, TimeoutError) as error:
            code = error.args[0].code() if isinstance(error, KafkaException) else None
            if code is None or code < 0:  # librdkafka's own errors: no broker said them
                return Observation(silence=Silence.TIMEOUT, detail=f"confluent-kafka: {error}")
            return Observation({"error": code})
        if result.offset == INVALID_OFFSET:
            return Observation(silence=Silence.TIMEOUT, detail="confluent-kafka: no answer from the leader")
        return Observation({"error": 0, "offset": result.offset, "timestamp": result.timestamp})


def read_in_group(
    bootstrap: str, security: Security, group: str, topic: str, count: int, *, subscribe: bool
) -> list[int]:
    """Offsets of `count` records as a consumer of a group reads them that has no commit and makes none.

    Where there is nothing committed it starts at the earliest. With `subscribe` it joins the group, else it takes
    partition 0 by itself. Raises `DeadlinePassed` where they do not come: that is no answer, and not a wrong one.
    """
    properties = {"bootstrap.servers": bootstrap, "log_level": 0, **security.properties}
    policy = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**properties, **policy})
    offsets: list[int] = []
    deadline = time.monotonic() + GROUP_SECONDS
    try:
        if subscribe:
            consumer.subscribe([topic])
        else:
            consumer.assign([TopicPartition(topic, 0, OFFSET_STORED)])
        while len(offsets) < count:
            if time.monotonic() > deadline:
                raise DeadlinePassed(f"{count} records for group {group}: {len(offsets)} within {GROUP_SECONDS:g} s")
            message = consumer.poll(0.1)
            offset = message.offset() if message is not None and message.error() is None else None
            offsets += [] if offset is None else [offset]
    finally:
        consumer.close()
    return offsets


def _confluent_spec(spec: OffsetSpec) -> Any:
    named = {LATEST: ConfluentSpec.latest, EARLIEST: ConfluentSpec.earliest, MAX_TIMESTAMP: ConfluentSpec.max_timestamp}
    return named[spec]() if spec in named else ConfluentSpec.for_timestamp(spec.timestamp)  # type: ignore[no-untyped-call]
