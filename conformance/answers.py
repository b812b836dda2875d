"""Accepted answers, observations, and the pure function that turns the two into a verdict.

An observation is either the numbers that a broker answered, or the way in which it gave none. An accepted
answer names the numbers that matter to it and leaves the others open: what is not named is not required.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

UNSUPPORTED_VERSION = 35


class Verdict(StrEnum):
    """What a check concluded; the first in this order wins where several are folded into one cell."""

    DEVIATES = "deviates"
    BROKEN = "broken"
    INCONCLUSIVE = "inconclusive"
    CONFORMS = "conforms"
    UNSUPPORTED = "unsupported"
    NOT_APPLICABLE = "not-applicable"


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict that speaks for all of them. At least one is required."""
    return min(verdicts, key=list(Verdict).index)


class Grade(StrEnum):
    """How an accepted answer relates to Apache Kafka's."""

    EXACT = "exact"
    LEGAL = "legal"


class Silence(StrEnum):
    """The ways in which a broker can fail to answer."""

    CLOSED = "closed"  # it closed this connection, and still accepts others
    OMITTED = "omitted"  # it answered, but not about the partition that was asked
    MALFORMED = "malformed"  # it sent bytes that the protocol does not allow
    TIMEOUT = "timeout"  # it said nothing before the deadline
    UNREACHABLE = "unreachable"  # nobody accepts connections there any more


@dataclass(frozen=True)
class Observation:
    """What came back: numbers by field name, or a silence with its detail, never both."""

    fields: Mapping[str, int] = field(default_factory=dict)
    silence: Silence | None = None
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.silence}: {self.detail}" if self.silence else describe_fields(self.fields)

    def as_json(self) -> dict[str, object]:
        return {"silence": str(self.silence), "detail": self.detail} if self.silence else dict(self.fields)

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Observation:
        if "silence" in value:
            return cls(silence=Silence(str(value["silence"])), detail=str(value["detail"]))
        return cls(fields={name: int(str(number)) for name, number in value.items()})


@dataclass(frozen=True)
class Between:
    """Any number from `low` to `high`, both included; an open end is None."""

    low: int | None = None
    high: int | None = None

    def __contains__(self, number: int) -> bool:
        return (self.low is None or self.low <= number) and (self.high is None or number <= self.high)

    def __str__(self) -> str:
        low = "" if self.low is None else f"{self.low} <= "
        high = "" if self.high is None else f" <= {self.high}"
        return f"{low}n{high}" if low or high else "anything"


Wanted = int | Between


def at_least(low: int) -> Between:
    return Between(low=low)


@dataclass(frozen=True)
class BrokerFacts:
    """What an expectation may depend on: never more than the broker's release and what it advertises."""

    backend: str
    list_offsets: tuple[int, int]
    kafka_release: tuple[int, ...] | None = None
    """Apache Kafka's own release, where that is what runs; None for every other broker."""


@dataclass(frozen=True)
class Condition:
    """A reason for which an answer is accepted from some brokers only, in words and as a test."""

    words: str
    holds: Callable[[BrokerFacts], bool]


def kafka_before(*release: int) -> Condition:
    """Apache Kafka itself, before a release: for behaviour that a later release corrected."""
    words = f"Apache Kafka before {'.'.join(map(str, release))}"
    return Condition(words, lambda facts: facts.kafka_release is not None and facts.kafka_release < release)


def advertises_below(version: int) -> Condition:
    """Any broker whose highest ListOffsets version is below `version`."""
    return Condition(f"ListOffsets below v{version} advertised", lambda facts: facts.list_offsets[1] < version)


def advertises(version: int) -> Condition:
    """Any broker whose highest ListOffsets version is at least `version`."""
    return Condition(f"ListOffsets v{version} advertised", lambda facts: facts.list_offsets[1] >= version)


