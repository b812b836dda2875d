"""The result file: a header, one line per check as it happens, a footer.

Each line is valid against `result.schema.json`, written in one piece and flushed, so that what was learnt
before a `kill -9` is on disk. A file without a footer tells by that alone that its run was cut off.
"""

from __future__ import annotations

import dataclasses
import json
import platform
import re
import secrets
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from conformance.answers import Accepted, Judgement, Observation
from conformance.catalogue import Scenario
from conformance.wire import Exchange

SCHEMA_VERSION = 1

EVIDENCE_EXCHANGES = 8
"""A check is one question; the exchanges before it that built its state fit in eight lines or repeat."""

EVIDENCE_CHARACTERS = 800
"""Enough for a ListOffsets answer with every field, and little enough for a thousand checks in one file."""

FILE_NAME_CHARACTERS = 100
"""Of a backend's name: with run and worker beside it, a file name stays below the 255 bytes that disks allow."""

SENTENCE_CHARACTERS = 2000
"""A reason quotes accepted and observed answers; what a broker sent must not blow up the line."""


@dataclass(frozen=True)
class RunInfo:
    """What ties the files of one run together."""

    run_id: str
    worker: str
    seed: int


@dataclass(frozen=True)
class Check:
    """One question, its answer and the verdict."""

    scenario: Scenario
    name: str
    asked: str
    accepted: tuple[Accepted, ...]
    observed: Observation | None
    judgement: Judgement
    test: str
    started: str
    duration_ms: float
    exchanges: tuple[Exchange, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.scenario.id}:{self.name}"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class ResultFile:
    """Writes one backend's lines of one process. Close it when done, with or without a footer."""

    def __init__(self, directory: Path, run: RunInfo, backend: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        safe = (letter if letter.isascii() and (letter.isalnum() or letter in "@.-") else "_" for letter in backend)
        name = "".join(safe)[:FILE_NAME_CHARACTERS]
        worker = "" if run.worker == "main" else f".{run.worker}"
        self.path = directory / f"{run.run_id}.{name}{worker}.ndjson"
        self._run = run
        self._backend = backend
        self._counts: Counter[str] = Counter()
        self._stream = self.path.open("a", encoding="utf-8")

    def header(self, *, version: str | None, build: str, oracle: bool) -> None:
        self._write(
            {
                "kind": "header",
                "schema_version": SCHEMA_VERSION,
                "started": now(),
                "suite_revision": suite_revision(),
                "host": {"system": platform.platform(), "python": platform.python_version()},
                "backend_version": version,
                "build": build,
                "oracle": oracle,
                "clients": client_versions(),
                "seed": self._run.seed,
            }
        )

    def check(self, check: Check) -> None:
        self._counts[check.judgement.verdict] += 1
        self._write(check_line(check))

    def not_run(self, reason: str) -> None:
        self._write({"kind": "not-run", "reason": bounded(reason, SENTENCE_CHARACTERS)})

    def footer(self) -> None:
        """Only for a run that asked everything it meant to ask."""
        total = sum(self._counts.values())
        self._write({"kind": "footer", "ended": now(), "checks": total, "counts": dict(self._counts)})

    def close(self) -> None:
        self._stream.close()

    def _write(self, line: dict[str, Any]) -> None:
        line |= {"run_id": self._run.run_id, "worker": self._run.worker, "backend": self._backend}
        _validator(line["kind"]).validate(line)
        self._stream.write(json.dumps(line, ensure_ascii=True, allow_nan=False) + "\n")
        self._stream.flush()


def check_line(check: Check) -> dict[str, Any]:
    """A check as its result line, but for what only the file knows: run, worker and backend."""
    entry = check.scenario.entry
    return {
        "kind": "check",
        "scenario": entry.id,
        "check": check.id,
        "revision": check.scenario.revision,
        "family": entry.family,
        "level": str(entry.level),
        "title": entry.title,
        "verdict": str(check.judgement.verdict),
        "grade": None if check.judgement.grade is None else str(check.judgement.grade),
        "reason": bounded(check.judgement.reason, SENTENCE_CHARACTERS),
        "asked": bounded(check.asked, SENTENCE_CHARACTERS),
        "accepted": [each.as_json() for each in check.accepted],
        "observed": None if check.observed is None else _observed(check.observed),
        "sources": list(check.scenario.sources),
        "impact": check.scenario.impact,
        "test": check.test,
        "started": check.started,
        "duration_ms": round(check.duration_ms, 3),
        "attempt": 1,
        "evidence": [evidence(each) for each in check.exchanges[-EVIDENCE_EXCHANGES:]],
    }


def _observed(observed: Observation) -> dict[str, object]:
    return dataclasses.replace(observed, detail=bounded(observed.detail, SENTENCE_CHARACTERS)).as_json()


def read_checks(paths: Sequence[Path]) -> Iterator[Mapping[str, Any]]:
    """The check lines of result files, leaving out whatever is not a complete one.

    For a quick look at single cells; accounting for every line is the report's work.
    """
    for path in paths:
        with path.open(encoding="utf-8", errors="replace") as stream:
            for text in stream:
                try:
                    line = json.loads(text)
                except json.JSONDecodeError:
                    continue
                if isinstance(line, dict) and line.get("kind") == "check":
                    yield line


def is_valid(line: object) -> bool:
    """Whether a line that was read is one that could have been written here."""
    kind = line.get("kind") if isinstance(line, dict) else None
    return kind in ("header", "check", "not-run", "footer") and _validator(str(kind)).is_valid(line)


def runs_in(directory: Path) -> list[str]:
    """The ids of the runs that have a result file there, oldest first: an id begins with the time of its run."""
    return sorted({path.name.partition(".")[0] for path in directory.glob("*.ndjson")})


def oracle_line(directory: Path, run_id: str, check: str) -> Mapping[str, Any] | None:
    """Apache Kafka's line for a check in the same run, if it was asked there too; its newest version's."""
    files = sorted(directory.glob(f"{run_id}.apache-kafka*.ndjson"), key=_newest_last)
    lines = [line for line in read_checks(files) if line.get("check") == check and line.get("observed") is not None]
    return lines[-1] if lines else None


def _newest_last(path: Path) -> tuple[list[int], int]:
    """By version; of two that are equal, the plainer name is the last."""
    name, _, rest = path.name.partition("@")
    version = re.match(r"\d+(?:\.\d+)*", rest)
    return [int(number) for number in version.group().split(".")] if version else [], -len(name)


def new_run_id() -> str:
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(3)}"


