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
    }
)
"""What a scenario may need beyond a broker that accepts records and answers ListOffsets."""


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

    @property
    def column(self) -> str:
        return f"{self.name}@{self.version}" if self.version else self.name


@dataclass(frozen=True)
class Family:
    """One paragraph of `backends.toml`."""

    name: str
    preset: str
    versions: tuple[str, ...]
    embedded: tuple[str, ...]
    lacks: frozenset[str]
    issues: str

    def at(self, version: str | None) -> Backend:
        chosen = version or (self.versions[-1] if self.versions else None)
        return Backend(self.name, self.preset, chosen, CAPABILITIES - self.lacks, self.issues)


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
        )
        for name, entry in data.items()
    }


def choose(text: str) -> Backend:
    """The backend for NAME or NAME@VERSION. A version that is not listed is tried all the same."""
    name, _, version = text.partition("@")
    if name not in families():
        raise UnknownBackend(f"no backend {name!r}: backends.toml has {', '.join(families())}")
    if version and not families()[name].versions:
        raise UnknownBackend(f"{name} has no versions to choose from: use plain {name}")
    return families()[name].at(version or None)


def embedded_defaults() -> list[Backend]:
    """What `make matrix` runs: every version marked as embedded, Apache Kafka's newest first."""
    return [family.at(version or None) for family in families().values() for version in family.embedded]


def external(bootstrap: str) -> Backend:
    """A broker that somebody else started. It is assumed to have everything but a way to restart it."""
    return Backend(f"external({bootstrap})", "external", None, CAPABILITIES - {"restart", "tiered"}, "")
