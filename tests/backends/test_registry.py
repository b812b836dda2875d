"""Which brokers there are, and which one a name means."""

import re
from importlib import resources

import pytest

from backends import registry
from backends.presets import prepare
from backends.registry import CAPABILITIES, LEVERS, UnknownBackend, choose, embedded_defaults, external, families

TABLE = resources.files("backends").joinpath("backends.toml").read_text()


def test_a_plain_name_means_the_newest_version() -> None:
    chosen = choose("apache-kafka")
    assert (chosen.column, chosen.preset) == ("apache-kafka@4.3.1", "apache-kafka")


def test_a_version_may_be_one_that_is_not_listed() -> None:
    assert choose("apache-kafka@3.9.2").version == "3.9.2"
    assert choose("apache-kafka@2.8.0").column == "apache-kafka@2.8.0"


def test_a_broker_without_versions_is_its_name() -> None:
    assert choose("librdkafka-mock").column == "librdkafka-mock"
    with pytest.raises(UnknownBackend, match="use plain librdkafka-mock"):
        choose("librdkafka-mock@2.0")


@pytest.mark.parametrize("name", ["kafka", "", "@4.3.1", "Apache-Kafka"])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownBackend) as refusal:
        choose(name)
    for known in families():
        assert known in str(refusal.value)


def test_the_default_matrix_has_kafka_old_and_new_tiers_and_the_mock() -> None:
    wanted = {"apache-kafka@4.3.1", "apache-kafka@3.9.2", "apache-kafka@3.6.2", "apache-kafka-tiered@4.3.1"}
    columns = [backend.column for backend in embedded_defaults()]
    assert wanted | {"librdkafka-mock"} <= set(columns)
    assert columns[0] == "apache-kafka@4.3.1"
    assert len(columns) == len(set(columns))


def test_a_capability_is_had_unless_it_is_named_as_lacking() -> None:
    assert choose("apache-kafka").capabilities == CAPABILITIES - {"tiered", "network-cut", "disk-full"}
    assert choose("apache-kafka-tiered").capabilities == CAPABILITIES - {"network-cut", "disk-full"}
    assert choose("redpanda-tiered").capabilities == CAPABILITIES - {"legacy", "clock-step", "disk-full"}
    assert external("host:9092").capabilities == CAPABILITIES - LEVERS - {"tiered"}


@pytest.mark.parametrize("family", families().values(), ids=families().keys())
def test_a_paragraph_is_complete_and_names_nothing_unknown(family: registry.Family) -> None:
    assert family.lacks <= CAPABILITIES
    assert family.issues.startswith("https://") or family.preset.startswith("in-house")  # which is mended here
    assert set(family.embedded) <= set(family.versions or ("",))
    assert prepare(family.at(None)).backend.name == family.name


def test_a_broker_takes_at_most_eight_lines() -> None:
    paragraphs = re.split(r"^(?=\[)", TABLE, flags=re.MULTILINE)[1:]
    assert len(paragraphs) == len(families())
    for paragraph in paragraphs:
        assert len(paragraph.strip().splitlines()) <= 8, paragraph


def test_a_preset_that_no_module_runs_is_named() -> None:
    with pytest.raises(ValueError, match="preset 'abacus', which no module here runs"):
        prepare(registry.Backend("abacus", "abacus", None, CAPABILITIES, ""))
