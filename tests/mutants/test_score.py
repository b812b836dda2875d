"""What a matrix proves, on a real broker: who survives, who catches nothing, who accuses a legal variation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase

import pytest

from backends.running import RunningBackend
from conformance.answers import Verdict
from mutants.bending import UNBENT, Bending, but, together
from mutants.bugs import MUTANTS, latest
from mutants.matrix import can_notice, run
from mutants.proxy import ProxyThread
from mutants.score import Score, as_json, objections, score
from mutants.stories import Tale, Together, tales, tell
from mutants.variations import VARIATIONS
from offsets.listing import told_functions

HIGHER = latest("latest-is-higher", "A reader waits for ever.", lambda _, told: but(told, offset=told.offset + 5))
HARMLESS = latest("latest-is-latest", "Nothing happens.", lambda _, told: but(told, timestamp=0))
UNASKED = Bending("nobody-asks", "Nobody would know.", {"describe_groups": lambda _asked, _answer, _memory: None})


def stories(*patterns: str) -> list[Tale]:
    return [tale for tale in tales(told_functions()) if any(fnmatchcase(tale.scenario.id, each) for each in patterns)]


Scoring = Callable[[Sequence[Tale], Sequence[Bending], Sequence[Bending]], Score]


@pytest.fixture
def scoring(in_house: RunningBackend, proxies: ProxyThread) -> Scoring:
    def scored(told: Sequence[Tale], mutants: Sequence[Bending], variations: Sequence[Bending]) -> Score:
        matrix = run(in_house, proxies, told, mutants, variations, lambda _doing, _done, _of: None)
        return score(matrix, mutants, variations, in_house.backend.capabilities)

    return scored


def test_a_mutant_that_is_caught_and_a_scenario_that_catches_it_raise_no_objection(scoring: Scoring) -> None:
    result = scoring(stories("latest.one-record"), [HIGHER], [])
    assert objections(result) == []
    assert list(result.mutants[0].caught) == ["latest.one-record"]
    assert result.mutants[0].caught["latest.one-record"] == "latest.one-record:latest: offset is 6 instead of 1"
    assert result.scenarios[0].caught == ("latest-is-higher",)


def test_a_mutant_that_survives_is_told_with_what_no_scenario_noticed(scoring: Scoring) -> None:
    result = scoring(stories("latest.one-record"), [HIGHER, HARMLESS], [])
    (sentence,) = objections(result)
    assert sentence.startswith("latest-is-latest survives: no scenario noticed that “Nothing happens.”")
    assert "1 scenarios met it and none of them called it a deviation (latest.one-record)" in sentence


def test_a_mutant_that_no_scenario_can_notice_survives_too(scoring: Scoring) -> None:
    (sentence,) = objections(scoring(stories("latest.one-record"), [HIGHER, UNASKED], []))
    assert sentence.startswith("nobody-asks survives:")
    assert "no scenario asks what it bends" in sentence


def test_a_scenario_that_catches_nothing_is_named(scoring: Scoring) -> None:
    result = scoring(stories("latest.one-record", "latest.timestamp-minus-one"), [HIGHER], [])
    (sentence,) = objections(result)
    assert sentence.startswith("latest.timestamp-minus-one catches nothing: ")
    assert objections(result, all_mutants=False) == []


def test_a_legal_variation_that_is_called_a_deviation_is_named_with_its_accuser(scoring: Scoring) -> None:
    result = scoring(stories("latest.one-record"), [HIGHER], [HARMLESS, HIGHER])
    (sentence,) = objections(result)
    assert sentence.startswith("latest.one-record calls a legal variation a deviation: latest-is-higher")
    assert sentence.endswith("offset is 6 instead of 1")


def test_a_scenario_that_fails_without_a_mutant_proves_nothing(in_house: RunningBackend, proxies: ProxyThread) -> None:
    with proxies.open(in_house.bootstrap, HIGHER) as broken:
        wrong = _Elsewhere(in_house, broken.address)
        matrix = run(wrong, proxies, stories("latest.one-record"), [HIGHER], [], lambda *_: None)
    result = score(matrix, [HIGHER], [], in_house.backend.capabilities)
    assert objections(result, all_scenarios=False) == [
        "latest.one-record is no measure here: without any mutant it deviates, "
        "latest.one-record:latest: offset is 6 instead of 1"
    ]


class _Elsewhere(RunningBackend):
    """A backend at another address."""

    def __init__(self, real: RunningBackend, address: str) -> None:
        super().__init__(real.backend)
        self._address = address

    def start(self) -> None: ...

    def stop(self) -> None: ...

    @property
    def bootstrap(self) -> str:
        return self._address

    @property
    def build(self) -> str:
        return "elsewhere"


def test_scenarios_that_a_backend_cannot_have_are_listed_and_not_held_against_it(scoring: Scoring) -> None:
    result = scoring(stories("tier.latest-inclusive", "latest.one-record"), [HIGHER], [])
    assert objections(result) == []
    assert "no tiered" in result.absent["tier.latest-inclusive"]


def test_a_mutant_of_something_that_a_backend_lacks_is_not_tried(scoring: Scoring) -> None:
    tiered = Bending("tiered", "", needs=frozenset({"tiered"}))
    result = scoring(stories("latest.one-record"), [HIGHER, tiered], [])
    assert objections(result) == []
    assert as_json(result)["beyond"] == ["tiered"]


def test_every_parameter_of_a_scenario_is_told() -> None:
    told = [tale.arguments for tale in stories("req.unknown-negative")]
    assert told == [{"timestamp": -7}, {"timestamp": -1000}]


def test_only_what_a_story_heard_can_be_noticed(in_house: RunningBackend, proxies: ProxyThread) -> None:
    (tale,) = stories("latest.one-record")
    ending = tell(tale, in_house, proxies, UNBENT, recording=True)
    assert ending.verdict is Verdict.CONFORMS
    noticeable = {bending.name for bending in MUTANTS if can_notice(bending, ending.heard)}
    assert "latest-is-the-last-offset" in noticeable
    assert not noticeable & {"not-found-is-zero", "delete-records-does-nothing", "read-committed-is-ignored"}


def test_legal_variations_are_told_one_by_one_when_their_company_is_accused(scoring: Scoring) -> None:
    result = scoring(stories("latest.one-record"), [], [HIGHER, HARMLESS])
    assert [bool(each.caught) for each in result.variations] == [True, False]


def test_bendings_together_do_what_each_does(in_house: RunningBackend, proxies: ProxyThread) -> None:
    (tale,) = stories("latest.one-record")
    both = together([HIGHER, latest("less", "", lambda _, told: but(told, offset=told.offset - 5))])
    assert tell(tale, in_house, proxies, both).verdict is Verdict.CONFORMS


def test_stories_that_are_told_at_once_restart_their_broker_once() -> None:
    restarts: list[int] = []
    meeting = Together(5, at_once=2)

    def story(number: int) -> None:
        with meeting:
            for _ in range(2 if number else 0):  # one that ends before its restart keeps nobody waiting
                meeting.arrive(lambda: restarts.append(threading.get_ident()))

    with ThreadPoolExecutor(5) as threads:
        list(threads.map(story, range(5)))
    assert len(restarts) == 2


def test_a_restart_that_fails_fails_no_story_but_the_one_that_made_it() -> None:
    meeting = Together(2, at_once=2)

    def fail() -> None:
        raise OSError("will not start")

    def story(_number: int) -> str:
        with meeting:
            try:
                meeting.arrive(fail)
            except OSError as error:
                return str(error)
            return "went on"

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(story, range(2))) == ["went on", "will not start"]


def test_every_bending_has_a_name_of_its_own_and_a_sentence() -> None:
    bendings = [*MUTANTS, *VARIATIONS]
    assert len({bending.name for bending in bendings}) == len(bendings)
    assert all(bending.why.endswith(".") for bending in bendings)
    assert len(MUTANTS) >= 45
    assert len(VARIATIONS) >= 15
