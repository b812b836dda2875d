"""The recipes are what the vendors document, as recorded in `documented.toml` with where it was read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from backends import containers
from backends.containers import Container
from backends.presets import prepare
from backends.recipes import RECIPES, Recipe
from backends.registry import Backend, UnknownBackend, choose, embedded_defaults, families

DOCUMENTED: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "documented.toml").read_text())

PORT = 54321


def recipe_of(name: str) -> Recipe:
    backend = choose(name)
    return RECIPES[backend.preset](backend.image, PORT)


every_vendor = pytest.mark.parametrize("name", DOCUMENTED)


def test_every_container_but_our_own_is_documented() -> None:
    named = {family.name for family in families().values() if family.image}
    assert named == {*DOCUMENTED, "in-house-container"}
    assert {family.preset for family in families().values() if family.image} == set(RECIPES)


def test_no_container_is_in_the_default_matrix() -> None:
    assert [backend.column for backend in embedded_defaults() if backend.image] == []


@every_vendor
def test_the_source_is_named(name: str) -> None:
    assert DOCUMENTED[name]["source"].startswith("https://")
    assert DOCUMENTED[name]["says"]


@every_vendor
def test_the_image_is_the_documented_one_at_a_version(name: str) -> None:
    versions = families()[name].versions
    for wanted in DOCUMENTED[name]["versions"]:
        assert any(version.startswith(wanted) for version in versions), wanted
    assert recipe_of(name).broker.image == f"{DOCUMENTED[name]['image']}:{versions[-1]}"


@every_vendor
def test_the_command_is_the_documented_one(name: str) -> None:
    command = f" {' '.join(recipe_of(name).broker.command)} "
    for part in DOCUMENTED[name].get("command", ()):
        assert f" {part.format(port=PORT)} " in command
    assert command.split() == [] or "command" in DOCUMENTED[name]


@every_vendor
def test_the_environment_is_the_documented_one(name: str) -> None:
    environment = recipe_of(name).broker.environment
    given = {f"{variable}={value}" for variable, value in environment.items()} | set(environment)
    assert {each.format(port=PORT) for each in DOCUMENTED[name].get("environment", ())} <= given


@every_vendor
def test_the_published_port_is_the_documented_one_and_the_host_is_loopback(name: str) -> None:
    broker = recipe_of(name).broker
    assert str(broker.port) == DOCUMENTED[name]["port"].format(port=PORT)
    advertised = " ".join([*broker.command, *broker.environment.values()])
    assert "127.0.0.1" in advertised
    assert str(PORT) in advertised


@every_vendor
def test_what_runs_beside_it_is_documented_and_published_to_nobody(name: str) -> None:
    beside = recipe_of(name).before
    assert [part.image for part in beside] == DOCUMENTED[name].get("beside", [])
    assert all(part.port is None and part.alias for part in beside)


@every_vendor
def test_files_say_what_is_documented(name: str) -> None:
    files = recipe_of(name).broker.files
    documented = DOCUMENTED[name].get("files", {})
    assert set(files) == set(documented)
    for path, lines in documented.items():
        assert all(re.search(f"^{re.escape(line)}", files[path], re.MULTILINE) for line in lines)


@every_vendor
def test_keys_come_from_the_environment_and_are_in_no_recipe(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    documented = DOCUMENTED[name].get("secrets", [])
    for variable in documented:
        monkeypatch.setenv(variable, "a-secret-of-the-user")
    recipe = recipe_of(name)
    assert sorted(recipe.secrets) == sorted(documented)
    assert "a-secret-of-the-user" not in repr(recipe)


@every_vendor
def test_readiness_is_a_record_that_comes_back(name: str) -> None:
    assert DOCUMENTED[name]["ready"] == "metadata, one record written and read back"
    assert isinstance(prepare(choose(name)), Container)
    assert containers.await_ready.__module__ == "backends.running"


# -- images of the user's own


def test_an_image_of_the_users_own_takes_the_place_of_the_presets() -> None:
    chosen = choose("redpanda=registry.local:5000/me/redpanda:dev")
    assert (chosen.image, chosen.version) == ("registry.local:5000/me/redpanda:dev", None)
    assert chosen.column == "redpanda=registry.local:5000/me/redpanda:dev"
    assert choose(chosen.column) == chosen


def test_a_version_beside_an_image_says_which_kafka_is_in_it() -> None:
    chosen = choose("apache-kafka-container@3.9.2=mine")
    assert (chosen.image, chosen.column) == ("mine", "apache-kafka-container@3.9.2=mine")
    assert prepare(chosen).kafka_release == (3, 9)


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("cp-kafka@7.6.0", (3, 6)),
        ("cp-kafka@8.1.0", (4, 1)),
        ("apache-kafka-container@4.3.1", (4, 3)),
        ("apache-kafka-container=mine", None),
        ("redpanda", None),
    ],
)
def test_what_is_known_of_the_kafka_inside(name: str, release: tuple[int, ...] | None) -> None:
    assert prepare(choose(name)).kafka_release == release


@pytest.mark.parametrize(("name", "oracle"), [("apache-kafka-container", True), ("apache-kafka-container=m", False)])
def test_only_apaches_own_image_is_the_oracle(name: str, oracle: bool) -> None:
    assert prepare(choose(name)).oracle is oracle


@pytest.mark.parametrize("name", ["librdkafka-mock=image", "apache-kafka=image", "redpanda="])
def test_an_image_is_for_containers_alone(name: str) -> None:
    with pytest.raises(UnknownBackend, match="NAME=IMAGE is for the containers, apache-kafka-container, "):
        choose(name)


def test_every_family_of_containers_knows_how_to_be_run() -> None:
    for family in families().values():
        if family.image:
            backend: Backend = family.at(None)
            assert backend.image.startswith(family.image)
