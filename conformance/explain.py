"""One check in words: what was asked, where the requirement stands, what was accepted and what came.

Works on result lines, so that a live failure and a stored one read the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.answers import Accepted, Observation


def explain(line: Mapping[str, Any], oracle: Mapping[str, Any] | None = None) -> str:
    """The story of one check. `oracle` is Apache Kafka's line for the same check in the same run, if any."""
    elsewhere = oracle if oracle and oracle["backend"] != line["backend"] else None
    rows = [
        ("check", f"{line['check']} ({line['level']}, revision {line['revision']})"),
        ("about", line["title"]),
        ("backend", line["backend"]),
        ("verdict", f"{line['verdict']}{' (legal, not exactly Kafka)' if line['grade'] == 'legal' else ''}"),
        ("because", line["reason"]),
        ("asked", line["asked"]),
        *(("accepted", str(Accepted.from_json(each))) for each in line["accepted"]),
        ("observed", observed_text(line)),
        ("Kafka says", f"{observed_text(elsewhere)} ({elsewhere['backend']})" if elsewhere else ""),
        *(("source", source) for source in line["sources"]),
        ("impact", line["impact"]),
        ("reproduce", reproduce(line)),
    ]
    return "\n".join(f"{name + ':':<11} {printable(text)}" for name, text in rows if text)


def observed_text(line: Mapping[str, Any]) -> str:
    return "" if line["observed"] is None else str(Observation.from_json(line["observed"]))


def reproduce(line: Mapping[str, Any]) -> str:
    """The command that asks the same question again."""
    node = line["test"].split("[")[0]
    backend = str(line["backend"])
    if backend.startswith("external("):
        return f"pytest '{node}' --bootstrap {backend.removeprefix('external(').removesuffix(')')}"
    return f"pytest '{node}' --backend {backend}"


def printable(text: str) -> str:
    """Text that a broker may have had a hand in, without anything that moves a terminal's cursor."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
