"""Metadata: v0-v13. There is one broker, which leads everything.

v4   a client may forbid that asking creates a topic
v7   leader epochs (KIP-320)
v8   what the client is allowed to do (KIP-430)
v10  topic ids (KIP-516)
"""

from __future__ import annotations

import uuid
from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import ALL_CLUSTER_OPERATIONS, ALL_TOPIC_OPERATIONS, OK, Call
from broker.codec import Fields
from broker.refusal import Refusal
from broker.topics import Topic

VERSIONS = range(14)


async def handle(request: Any, call: Call) -> Fields:
    broker = call.broker
    answer: dict[str, Any] = {
        "brokers": [{"node_id": broker.node_id, "host": broker.host, "port": broker.port, "rack": None}],
        "cluster_id": broker.cluster_id,
        "controller_id": broker.node_id,
        "topics": [await _described(topic, request, call) for topic in _wanted(request, call)],
    }
    if getattr(request, "include_cluster_authorized_operations", False):
        answer["cluster_authorized_operations"] = ALL_CLUSTER_OPERATIONS
    return answer


def _wanted(request: Any, call: Call) -> list[Topic | Fields]:
    """The topics asked about; for those that are not there, what to say of them."""
    topics = call.broker.topics
    if request.topics is None or (call.version == 0 and not request.topics):
        return [*topics.all()]
    wanted: dict[object, Topic | Fields] = {}
    for entry in request.topics:
        topic_id: uuid.UUID | None = getattr(entry, "topic_id", None)
        if entry.name is None:
            wanted[topic_id] = topics.get_by_id(topic_id) or _missing(ErrorCode.unknown_topic_id, None, topic_id)
        elif entry.name not in wanted:
            wanted[entry.name] = topics.get(entry.name) or _created(entry.name, request, call)
    return list(wanted.values())


def _created(name: str, request: Any, call: Call) -> Topic | Fields:
    settings = call.broker.settings
    try:
        if getattr(request, "allow_auto_topic_creation", True) and settings["auto.create.topics.enable"]:
            return call.broker.topics.create(name, settings["num.partitions"], {})
    except Refusal as refusal:
        return _missing(refusal.code, name, None)
    return _missing(ErrorCode.unknown_topic_or_partition, name, None)


def _missing(code: ErrorCode, name: str | None, topic_id: uuid.UUID | None) -> Fields:
    return {"error_code": code, "name": name, "topic_id": topic_id}


async def _described(topic: Topic | Fields, request: Any, call: Call) -> Fields:
    if not isinstance(topic, Topic):
        return topic
    node = call.broker.node_id
    described: dict[str, Any] = {
        "error_code": OK,
        "name": topic.name,
        "topic_id": topic.id,
        "partitions": [
            {
                "error_code": OK,
                "partition_index": index,
                "leader_id": node,
                "leader_epoch": (await log.ends()).leader_epoch,
                "replica_nodes": (node,),
                "isr_nodes": (node,),
            }
            for index, log in enumerate(topic.partitions)
        ],
    }
    if getattr(request, "include_topic_authorized_operations", False):
        described["topic_authorized_operations"] = ALL_TOPIC_OPERATIONS
    return described
