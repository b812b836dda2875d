"""DescribeConfigs: v1-v4, of topics and of this broker."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.codec import Fields
from broker.refusal import Refusal
from broker.settings_view import describe_broker, describe_topic

VERSIONS = range(1, 5)

TOPIC, BROKER = 2, 4


async def handle(request: Any, call: Call) -> Fields:
    return {"results": [_result(resource, request, call) for resource in request.resources]}


def _result(resource: Any, request: Any, call: Call) -> Fields:
    result: dict[str, Any] = {
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
        "error_code": OK,
        "error_message": None,
    }
    try:
        described = _describe(resource, call)
    except Refusal as refusal:
        return result | {"error_code": refusal.code, "error_message": refusal.message}
    wanted = resource.configuration_keys
    for each in described:
        if not request.include_synonyms:
            each["synonyms"] = ()
        if not getattr(request, "include_documentation", False):
            each["documentation"] = None
    result["configs"] = [each for each in described if wanted is None or each["name"] in wanted]
    return result


def _describe(resource: Any, call: Call) -> list[dict[str, Any]]:
    broker = call.broker
    if resource.resource_type == TOPIC:
        topic = broker.topics.get(resource.resource_name)
        if topic is None:
            raise Refusal(ErrorCode.unknown_topic_or_partition, "This server does not host this topic.")
        return describe_topic(topic, broker.settings)
    if resource.resource_type == BROKER:
        if resource.resource_name not in ("", str(broker.node_id)):
            raise Refusal(ErrorCode.invalid_request, f"Unexpected broker id, expected {broker.node_id}.")
        return describe_broker(broker.settings) if resource.resource_name else []
    raise Refusal(ErrorCode.invalid_request, f"Resource type {resource.resource_type} is not supported.")
