"""Settings as DescribeConfigs and CreateTopics show them: the value, and where it comes from."""

from __future__ import annotations

from typing import Any

from broker.settings import BROKER_SETTINGS, TOPIC_SETTINGS, BrokerSettings, Setting
from broker.topics import Topic

FROM_TOPIC, FROM_COMMAND_LINE, FROM_DEFAULT = 1, 4, 5


def describe_topic(topic: Topic, settings: BrokerSettings) -> list[dict[str, Any]]:
    return [_described(setting, topic.overrides, settings) for setting in TOPIC_SETTINGS.values()]


def describe_broker(settings: BrokerSettings) -> list[dict[str, Any]]:
    own = [_described(setting, {}, settings, name=setting.name) for setting in BROKER_SETTINGS.values()]
    defaults = {setting.synonym: setting for setting in TOPIC_SETTINGS.values() if setting.synonym}
    return own + [_described(setting, {}, settings, name=name) for name, setting in defaults.items()]


def _described(
    setting: Setting, overrides: dict[str, str], settings: BrokerSettings, name: str | None = None
) -> dict[str, Any]:
    given_as = name or setting.synonym
    synonyms = [{"name": given_as or setting.name, "value": setting.default, "source": FROM_DEFAULT}]
    if given_as in settings.given:
        synonyms.insert(0, {"name": given_as, "value": settings.given[given_as], "source": FROM_COMMAND_LINE})
    if setting.name in overrides:
        synonyms.insert(0, {"name": setting.name, "value": overrides[setting.name], "source": FROM_TOPIC})
    return {
        "name": name or setting.name,
        "value": synonyms[0]["value"],
        "read_only": name is not None,
        "config_source": synonyms[0]["source"],
        "is_sensitive": False,
        "synonyms": synonyms,
        "config_type": int(setting.kind),
        "documentation": None if setting.effective else "Accepted and without effect on this broker.",
    }
