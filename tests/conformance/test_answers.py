"""The verdict is a pure function of accepted answers and an observation, live or replayed."""

import json

import pytest

from conformance.answers import (
    CLOSED,
    NOT_FOUND,
    UNSUPPORTED_VERSION,
    Accepted,
    Between,
    BrokerFacts,
    Condition,
    Grade,
    Judgement,
    Observation,
    Silence,
    Verdict,
    advertises,
    advertises_below,
    answer,
    applicable,
    at_least,
    found,
    judge,
    kafka_before,
    refused,
    worst,
)

KAFKA_3_9 = BrokerFacts("apache-kafka@3.9.1", (0, 9), kafka_release=(3, 9, 1))
KAFKA_4 = BrokerFacts("apache-kafka@4.3.1", (1, 11), kafka_release=(4, 3, 1))
OTHER = BrokerFacts("other", (0, 7))

SEEN = Observation({"error": 0, "offset": 5, "timestamp": 1000, "leader_epoch": 3})
LEGAL_FIVE = answer(offset=5).legal("a KIP allows it")

# Accepted answers, what was observed, whether the broker may decline, and the verdict with its grade.
JUDGED: dict[str, tuple[tuple[Accepted, ...], Observation, bool, Verdict, Grade | None]] = {
    "the accepted number": ((answer(offset=5),), SEEN, False, Verdict.CONFORMS, Grade.EXACT),
    "another number": ((answer(offset=4),), SEEN, False, Verdict.DEVIATES, None),
    "one field of two": ((answer(offset=5, timestamp=-1),), SEEN, False, Verdict.DEVIATES, None),
    "a record": ((found(5, 1000),), SEEN, False, Verdict.CONFORMS, Grade.EXACT),
    "no record where one is": ((NOT_FOUND,), SEEN, False, Verdict.DEVIATES, None),
    "a field that is not named": ((answer(),), SEEN, False, Verdict.CONFORMS, Grade.EXACT),
    "a field that the answer lacks": (
        (answer(leader_epoch=3),),
        Observation({"error": 0, "offset": 5}),
        False,
        Verdict.DEVIATES,
        None,
    ),
    "an error beside the right number": (
        (answer(offset=5),),
        Observation({"error": 3, "offset": 5}),
        False,
        Verdict.DEVIATES,
        None,
    ),
    "the wanted error": ((refused(3),), Observation({"error": 3, "offset": 5}), False, Verdict.CONFORMS, Grade.EXACT),
    "the second of two": ((answer(offset=4), LEGAL_FIVE), SEEN, False, Verdict.CONFORMS, Grade.LEGAL),
    "a legal and an exact one": ((LEGAL_FIVE, answer(offset=5)), SEEN, False, Verdict.CONFORMS, Grade.EXACT),
    "none of two": ((answer(offset=4), answer(offset=6)), SEEN, False, Verdict.DEVIATES, None),
    "nothing accepted": ((), SEEN, False, Verdict.DEVIATES, None),
    "in a range": ((answer(offset=Between(5, 6)),), SEEN, False, Verdict.CONFORMS, Grade.EXACT),
    "below a range": ((answer(offset=at_least(6)),), SEEN, False, Verdict.DEVIATES, None),
    "a wanted close": ((CLOSED,), Observation(silence=Silence.CLOSED), False, Verdict.CONFORMS, Grade.EXACT),
    "another silence than the wanted one": (
        (CLOSED,),
        Observation(silence=Silence.OMITTED),
        False,
        Verdict.DEVIATES,
        None,
    ),
    "an answer instead of a close": ((CLOSED,), SEEN, False, Verdict.DEVIATES, None),
    "a wanted timeout": (
        (Accepted(silence=Silence.TIMEOUT),),
        Observation(silence=Silence.TIMEOUT),
        False,
        Verdict.CONFORMS,
        Grade.EXACT,
    ),
    "declined, as it may": (
        (answer(offset=5),),
        Observation({"error": UNSUPPORTED_VERSION}),
        True,
        Verdict.UNSUPPORTED,
        None,
    ),
    "declined, as it may not": (
        (answer(offset=5),),
        Observation({"error": UNSUPPORTED_VERSION}),
        False,
        Verdict.DEVIATES,
        None,
    ),
    "declined, as is wanted": (
        (refused(UNSUPPORTED_VERSION),),
        Observation({"error": UNSUPPORTED_VERSION}),
        True,
        Verdict.CONFORMS,
        Grade.EXACT,
    ),
    "another error where declining is allowed": (
        (answer(offset=5),),
        Observation({"error": 42}),
        True,
        Verdict.DEVIATES,
        None,
    ),
    "closed": ((answer(),), Observation(silence=Silence.CLOSED), True, Verdict.DEVIATES, None),
    "omitted": ((answer(),), Observation(silence=Silence.OMITTED), True, Verdict.DEVIATES, None),
    "malformed": ((answer(),), Observation(silence=Silence.MALFORMED), True, Verdict.DEVIATES, None),
    "timeout": ((answer(),), Observation(silence=Silence.TIMEOUT), True, Verdict.INCONCLUSIVE, None),
    "unreachable": ((answer(),), Observation(silence=Silence.UNREACHABLE), True, Verdict.BROKEN, None),
}