@dataclass(frozen=True)
class Accepted:
    """One accepted answer: the fields it requires, or the silence it requires.

    `because` says where a legal difference or a condition comes from; an exact, unconditional answer is
    backed by its scenario's sources and needs none.
    """

    fields: Mapping[str, Wanted] = field(default_factory=dict)
    silence: Silence | None = None
    grade: Grade = Grade.EXACT
    condition: Condition | None = None
    because: str = ""

    def when(self, condition: Condition, because: str) -> Accepted:
        return replace(self, condition=condition, because=because)

    def legal(self, because: str) -> Accepted:
        return replace(self, grade=Grade.LEGAL, because=because)

    def matches(self, observed: Observation) -> bool:
        if self.silence or observed.silence:
            return self.silence == observed.silence
        return not self.differences(observed)

    def differences(self, observed: Observation) -> list[str]:
        """The fields in which an observation is not this answer, in words."""
        differing = []
        for name, wanted in self.fields.items():
            seen = observed.fields.get(name)
            if seen is None or not (seen in wanted if isinstance(wanted, Between) else seen == wanted):
                differing.append(f"{name} is {'not there' if seen is None else seen} instead of {wanted}")
        return differing

    def __str__(self) -> str:
        text = str(self.silence) if self.silence else describe_fields(self.fields)
        notes = [str(self.grade)] if self.grade is Grade.LEGAL else []
        notes += [self.condition.words] if self.condition else []
        notes += [self.because] if self.because else []
        return f"{text} ({'; '.join(notes)})" if notes else text

    def as_json(self) -> dict[str, object]:
        wanted: dict[str, object] = {"silence": str(self.silence)} if self.silence else {}
        for name, value in self.fields.items():
            wanted[name] = {"low": value.low, "high": value.high} if isinstance(value, Between) else value
        wanted["grade"] = str(self.grade)
        if self.condition:
            wanted["condition"] = self.condition.words
        if self.because:
            wanted["because"] = self.because
        return wanted

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Accepted:
        """An accepted answer as a result file holds it; its condition held, so it is not needed again."""
        fields: dict[str, Wanted] = {}
        for name, wanted in value.items():
            if name in ("silence", "grade", "condition", "because"):
                continue
            fields[name] = Between(wanted["low"], wanted["high"]) if isinstance(wanted, dict) else int(str(wanted))
        silence = Silence(str(value["silence"])) if "silence" in value else None
        return cls(fields, silence, Grade(str(value["grade"])), because=str(value.get("because", "")))


def describe_fields(fields: Mapping[str, int | Between]) -> str:
    return " ".join(f"{name}={value}" for name, value in fields.items()) or "anything"


def answer(
    *, offset: Wanted | None = None, timestamp: Wanted | None = None, leader_epoch: Wanted | None = None
) -> Accepted:
    """An answer without an error. What is left out may be anything."""
    named = {"offset": offset, "timestamp": timestamp, "leader_epoch": leader_epoch}
    return Accepted({"error": 0, **{name: wanted for name, wanted in named.items() if wanted is not None}})


def found(offset: int, timestamp: int) -> Accepted:
    """The record at `offset`, with that record's own timestamp."""
    return answer(offset=offset, timestamp=timestamp)


NOT_FOUND = answer(offset=-1, timestamp=-1)
"""No error, and no record either: what KIP-79 answers to a time after the last record."""


def refused(error: int) -> Accepted:
    """An error. The other fields of an error answer carry nothing that a client may use."""
    return Accepted({"error": error})


CLOSED = Accepted(silence=Silence.CLOSED)
"""The broker closes the connection without an answer, as Kafka does to what it cannot parse."""


def applicable(accepted: Sequence[Accepted], facts: BrokerFacts) -> tuple[Accepted, ...]:
    """The answers accepted from this broker: conditions are settled before judging, so judging is pure."""
    return tuple(each for each in accepted if each.condition is None or each.condition.holds(facts))


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    grade: Grade | None = None
    reason: str = ""


def judge(accepted: Sequence[Accepted], observed: Observation, *, may_decline: bool = False) -> Judgement:
    """The verdict on one observation.

    Required: an accepted answer. Not required: that fields outside the accepted answers have any value.
    With `may_decline`, UNSUPPORTED_VERSION is the broker's honest no rather than a wrong answer.
    """
    matching = [each for each in accepted if each.matches(observed)]
    if matching:
        best = min(matching, key=lambda each: each.grade is Grade.LEGAL)
        return Judgement(Verdict.CONFORMS, best.grade, best.because if best.grade is Grade.LEGAL else "")
    if observed.silence is Silence.TIMEOUT:
        return Judgement(Verdict.INCONCLUSIVE, reason=f"no answer in time: {observed.detail}")
    if observed.silence is Silence.UNREACHABLE:
        return Judgement(Verdict.BROKEN, reason=f"the broker is gone: {observed.detail}")
    if may_decline and observed.fields.get("error") == UNSUPPORTED_VERSION:
        return Judgement(Verdict.UNSUPPORTED, reason="the broker answers UNSUPPORTED_VERSION")
    return Judgement(Verdict.DEVIATES, reason=_difference(accepted, observed))


def _difference(accepted: Sequence[Accepted], observed: Observation) -> str:
    """What is wrong with an answer, told by the accepted one that it comes closest to."""
    if observed.silence:
        return str(observed)
    wrong = [each.differences(observed) for each in accepted if not each.silence]
    if not wrong:
        return "an answer where none was accepted"
    closest = min(wrong, key=len)
    return ", ".join(closest)
