"""Baselines: what a backend is known to answer otherwise than Apache Kafka, so that only the unexpected is news.

One TOML file per backend, in `baselines/`. An entry is one cause: the verdict it leads to, or `flaky`, the checks or
scenarios it shows in, the versions that have it, where it was reported, and why it is so. A check without an entry
is expected to conform. A listed deviation must deviate: one that is fixed makes its entry stale.

For: reading, checking, matching and proposing baselines. Left to others: files and exit codes (`offsets`).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import eq, ge, gt, le, lt

from conformance.answers import Verdict
from conformance.catalogue import catalogue
from conformance.explain import printable
from conformance.results import bounded
from conformance.stored import StoredColumn

FLAKY = "flaky"

EXPECTABLE = (FLAKY, *(str(verdict) for verdict in Verdict if verdict is not Verdict.CONFORMS))
"""What an entry may expect. To conform is what everybody is expected to, so it needs no entry."""

REASON_CHARACTERS = 200
"""A proposed reason is a broker's own words; a person replaces it by a shorter one."""

_COMPARISONS = {">=": ge, "<=": le, "==": eq, ">": gt, "<": lt}

_CONDITION = re.compile(r"\s*(>=|<=|==|>|<)\s*(\d+(?:\.\d+)*)\s*")


class BadBaseline(Exception):
    """A baseline that cannot be used. The text lists everything that is wrong with it, one sentence a line."""


@dataclass(frozen=True)
class Known:
    """One cause of answers that differ from Apache Kafka's."""

    verdict: str
    ids: tuple[str, ...]
    reason: str
    bug: str = ""
    versions: str = ""

    def holds_for(self, version: str) -> bool:
        return not self.versions or (bool(version) and _holds(self.versions, version))


@dataclass(frozen=True)
class Baseline:
    """What is known of one backend, whichever version or address of it runs."""

    backend: str
    known: tuple[Known, ...] = ()

    def is_for(self, column: str) -> bool:
        return family(column) == self.backend

    def entry(self, check: str, version: str) -> Known | None:
        """The entry that says what a check is expected to do: its own, else that of its scenario."""
        holding = [known for known in self.known if known.holds_for(version)]
        for id in (check, check.partition(":")[0]):
            for known in holding:
                if id in known.ids:
                    return known
        return None


def family(column: str) -> str:
    """A column's name without version or address: `apache-kafka@4.3.1` and `external(host:1)` lose theirs."""
    return re.split(r"[@(]", column, maxsplit=1)[0]


def version_of(column: StoredColumn) -> str:
    return version_in(column.inputs.version, column.inputs.build)


def version_in(version: str | None, build: str) -> str:
    """The version that conditions are held against: the backend's, or the first that its build names."""
    found = re.search(r"\d+(?:\.\d+)+", version or build)
    return found[0] if found else ""


