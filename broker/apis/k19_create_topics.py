"""CreateTopics: v2-v7.

v4   -1 partitions or replicas mean the broker's default (KIP-464)
v5   the answer tells the topic's settings (KIP-525)
v7   and its id (KIP-516)
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.codec import Fields
from broker.refusal import Refusal
from broker.settings import BrokerSettings
from broker.settings_view import describe_topic
from broker.topics import Topic

VERSIONS = range(2, 8)


async def handle(request: Any, call: Call) -> Fields:
    times = Counter(entry.name for entry in request.topics)
    answers: list[Fields] = []
    for entry in {entry.name: entry for entry in request.topics}.values():
        try:
            if times[entry.name] > 1:
                raise Refusal(ErrorCode.invalid_request, "Duplicate topic name.")
            topic, partitions = _create(entry, call, validate_only=request.validate_only)
        except Refusal as refusal:
            answers.append(
                {
                    "name": entry.name,
                    "error_code": refusal.code,
                    "error_message": refusal.message,
                    "num_partitions": -1,
                    "replication_factor": -1,
                    "configs": None,
                }
            )
            continue
        answers.append(
            {
                "name": topic.name,
                "topic_id": topic.id,
                "error_code": OK,
                "error_message": None,
                "num_partitions": partitions,
                "replication_factor": 1,
                "configs": _configs(topic, call.broker.settings),
            }
        )
    return {"topics": answers}


def _create(entry: Any, call: Call, *, validate_only: bool) -> tuple[Topic, int]:
    overrides: dict[str, str] = {}
    for config in entry.configs:
        if config.value is None:
            raise Refusal(ErrorCode.invalid_config, f"Null value not supported for topic configs: {config.name}")
        overrides[config.name] = config.value
    partitions = entry.num_partitions
    if entry.assignments:
        partitions = _assigned(entry, call)
    elif partitions == -1:
        partitions = call.broker.settings["num.partitions"]
    if not entry.assignments and entry.replication_factor not in (-1, 1):
        code = ErrorCode.invalid_replication_factor
        raise Refusal(code, f"There is one broker; a replication factor of {entry.replication_factor} is not possible.")
    return call.broker.topics.create(entry.name, partitions, overrides, validate_only=validate_only), partitions


def _assigned(entry: Any, call: Call) -> int:
    """The number of partitions of a client's own assignment, which can only name this broker."""
    if entry.num_partitions != -1 or entry.replication_factor != -1:
        raise Refusal(ErrorCode.invalid_request, "An assignment is given, so partitions and replicas must be -1.")
    indexes = sorted(each.partition_index for each in entry.assignments)
    nodes = {tuple(each.broker_ids) for each in entry.assignments}
    if indexes != list(range(len(indexes))) or nodes != {(call.broker.node_id,)}:
        raise Refusal(
            ErrorCode.invalid_replica_assignment,
            f"Partitions must be numbered from 0, and each be on broker {call.broker.node_id} alone.",
        )
    return len(indexes)


def _configs(topic: Topic, settings: BrokerSettings) -> list[Fields]:
    return [
        {key: each[key] for key in ("name", "value", "read_only", "config_source", "is_sensitive")}
        for each in describe_topic(topic, settings)
    ]
