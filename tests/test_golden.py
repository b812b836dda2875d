"""What each version of Apache Kafka answers here and now, beside what it answered when the goldens were recorded.

A difference is a scenario that does not bring about the state it names, a setting of ours that changes an answer,
or another Kafka. None may be explained away here: the goldens are not to be edited.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from golden_states import PLAIN, TIERED, TIERED_WITHOUT_EPOCHS, differences, golden
from whole_runs import ALWAYS, SOMETIMES, Checks

BACKENDS = sorted((*ALWAYS, *SOMETIMES))


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_check_of_apache_kafka_deviates_or_is_left_open(backend: str, checks_of: Callable[[str], Checks]) -> None:
    wrong = [
        (line["check"], line["verdict"], line["reason"])
        for line in checks_of(backend)
        if line["verdict"] in ("deviates", "inconclusive", "broken")
    ]
    assert wrong == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_recorded_answers_are_the_golden_ones(backend: str, checks_of: Callable[[str], Checks]) -> None:
    name, _, version = backend.partition("@")
    checks = checks_of(backend)
    if name == "apache-kafka":
        assert differences(checks, golden(f"golden-{version}"), PLAIN) == []
    else:
        answers = golden(f"tiered-{version}")
        assert differences(checks, answers, TIERED) == []
        assert differences(checks, answers, TIERED_WITHOUT_EPOCHS, epochs=False) == []


@pytest.mark.parametrize(
    ("spec", "field", "bent"),
    [
        ("latest", "offset", 1),
        ("at-0", "timestamp", -1),
        ("unknown-negative", "error", 0),
        ("latest", "leader_epoch", 7),
    ],
)
def test_an_answer_that_moved_is_a_difference(
    spec: str, field: str, bent: int, checks_of: Callable[[str], Checks]
) -> None:
    check = f"tour.two:{spec}"
    moved = [
        {**line, "observed": {**line["observed"], field: bent}} if line["check"] == check else line
        for line in checks_of("apache-kafka@4.3.1")
    ]
    (difference,) = differences(moved, golden("golden-4.3.1"), PLAIN)
    assert difference.startswith(check)


def test_a_question_that_was_not_asked_is_a_difference(checks_of: Callable[[str], Checks]) -> None:
    without = [line for line in checks_of("apache-kafka@4.3.1") if line["check"] != "tour.one:latest"]
    assert differences(without, golden("golden-4.3.1"), PLAIN) == ["tour.one:latest (one, -1) was not asked"]