def parse(text: str) -> Baseline:
    """A baseline from its text, or `BadBaseline` with everything that keeps it from being used."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadBaseline(f"it is not TOML: {error}") from error
    problems = list(_shape_problems(data))
    if problems:
        raise BadBaseline("\n".join(problems))
    known = tuple(Known(**(entry | {"ids": tuple(entry["ids"])})) for entry in data.get("known", ()))
    return Baseline(data["backend"], known)


def _shape_problems(data: Mapping[str, object]) -> Iterator[str]:
    if not isinstance(data.get("backend"), str):
        yield 'it names no backend: begin with backend = "NAME"'
    for name in data.keys() - {"backend", "known"}:
        yield f"{name!r} means nothing here: there are backend and [[known]]"
    entries = data.get("known", [])
    for number, entry in enumerate(entries if isinstance(entries, list) else [entries], 1):
        where = f"entry {number}"
        if not isinstance(entry, dict):
            yield f"{where} is no [[known]] table"
            continue
        for name in entry.keys() - {"verdict", "ids", "versions", "bug", "reason"}:
            yield f"{where}: {name!r} means nothing here: there are verdict, ids, versions, bug and reason"
        for name in ("verdict", "reason", *(entry.keys() & {"versions", "bug"})):
            if not isinstance(entry.get(name), str):
                yield f"{where}: {name} is not a text"
        ids = entry.get("ids")
        if not isinstance(ids, list) or not ids or not all(isinstance(id, str) for id in ids):
            yield f"{where}: ids is not a list of checks or scenarios"
        if isinstance(entry.get("verdict"), str) and entry["verdict"] not in EXPECTABLE:
            yield f"{where}: verdict {entry['verdict']!r} is none of {', '.join(EXPECTABLE)}"
        if isinstance(entry.get("versions"), str) and not _is_condition(entry["versions"]):
            yield f"{where}: versions {entry['versions']!r} is no condition such as '>=3.5, <3.9'"


def lint(baseline: Baseline) -> list[str]:
    """What is wrong with a baseline that can be read: a sentence each."""
    problems = []
    seen: dict[tuple[str, str], int] = {}
    for number, known in enumerate(baseline.known, 1):
        where = f"entry {number} ({known.verdict})"
        if not known.reason.strip():
            problems.append(f"{where}: say why in `reason`")
        if known.verdict in (Verdict.DEVIATES, FLAKY) and not known.bug.startswith("https://"):
            problems.append(
                f"{where}: give the https link of the report in `bug`, or of the tracker until there is one"
            )
        for id in known.ids:
            if id.partition(":")[0] not in catalogue():
                problems.append(f"{where}: {id!r} is not in the catalogue: `offsets list scenarios --all` has the ids")
            first = seen.setdefault((id, known.versions), number)
            if first != number:
                problems.append(f"{where}: {id!r} is in entry {first} already, for the same versions")
    return problems


@dataclass(frozen=True)
class Surprise:
    """A check that did something else than was expected of it."""

    check: str
    expected: str
    got: str
    known: Known | None


def surprises(baseline: Baseline, version: str, verdicts: Mapping[str, Verdict]) -> list[Surprise]:
    """The checks whose verdict is not the expected one. What is known to be flaky surprises nobody."""
    found = []
    for check, verdict in verdicts.items():
        known = baseline.entry(check, version)
        expected = known.verdict if known else str(Verdict.CONFORMS)
        if expected not in (FLAKY, verdict):
            found.append(Surprise(check, expected, str(verdict), known))
    return found


def unasked(baseline: Baseline, column: StoredColumn) -> list[str]:
    """The ids that the baseline lists for this version and that the run has no check of.

    Where the story was not told to its end, the check that says so speaks for those that were not asked.
    """
    version = version_of(column)
    asked = column.checks.keys() | column.scenarios
    listed = [id for known in baseline.known if known.holds_for(version) for id in known.ids]
    return [id for id in dict.fromkeys(listed) if id not in asked and f"{id.partition(':')[0]}:story" not in asked]


def propose(column: StoredColumn, tracker: str, old: Baseline | None = None) -> Baseline:
    """A baseline under which this run holds no surprise.

    What `old` says and this run bears out stays, with its words; entries for other versions and flaky ones stay as
    they are. What is new is gathered by what seems to be one cause: what is declined by the words of the refusal,
    the rest by family, with the words of the first check for a reason.
    """
    version = version_of(column)
    kept: list[Known] = []
    for known in old.known if old else ():
        if known.verdict == FLAKY or not known.holds_for(version):
            kept.append(known)
        elif ids := tuple(id for id in known.ids if _borne_out(id, known.verdict, column)):
            kept.append(replace(known, ids=ids))
    so_far = Baseline(family(column.backend), tuple(kept))
    missing = {
        surprise.check: surprise.got
        for surprise in surprises(so_far, version, {id: check.verdict for id, check in column.checks.items()})
        if surprise.got != Verdict.CONFORMS
    }
    gathered: dict[tuple[str, str], list[str]] = defaultdict(list)
    for scenario in dict.fromkeys(check.scenario for check in column.checks.values()):
        checks = [id for id, check in column.checks.items() if check.scenario == scenario]
        verdicts = {missing.get(id) for id in checks}
        for id in checks if len(verdicts) > 1 else [scenario]:
            verdict = missing.get(id) if id in column.checks else verdicts.pop()
            if verdict is not None:
                reason = _first_reason(column, id, verdict)
                declined = verdict in (Verdict.UNSUPPORTED, Verdict.NOT_APPLICABLE)
                gathered[verdict, reason if declined else scenario.partition(".")[0]].append(id)
    new = [
        Known(
            verdict, tuple(ids), _first_reason(column, ids[0], verdict), tracker if verdict == Verdict.DEVIATES else ""
        )
        for (verdict, _), ids in sorted(gathered.items())
    ]
    return Baseline(so_far.backend, (*kept, *new))


def _borne_out(id: str, verdict: str, column: StoredColumn) -> bool:
    verdicts = {str(check.verdict) for check in column.checks.values() if id in (check.id, check.scenario)}
    return not verdicts or (verdict in verdicts and (id in column.checks or verdicts == {verdict}))


def _first_reason(column: StoredColumn, id: str, verdict: str) -> str:
    reasons = (c.reason for c in column.checks.values() if id in (c.id, c.scenario) and c.verdict == verdict)
    return bounded(printable(next(reasons, "")), REASON_CHARACTERS)


def render(baseline: Baseline) -> str:
    """The baseline as TOML."""
    parts = [
        f"# What {baseline.backend} is known to answer otherwise than Apache Kafka. Everything else is expected to\n"
        "# conform. `offsets baseline write` proposes entries from a run; `offsets check` holds a run against them.\n\n"
        f"backend = {_quoted(baseline.backend)}\n"
    ]
    for known in baseline.known:
        optional = {name: value for name, value in (("versions", known.versions), ("bug", known.bug)) if value}
        parts.append(
            "[[known]]\n"
            f"verdict = {_quoted(known.verdict)}\n"
            + "".join(f"{name} = {_quoted(value)}\n" for name, value in optional.items())
            + f"reason = {_quoted(known.reason)}\n"
            + "ids = [\n"
            + "".join(f"    {_quoted(id)},\n" for id in known.ids)
            + "]\n"
        )
    return "\n".join(parts)


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are its escapes, once what does not print is replaced."""
    return json.dumps(printable(text), ensure_ascii=False)


def _conditions(text: str) -> Sequence[re.Match[str] | None]:
    return [_CONDITION.fullmatch(part) for part in text.split(",")]


def _is_condition(text: str) -> bool:
    return all(_conditions(text))


def _holds(condition: str, version: str) -> bool:
    numbers = _numbers(version)
    return all(
        _COMPARISONS[part[1]](*_same_length(numbers, _numbers(part[2]))) for part in _conditions(condition) if part
    )


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _same_length(one: list[int], other: list[int]) -> tuple[list[int], list[int]]:
    """3.9 and 3.9.0 are the same version."""
    length = max(len(one), len(other))
    return one + [0] * (length - len(one)), other + [0] * (length - len(other))