def evidence(exchange: Exchange) -> dict[str, Any]:
    return {
        "api": exchange.api,
        "version": exchange.version,
        "node": bounded(exchange.node, EVIDENCE_CHARACTERS),
        "request": bounded(render(exchange.request), EVIDENCE_CHARACTERS),
        "response": bounded(render(exchange.response), EVIDENCE_CHARACTERS),
        "ms": round(exchange.milliseconds, 3),
    }


def render(message: object) -> str:
    """A message as text: field names and values without the codec's class names."""
    if isinstance(message, int):
        return str(int(message))  # an error code as its number
    if isinstance(message, tuple | list):
        return "[" + ", ".join(map(render, message)) + "]"
    if isinstance(message, bytes | bytearray | memoryview):
        return f"<{len(message)} bytes {bytes(message[:64]).hex()}>"
    kind: type = type(message)
    names = _field_names(kind)
    if names:
        return "{" + " ".join(f"{name}={render(getattr(message, name))}" for name in names) + "}"
    return str(message)


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()


def bounded(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[:characters]}… ({len(text)} characters)"


@cache
def _validator(kind: str) -> Draft202012Validator:
    """For one kind of line: the published schema tries all four, and says less clearly what is wrong."""
    schema = json.loads((Path(__file__).parent / "result.schema.json").read_text())
    return Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]})


def client_versions() -> dict[str, str]:
    return {name: version(name) for name in ("kio", "confluent-kafka")}


@cache
def suite_revision() -> str:
    """The commit that the suite is checked out at, or `unknown` outside a git checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return answer.stdout.strip() or "unknown"
