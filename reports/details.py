"""Every check of the runs that are shown, with the bytes that it was judged by: what one cell of the page opens to.

For: reading them from the result files, picking and bounding them. Nothing is counted here, so the half of a line that
only a reader of one check needs never goes through Spark. A page that grew with whatever a broker sends would not open,
so each text has a bound, and what was exchanged on the wire has a budget that is spent on what deviates first. What
there was no room for is counted, and is in the result files.

Left to others: the matrix (`reports.matrix`), which line is malformed (`reports.ingest`), and showing any of it
(`reports.page`).
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any, Final

from reports.model import VERDICTS

# An answer or a sentence about it: the suite itself writes no longer ones.
TEXT_CHARACTERS: Final = 2000

# One request or response: a ListOffsets answer with every field is a third of it.
MESSAGE_CHARACTERS: Final = 800

# The name of an API or a node.
NAME_CHARACTERS: Final = 120

# The question itself is the last exchange; what led up to it matters where the answer was not the expected one.
EXCHANGES: Final = 4
EXCHANGES_IF_EXACT: Final = 1

# Of all exchanges together. With it, a page of 500 scenarios and 20 backends stays below ten megabytes.
BUDGET_CHARACTERS: Final = 4_000_000

# Of all lines whose evidence is held while files are read, before it is known who gets the room: of exact answers, and
# again as much of others.
HELD_CHARACTERS: Final = 32 * BUDGET_CHARACTERS

# Three times 500 scenarios, 20 backends and 3 checks each.
CHECKS: Final = 90_000

# Of all checks that are held meanwhile, Apache Kafka's in other runs among them: of exact answers, and as many others.
HELD_CHECKS: Final = 2 * CHECKS

# Who gets the room first: whatever a reader opens a cell for.
_IN_ORDER: Final = ("deviates", "broken", "inconclusive", "unsupported", "conforms", "not-applicable")


@dataclass(frozen=True)
class Exchange:
    """One request and its response, as the result file tells them: fields by name, bytes in hexadecimal."""

    api: str
    version: int
    node: str
    request: str
    response: str
    ms: float


@dataclass(frozen=True)
class CheckDetail:
    """One check of the run that its backend's column shows, beside Apache Kafka's answer in the same run.

    `accepted`, `observed` and `oracle_observed` are JSON texts. `exchanges` are the last ones of `exchanged`.
    """

    backend: str
    scenario: str
    check: str
    revision: int
    verdict: str
    grade: str | None
    reason: str
    asked: str
    accepted: str
    observed: str | None
    sources: tuple[str, ...]
    test: str
    started: str
    duration_ms: float
    exchanged: int
    exchanges: tuple[Exchange, ...]
    oracle_backend: str | None
    oracle_observed: str | None


# What a line must hold to be told here at all; whether it is a good one is not decided here.
_NEEDED: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(("run_id", "backend", "scenario", "check", "verdict"), (str,)),
    **dict.fromkeys(("reason", "asked", "test", "started"), (str,)),
    **dict.fromkeys(("revision", "attempt"), (int,)),
    **dict.fromkeys(("accepted", "sources", "evidence"), (list,)),
    "duration_ms": (int, float),
    "grade": (str, type(None)),
}
_FITTING: Final = frozenset(product(*_NEEDED.values()))

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True)
class Wanted:
    """Whose checks are told: of each backend one run, beside the answers of these Apache Kafkas, best first, in it.

    `malformed` are lines that count for nothing, as they stand in the files.
    """

    runs: Mapping[str, str]
    oracles: Mapping[str, Sequence[str]]
    malformed: Collection[str] = ()

    @property
    def keys(self) -> frozenset[tuple[str, str]]:
        """Whose lines are read, as (run, backend)."""
        shown = {(run, backend) for backend, run in self.runs.items()}
        return frozenset(shown | {(run, each) for run in self.runs.values() for each in self.oracles.get(run, ())})


@dataclass(frozen=True)
class _Attempt:
    """One attempt at a check; `told` are the fields of its CheckDetail but for those that depend on other checks."""

    number: int
    file: str
    told: Mapping[str, Any]
    evidence: Sequence[Any]

    @property
    def turn(self) -> tuple[int, bool, str, str]:
        """Who gets the room first."""
        told = self.told
        return _IN_ORDER.index(told["verdict"]), _is_exact(told), told["check"], told["backend"]

    def comes_before(self, other: "_Attempt") -> bool:
        mine, others = ((each.number, _moment(each.told["started"]), each.file) for each in (self, other))
        return mine < others


Key = tuple[str, str, str]


def details(files: Iterable[str], wanted: Wanted) -> tuple[CheckDetail, ...]:
    """The last attempts of the runs that are wanted, those of a cell in the order in which they were asked."""
    attempts = _last_attempts(files, wanted)
    shown = [key for key in attempts if wanted.runs.get(key[1]) == key[0]]
    found, room = [], BUDGET_CHARACTERS
    for key in sorted(shown, key=lambda key: attempts[key].turn)[:CHECKS]:
        attempt, oracle = attempts[key], _oracle_answer(key, attempts, wanted.oracles)
        exchanges = tuple(map(_exchange, attempt.evidence)) if room > 0 else ()
        room -= sum(len(each.request) + len(each.response) for each in exchanges)
        found.append(
            CheckDetail(
                **attempt.told,
                exchanges=exchanges if room >= 0 else (),
                oracle_backend=oracle.get("backend"),
                oracle_observed=oracle.get("observed"),
            )
        )
    return tuple(sorted(found, key=lambda one: (one.scenario, one.backend, one.started, one.check)))


def _oracle_answer(
    key: Key, attempts: Mapping[Key, _Attempt], oracles: Mapping[str, Sequence[str]]
) -> Mapping[str, Any]:
    run, _, check = key
    answers = (attempts[run, each, check].told for each in oracles.get(run, ()) if (run, each, check) in attempts)
    return next((answer for answer in answers if answer["observed"] is not None), {})


def _is_exact(told: Mapping[str, Any]) -> bool:
    return (told["verdict"], told["grade"]) == ("conforms", "exact")


def _moment(text: str) -> datetime:
    """UTC where nothing else is said, as Spark takes it; the first of all where the text is no moment."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = datetime.min
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _last_attempts(files: Iterable[str], wanted: Wanted) -> dict[Key, _Attempt]:
    """By run, backend and check, as many as there is memory for."""
    keys = wanted.keys
    found: dict[Key, _Attempt] = {}
    held: Counter[bool] = Counter()
    characters: Counter[bool] = Counter()
    for file in files:
        for length, line in _checks(file, wanted.malformed):
            key, exact = (line["run_id"], line["backend"], line["check"]), _is_exact(line)
            if key[:2] not in keys or (key not in found and held[exact] >= HELD_CHECKS):
                continue
            held[exact] += key not in found
            characters[exact] += length
            evidence = line["evidence"][-(EXCHANGES_IF_EXACT if exact else EXCHANGES) :]
            if characters[exact] > HELD_CHARACTERS:
                evidence = []
            attempt = _Attempt(line["attempt"], file, _told(line), evidence)
            if key not in found or found[key].comes_before(attempt):
                found[key] = attempt
    return found


