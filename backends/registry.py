"""Which brokers there are, read from `backends.toml`, and which one a name on the command line means."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CAPABILITIES = frozenset(
    {
        "timestamps",
        "batch",
        "retention",
        "delete-records",
        "logappendtime",
        "compaction",
        "transactions",
        "idempotence",
        "groups",
        "restart",
        "tiered",
        "legacy",
        "clock",
        "pause",
        "network-cut",
        "clock-step",
        "disk-full",
    }
)
"""What a scenario may need beyond a broker that accepts records and answers ListOffsets."""

LEVERS = frozenset({"restart", "pause", "network-cut", "clock-step", "disk-full"})
"""Capabilities that are what the suite can do to the broker: only for one that it started."""


class UnknownBackend(Exception):
    """A name that `backends.toml` does not have. The text lists those that it has."""


@dataclass(frozen=True)
class Backend:
    """One column of the matrix: a broker at a version."""

    name: str
    preset: str
    version: str | None
    capabilities: frozenset[str]
    issues: str
    image: str = ""
    """The container image; empty for a broker that is no container."""
    own_image: bool = False
    """Whether the image is one that the command line named, instead of the preset's."""

    @property
    def column(self) -> str:
        """The name in the matrix, which `choose` understands."""
        name = f"{self.name}@{self.version}" if self.version else self.name
        return f"{name}={self.image}" if self.own_image else name


@dataclass(frozen=True)
class Family:
    """One paragraph of `backends.toml`."""

    name: str
    preset: str
    versions: tuple[str, ...]
    embedded: tuple[str, ...]
    lacks: frozenset[str]
    issues: str
    image: str = ""

    def at(self, version: str | None, *, image: str = "") -> Backend:
        """At a version, by default the newest; `image` runs in the place of the preset's own image."""
        chosen = version or (self.versions[-1] if self.versions and not image else None)
        runs = image or (f"{self.image}:{chosen}" if self.image and chosen else self.image)
        return Backend(self.name, self.preset, chosen, CAPABILITIES - self.lacks, self.issues, runs, bool(image))


@cache
def families() -> dict[str, Family]:
    data = tomllib.loads((Path(__file__).parent / "backends.toml").read_text())
    return {
        name: Family(
            name,
            entry["preset"],
            tuple(entry.get("versions", ())),
            tuple(entry.get("embedded", ())),
            frozenset(entry.get("lacks", ())),
            entry.get("issues", ""),
            entry.get("image", ""),
        )
        for name, entry in data.items()
    }


def choose(text: str) -> Backend:
    """The backend for NAME, NAME@VERSION, NAME=IMAGE or NAME@VERSION=IMAGE.

    A version that is not listed is tried all the same. With an image, the version says only which release of
    Apache Kafka is in it, where that is what is in it.
    """
    name, equals, image = text.partition("=")
    name, _, version = name.partition("@")
    if name not in families():
        raise UnknownBackend(f"no backend {name!r}: backends.toml has {', '.join(families())}")
    family = families()[name]
    if version and not family.versions:
        raise UnknownBackend(f"{name} has no versions to choose from: use plain {name}")
    if equals and not (family.image and image):
        containers = ", ".join(each.name for each in families().values() if each.image)
        raise UnknownBackend(f"{text!r}: NAME=IMAGE is for the containers, {containers}")
    return family.at(version or None, image=image)


def embedded_defaults() -> list[Backend]:
    """What `make matrix` runs: every version marked as embedded, Apache Kafka's newest first."""
    return [family.at(version or None) for family in families().values() for version in family.embedded]


def external(bootstrap: str) -> Backend:
    """A broker that somebody else started. It is assumed to have everything but a way to hurt it."""
    return Backend(f"external({bootstrap})", "external", None, CAPABILITIES - LEVERS - {"tiered"}, "")