@pytest.mark.parametrize("name", JUDGED)
def test_an_observation_has_one_verdict(name: str) -> None:
    accepted, observed, may_decline, verdict, grade = JUDGED[name]
    judgement = judge(accepted, observed, may_decline=may_decline)
    assert (judgement.verdict, judgement.grade) == (verdict, grade)
    assert judge(accepted, observed, may_decline=may_decline) == judgement


@pytest.mark.parametrize("name", JUDGED)
def test_a_stored_line_is_judged_as_the_live_answer_was(name: str) -> None:
    accepted, observed, may_decline, _verdict, _grade = JUDGED[name]
    stored = json.loads(json.dumps({"accepted": [each.as_json() for each in accepted], "observed": observed.as_json()}))
    replayed = judge(
        [Accepted.from_json(each) for each in stored["accepted"]],
        Observation.from_json(stored["observed"]),
        may_decline=may_decline,
    )
    assert replayed == judge(accepted, observed, may_decline=may_decline)


def test_every_verdict_but_not_applicable_can_come_from_judging() -> None:
    reached = {verdict for _accepted, _observed, _may_decline, verdict, _grade in JUDGED.values()}
    assert reached == set(Verdict) - {Verdict.NOT_APPLICABLE}  # which is declared before anything is asked


def test_every_silence_has_a_verdict() -> None:
    assert {observed.silence for _, observed, *_ in JUDGED.values()} == {None, *Silence}


def test_judging_changes_neither_side() -> None:
    accepted, observed = [answer(offset=4), LEGAL_FIVE], Observation(dict(SEEN.fields))
    before = ([each.as_json() for each in accepted], observed.as_json())
    judge(accepted, observed)
    assert ([each.as_json() for each in accepted], observed.as_json()) == before


def test_a_deviation_says_what_differs_from_the_accepted_answer_that_is_closest() -> None:
    reason = judge(
        [Accepted({"error": 3, "offset": -1}), answer(offset=4)], Observation({"error": 0, "offset": 5})
    ).reason
    assert reason == "offset is 5 instead of 4"


def test_a_deviation_says_that_a_field_is_not_there() -> None:
    assert judge([answer(offset=4)], Observation({"error": 0})).reason == "offset is not there instead of 4"


def test_an_answer_where_only_silence_is_accepted_says_so() -> None:
    assert judge([CLOSED], Observation({"error": 0})).reason == "an answer where none was accepted"


def test_a_legal_answer_says_why_it_is_legal_and_an_exact_one_says_nothing() -> None:
    assert judge([LEGAL_FIVE], SEEN) == Judgement(Verdict.CONFORMS, Grade.LEGAL, "a KIP allows it")
    assert judge([answer(offset=5)], SEEN).reason == ""