def _checks(file: str, malformed: Collection[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The checks of a file that can be told, each with the length of its line; other lines are not missed here."""
    with open(file, encoding="utf-8", errors="replace", newline="\n") as lines:
        for raw in lines:
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):  # no JSON, or more digits or deeper nested than Python reads
                continue
            if _can_be_told(line) and not (malformed and raw.rstrip("\n") in malformed):
                yield len(raw), line


def _can_be_told(line: Any) -> bool:
    if not isinstance(line, dict) or line.get("kind") != "check":
        return False
    return tuple(map(type, map(line.get, _NEEDED))) in _FITTING and line["verdict"] in VERDICTS


# Fields that need no bound here: they are names, or the page bounds them.
_AS_THEY_STAND: Final = (
    *("backend", "scenario", "check", "revision", "verdict", "grade"),
    *("test", "started", "duration_ms"),
)


def _told(line: Mapping[str, Any]) -> dict[str, Any]:
    observed = line.get("observed")
    return {
        **{name: line[name] for name in _AS_THEY_STAND},
        "reason": _text(line["reason"], TEXT_CHARACTERS),
        "asked": _text(line["asked"], TEXT_CHARACTERS),
        "accepted": _text(_as_text(line["accepted"]), TEXT_CHARACTERS),
        "observed": None if observed is None else _text(_as_text(observed), TEXT_CHARACTERS),
        "sources": tuple(_text(source, TEXT_CHARACTERS) for source in line["sources"]),
        "exchanged": len(line["evidence"]),
    }


def _exchange(each: Any) -> Exchange:
    """Bounded. A result file may leave out what it likes within an exchange."""
    each = each if isinstance(each, dict) else {}
    version, ms = each.get("version"), each.get("ms")
    return Exchange(
        api=_text(each.get("api"), NAME_CHARACTERS),
        version=version if isinstance(version, int) else 0,
        node=_text(each.get("node"), NAME_CHARACTERS),
        request=_text(each.get("request"), MESSAGE_CHARACTERS),
        response=_text(each.get("response"), MESSAGE_CHARACTERS),
        ms=ms if isinstance(ms, int | float) else 0.0,
    )


def _as_text(value: Any) -> str:
    try:
        return _encode(value)
    except RecursionError:  # it was read with a few calls less around it
        return ""


def _text(value: object, characters: int) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    return text if len(text) <= characters else text[:characters] + "…"
