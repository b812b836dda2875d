"""Profiles: named, versioned sets of rules that tell whether a broker is safe for a use.

Read from `profiles.toml`, where a rule is a scenario's id. A published version is frozen: what a broker's verdict
says changes by the broker's doing alone. Left to others: the verdict of a run (`reports.profiles`).
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class UnknownProfile(Exception):
    """A name that `profiles.toml` does not have. The text lists those that it has."""


@dataclass(frozen=True)
class Profile:
    """One version of a profile."""

    name: str
    version: int
    about: str
    rules: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def digest(self) -> str:
        """What a published version is held to: its rules, in any order."""
        return hashlib.sha256("\n".join(sorted(self.rules)).encode()).hexdigest()[:16]


@cache
def profiles() -> dict[str, tuple[Profile, ...]]:
    """Every profile by name, its versions oldest first."""
    data = tomllib.loads((Path(__file__).parent / "profiles.toml").read_text(encoding="utf-8"))
    return {
        name: tuple(
            Profile(name, int(version), entry["about"], tuple(rules))
            for version, rules in sorted(entry["versions"].items(), key=lambda version: int(version[0]))
        )
        for name, entry in data.items()
    }


def newest() -> list[Profile]:
    """The newest version of each profile: what a report gives verdicts on."""
    return [versions[-1] for versions in profiles().values()]


def choose(text: str) -> Profile:
    """The profile for NAME, at its newest version, or for NAME@VERSION."""
    name, _, version = text.partition("@")
    if name not in profiles():
        raise UnknownProfile(f"no profile {name!r}: there are {', '.join(profiles())}")
    matching = [each for each in profiles()[name] if not version or str(each.version) == version]
    if not matching:
        known = ", ".join(str(each.version) for each in profiles()[name])
        raise UnknownProfile(f"profile {name} has no version {version!r}: it has {known}")
    return matching[-1]
