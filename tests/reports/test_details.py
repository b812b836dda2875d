"""Every check of the runs that are shown, bounded, with what it was judged by."""

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from result_lines import Line, check, good_lines, header

from reports import details, matrix

KAFKA = "apache-kafka@4.3.1"


def exchange(number: int, text: str = "") -> Line:
    return {"api": "list_offsets", "version": number, "node": "h:1", "request": text, "response": "", "ms": 1.5}


def shown(spark: SparkSession, *lines: Line) -> dict[tuple[str, str], Any]:
    asked = good_lines(spark, lines)
    runs, last = matrix.runs(asked), matrix.last_attempts(matrix.attempts(asked))
    rows = details.shown_checks(last, matrix.columns(runs), matrix.oracle_answers(last, runs)).collect()
    return {(each.backend, each.check): each for each in details.details(rows)}


def test_a_check_has_its_last_attempt_and_what_kafka_answered_in_the_same_run(spark: SparkSession) -> None:
    found = shown(
        spark,
        header(KAFKA, oracle=True, backend_version="4.3.1"),
        check(KAFKA, observed={"offset": 7}),
        header(),
        check(verdict="deviates", reason="the first try", attempt=1),
        check(verdict="deviates", reason="the second try", attempt=2, evidence=[exchange(7)]),
    )
    mine = found["broker", "latest.one-record:latest"]
    assert (mine.reason, mine.oracle_backend, mine.oracle_observed) == ("the second try", KAFKA, '{"offset":7}')
    assert mine.exchanges == (details.Exchange("list_offsets", 7, "h:1", "", "", 1.5),)
    assert mine.sources == ("KIP-79",)


def test_only_the_run_that_a_column_shows_has_its_checks_told(spark: SparkSession) -> None:
    earlier = {"run_id": "run-0", "started": "2026-11-17T08:00:00Z"}
    found = shown(spark, header(**earlier), check(question="old", **earlier), header(), check(question="new"))
    assert {name for _, name in found} == {"latest.one-record:new"}


def test_an_exact_answer_has_its_question_and_another_what_led_up_to_it(spark: SparkSession) -> None:
    wire = [exchange(number) for number in range(1, 8)]
    found = shown(
        spark,
        header(),
        check(question="exact", evidence=wire),
        check(question="wrong", verdict="deviates", evidence=wire),
        check(question="none"),
    )
    told = {
        name.partition(":")[2]: ([e.version for e in each.exchanges], each.exchanged)
        for (_, name), each in found.items()
    }
    assert told == {"exact": ([7], 7), "wrong": ([4, 5, 6, 7], 7), "none": ([], 0)}


def test_texts_are_bounded_before_they_are_collected(spark: SparkSession) -> None:
    long = "x" * 10_000
    found = shown(spark, header(), check(reason=long, asked=long, observed={"a": long}, evidence=[exchange(1, long)]))
    (one,) = found.values()
    assert max(map(len, (one.reason, one.asked, one.observed))) == details.TEXT_CHARACTERS + 1
    assert len(one.exchanges[0].request) == details.MESSAGE_CHARACTERS + 1


def test_what_deviates_gets_the_room_first_and_the_rest_is_still_counted(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(details, "BUDGET_CHARACTERS", 100)
    monkeypatch.setattr(details, "CHECKS", 2)
    wire = [exchange(1, "x" * 60)]
    found = shown(
        spark,
        header(),
        check(question="a", evidence=wire),
        check(question="b", evidence=wire),
        check(question="z", verdict="deviates", evidence=wire),
    )
    told = {name.partition(":")[2]: (len(each.exchanges), each.exchanged) for (_, name), each in found.items()}
    assert told == {"z": (1, 1), "a": (0, 1)}


def test_evidence_that_is_not_what_the_suite_writes_is_left_out_and_breaks_nothing(spark: SparkSession) -> None:
    odd: list[Line] = [{"api": None}, {"request": {"not": "text"}}, {}, {"version": "7", "ms": None}]
    (one,) = shown(spark, header(), check(verdict="deviates", evidence=odd)).values()
    nothing = details.Exchange("", 0, "", "", "", 0.0)
    assert one.exchanges == (nothing, replace(nothing, request='{"not": "text"}'), nothing, nothing)


def test_evidence_is_collected_only_as_far_as_the_page_could_use_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(details, "COLLECTED_CHARACTERS", 300)
    wire = [exchange(1, "x" * 100)]
    found = shown(spark, header(), *(check(question=name, evidence=wire) for name in "abc"))
    told = {name.partition(":")[2]: (len(each.exchanges), each.exchanged) for (_, name), each in found.items()}
    assert told == {"a": (1, 1), "b": (0, 1), "c": (0, 1)}


@pytest.mark.parametrize("evidence", ["9" * 5000, "[" * 5000], ids=["a number of 5000 digits", "5000 levels"])
def test_evidence_that_python_cannot_read_is_left_out_and_breaks_nothing(evidence: str) -> None:
    assert details._last_exchanges(evidence, 1) == ()
