"""IncrementalAlterConfigs: v0-v1 (KIP-339), of topics. The broker's own settings come from its command line."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.codec import Fields
from broker.refusal import Refusal
from broker.settings import Kind, log_settings, topic_setting

VERSIONS = range(2)

TOPIC = 2
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


async def handle(request: Any, call: Call) -> Fields:
    responses = []
    for resource in request.resources:
        entry = {"resource_type": resource.resource_type, "resource_name": resource.resource_name}
        try:
            _alter(resource, call, validate_only=request.validate_only)
            responses.append(entry | {"error_code": OK, "error_message": None})
        except Refusal as refusal:
            responses.append(entry | {"error_code": refusal.code, "error_message": refusal.message})
    return {"responses": responses}


def _alter(resource: Any, call: Call, *, validate_only: bool) -> None:
    if resource.resource_type != TOPIC:
        raise Refusal(ErrorCode.invalid_request, "Only topics can be altered; restart the broker with other settings.")
    topics = call.broker.topics
    topic = topics.get(resource.resource_name)
    if topic is None:
        raise Refusal(ErrorCode.unknown_topic_or_partition, "This server does not host this topic.")
    if max(Counter(change.name for change in resource.configs).values(), default=0) > 1:
        raise Refusal(ErrorCode.invalid_request, "A setting is given more than once.")
    overrides = dict(topic.overrides)
    for change in resource.configs:
        _apply(change, overrides, call)
    log_settings(call.broker.settings, overrides)
    if not validate_only:
        topics.configure(topic, overrides)


def _apply(change: Any, overrides: dict[str, str], call: Call) -> None:
    setting = topic_setting(change.name)
    if change.config_operation == DELETE:
        overrides.pop(change.name, None)
        return
    if change.value is None:
        raise Refusal(ErrorCode.invalid_request, f"Null value not supported for: {change.name}")
    if change.config_operation == SET:
        overrides[change.name] = change.value
        return
    if change.config_operation not in (APPEND, SUBTRACT) or setting.kind is not Kind.LIST:
        raise Refusal(ErrorCode.invalid_config, f"Operation {change.config_operation} cannot be done to {change.name}")
    now = setting.parse(overrides.get(change.name, call.broker.settings.topic_default(setting)))
    given = setting.parse(change.value)
    kept = [each for each in now if each not in given]
    overrides[change.name] = ",".join([*now, *(each for each in given if each not in now)]
                                      if change.config_operation == APPEND else kept)  # fmt: skip
