"""DeleteTopics: v1-v6. From v6 on a topic may be named by its id (KIP-516)."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.codec import Fields
from broker.refusal import Refusal
from broker.topics import Topic

VERSIONS = range(1, 7)


async def handle(request: Any, call: Call) -> Fields:
    if call.version >= 6:
        wanted = [(entry.name, entry.topic_id) for entry in request.topics]
    else:
        wanted = [(name, None) for name in request.topic_names]
    answers: list[Fields] = []
    for name, topic_id in wanted:
        try:
            topic = _find(call, name, topic_id)
            call.broker.topics.delete(topic)
            call.broker.groups.forget_topic(topic.name)
            answers.append({"name": topic.name, "topic_id": topic.id, "error_code": OK})
        except Refusal as refusal:
            answers.append(
                {
                    "name": name if name is not None or call.version >= 6 else "",
                    "topic_id": topic_id,
                    "error_code": refusal.code,
                    "error_message": refusal.message,
                }
            )
    return {"responses": answers}


def _find(call: Call, name: str | None, topic_id: Any) -> Topic:
    if name is not None and topic_id is not None:
        raise Refusal(ErrorCode.invalid_request, "You may not specify both topic name and topic id.")
    topic = call.broker.topics.get_by_id(topic_id) if name is None else call.broker.topics.get(name)
    if topic is None:
        code = ErrorCode.unknown_topic_id if name is None else ErrorCode.unknown_topic_or_partition
        raise Refusal(code, "This server does not host this topic.")
    return topic