@pytest.mark.parametrize("silence", [Silence.TIMEOUT, Silence.UNREACHABLE])
def test_a_silence_that_says_nothing_about_the_answer_keeps_its_detail(silence: Silence) -> None:
    assert "node 1, fetch v4" in judge([answer()], Observation(silence=silence, detail="node 1, fetch v4")).reason


# -- conditions


@pytest.mark.parametrize(
    ("condition", "holds_for"),
    [
        (kafka_before(4), {"apache-kafka@3.9.1"}),
        (kafka_before(3, 9, 2), {"apache-kafka@3.9.1"}),
        (kafka_before(3, 9, 1), set()),
        (kafka_before(9), {"apache-kafka@3.9.1", "apache-kafka@4.3.1"}),
        (advertises_below(9), {"other"}),
        (advertises_below(10), {"other", "apache-kafka@3.9.1"}),
        (advertises(9), {"apache-kafka@3.9.1", "apache-kafka@4.3.1"}),
        (advertises(12), set()),
    ],
    ids=lambda value: value.words if isinstance(value, Condition) else "",
)
def test_a_condition_holds_for_the_brokers_that_it_names(condition: Condition, holds_for: set[str]) -> None:
    assert {facts.backend for facts in (KAFKA_3_9, KAFKA_4, OTHER) if condition.holds(facts)} == holds_for


def test_an_answer_under_a_condition_is_accepted_from_those_brokers_only() -> None:
    always = answer(offset=5)
    once = answer(offset=4).when(kafka_before(4), "KAFKA-1")
    assert applicable([always, once], KAFKA_3_9) == (always, once)
    assert applicable([always, once], KAFKA_4) == (always,)


def test_a_stored_condition_held_and_is_not_needed_again() -> None:
    once = answer(offset=5).when(kafka_before(4), "KAFKA-1")
    stored = once.as_json()
    assert stored["condition"] == "Apache Kafka before 4"
    assert Accepted.from_json(stored).condition is None
    assert judge([Accepted.from_json(stored)], SEEN).verdict is Verdict.CONFORMS


# -- parts


@pytest.mark.parametrize(
    ("wanted", "inside", "outside", "words"),
    [
        (Between(1, 3), (1, 2, 3), (0, 4), "1 <= n <= 3"),
        (Between(low=0), (0, 2**63), (-1,), "0 <= n"),
        (Between(high=0), (0, -(2**63)), (1,), "n <= 0"),
        (Between(), (-1, 0, 1), (), "anything"),
        (Between(3, 1), (), (1, 2, 3), "3 <= n <= 1"),
    ],
)
def test_a_range_includes_both_ends(
    wanted: Between, inside: tuple[int, ...], outside: tuple[int, ...], words: str
) -> None:
    assert all(number in wanted for number in inside)
    assert not any(number in wanted for number in outside)
    assert str(wanted) == words


def test_an_accepted_answer_reads_as_a_phrase() -> None:
    phrase = str(answer(offset=at_least(3)).when(kafka_before(4), "KAFKA-1").legal("KAFKA-2"))
    assert phrase == "error=0 offset=3 <= n (legal; Apache Kafka before 4; KAFKA-2)"
    assert str(CLOSED) == "closed"


def test_an_observation_is_numbers_or_a_silence() -> None:
    assert SEEN.as_json() == SEEN.fields
    silent = Observation(silence=Silence.CLOSED, detail="the broker hung up")
    assert silent.as_json() == {"silence": "closed", "detail": "the broker hung up"}
    assert str(silent) == "closed: the broker hung up"
    assert Observation.from_json(silent.as_json()) == silent


def test_a_deviation_speaks_for_a_whole_story_and_not_applicable_only_for_itself() -> None:
    assert worst(list(Verdict)) is Verdict.DEVIATES
    assert worst([Verdict.NOT_APPLICABLE, Verdict.CONFORMS]) is Verdict.CONFORMS
    assert worst([Verdict.CONFORMS, Verdict.INCONCLUSIVE]) is Verdict.INCONCLUSIVE
    assert worst([Verdict.NOT_APPLICABLE]) is Verdict.NOT_APPLICABLE
