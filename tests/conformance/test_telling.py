"""How a story ends: each way of breaking off has its verdict, and none goes unrecorded."""

import pytest
from sample_checks import check, story

from conformance.answers import Judgement, Observation, Verdict, answer, judge
from conformance.cluster import NotSupported, StepFailed
from conformance.partition import Story
from conformance.telling import CAPABILITY_APIS, objection, outcome, telling
from conformance.waiting import DeadlinePassed
from conformance.wire import BrokerUnreachable, ConnectionClosed, MalformedAnswer, NoAnswerInTime


def ask(story: Story, offset: int, *, name: str = "latest") -> None:
    accepted, observed = (answer(offset=3),), Observation({"error": 0, "offset": offset})
    story.add(name, "latest", accepted, observed, judge(accepted, observed))


BREAKS: dict[Verdict, list[Exception]] = {
    Verdict.UNSUPPORTED: [NotSupported("no create_topics")],
    Verdict.INCONCLUSIVE: [
        StepFailed("create topic: refused"),
        DeadlinePassed("retention: not within 5 s"),
        ConnectionClosed("n, fetch v4: closed"),
        NoAnswerInTime("n, fetch v4: nothing within 10 s"),
        MalformedAnswer("n, fetch v4: a frame of -1 bytes"),
    ],
    Verdict.BROKEN: [BrokerUnreachable("n: Connection refused")],
}


@pytest.mark.parametrize(
    ("verdict", "error"),
    [(verdict, error) for verdict, errors in BREAKS.items() for error in errors],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_a_story_that_breaks_off_is_recorded_with_its_reason_and_does_not_get_out(
    verdict: Verdict, error: Exception
) -> None:
    told = story()
    with telling(told):
        ask(told, 3)
        raise error
    assert [each.name for each in told.checks] == ["latest", "story"]
    assert told.checks[-1].judgement == Judgement(verdict, reason=str(error))


def test_a_mistake_of_ours_is_recorded_as_broken_and_goes_on() -> None:
    told = story()
    with pytest.raises(KeyError), telling(told):
        raise KeyError("offset")
    assert [each.judgement.verdict for each in told.checks] == [Verdict.BROKEN]
    assert told.checks[0].judgement.reason == "the harness failed: KeyError('offset')"


def test_a_story_that_asked_nothing_is_broken() -> None:
    told = story()
    with telling(told):
        pass
    assert [each.judgement for each in told.checks] == [Judgement(Verdict.BROKEN, reason="the scenario asked nothing")]


def test_a_story_that_was_told_to_its_end_gets_no_further_check() -> None:
    told = story()
    with telling(told):
        ask(told, 3)
        ask(told, 2, name="again")
    assert [each.judgement.verdict for each in told.checks] == [Verdict.CONFORMS, Verdict.DEVIATES]


def test_a_person_who_interrupts_is_not_recorded_as_a_verdict() -> None:
    told = story()
    with pytest.raises(KeyboardInterrupt), telling(told):
        raise KeyboardInterrupt
    assert told.checks == []


def test_each_check_is_handed_on_before_the_next_question() -> None:
    told = story()
    recorded: list[str] = []
    told.record = lambda each: recorded.append(each.id)
    with telling(told):
        ask(told, 3)
        assert recorded == ["latest.sample:latest"]


def test_two_questions_of_one_name_are_a_mistake_in_the_scenario() -> None:
    told = story()
    ask(told, 3)
    with pytest.raises(ValueError, match="two questions named 'latest'"):
        ask(told, 3)


def test_a_need_that_the_backend_declares_absent_makes_a_story_not_applicable() -> None:
    judgement = objection(story("tiered", "retention"), frozenset({"retention"}), {})
    assert judgement == Judgement(Verdict.NOT_APPLICABLE, reason="the backend declares that it has no tiered")


def test_a_need_whose_api_the_broker_does_not_advertise_makes_a_story_unsupported() -> None:
    judgement = objection(story("delete-records"), frozenset({"delete-records"}), {"metadata": (0, 12)})
    assert judgement == Judgement(Verdict.UNSUPPORTED, reason="the broker does not advertise delete_records")


def test_a_story_whose_needs_are_met_can_be_told() -> None:
    apis = {api: (0, 1) for apis in CAPABILITY_APIS.values() for api in apis}
    assert objection(story(*CAPABILITY_APIS), frozenset(CAPABILITY_APIS), apis) is None
    assert objection(story(), frozenset(), {}) is None


def test_the_worst_check_speaks_for_the_story() -> None:
    verdicts = (Verdict.CONFORMS, Verdict.DEVIATES, Verdict.UNSUPPORTED)
    assert outcome([check(judgement=Judgement(verdict)) for verdict in verdicts]) is Verdict.DEVIATES
