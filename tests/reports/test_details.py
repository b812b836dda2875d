"""Every check of the runs that are shown, bounded, with what it was judged by."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from result_lines import Line, check, good_lines, header, text, write

from reports import details, matrix
from reports.details import CheckDetail, Wanted

KAFKA = "apache-kafka@4.3.1"


def exchange(number: int, text: str = "") -> Line:
    return {"api": "list_offsets", "version": number, "node": "h:1", "request": text, "response": "", "ms": 1.5}


@pytest.fixture
def shown(tmp_path: Path) -> Any:
    """What is told of the checks of `broker`, a list of lines per file, as (backend, check) with its detail."""

    def tell(*files: list[Line], wanted: Wanted | None = None) -> dict[tuple[str, str], CheckDetail]:
        paths = [write(tmp_path / f"{number}.ndjson", *lines) for number, lines in enumerate(files)]
        told = details.details(paths, wanted or Wanted({"broker": "run-1"}, {}))
        return {(each.backend, each.check): each for each in told}

    return tell


def test_a_check_has_its_last_attempt_and_what_kafka_answered_in_the_same_run(shown: Any) -> None:
    found = shown(
        [check(KAFKA, observed={"offset": 7}), check(KAFKA, observed={"offset": 6}, run_id="run-0")],
        [
            check(verdict="deviates", reason="the second try", attempt=2, evidence=[exchange(7)]),
            check(verdict="deviates", reason="the first try", attempt=1),
        ],
        wanted=Wanted({"broker": "run-1", KAFKA: "run-9"}, {"run-1": [KAFKA], "run-0": [KAFKA]}),
    )
    assert list(found) == [("broker", "latest.one-record:latest")]
    mine = found["broker", "latest.one-record:latest"]
    assert (mine.reason, mine.oracle_backend, mine.oracle_observed) == ("the second try", KAFKA, '{"offset":7}')
    assert mine.exchanges == (details.Exchange("list_offsets", 7, "h:1", "", "", 1.5),)
    assert mine.sources == ("KIP-79",)


def test_the_best_kafka_that_gave_an_answer_speaks_for_kafka(shown: Any) -> None:
    found = shown(
        [check("new", verdict="broken", observed=None)],
        [check("old", observed={"offset": 3})],
        [check()],
        wanted=Wanted({"broker": "run-1"}, {"run-1": ["new", "old"]}),
    )
    assert found["broker", "latest.one-record:latest"].oracle_backend == "old"


def test_the_kafkas_of_a_run_stand_with_the_newest_version_first(spark: SparkSession) -> None:
    lines = good_lines(
        spark,
        [header("kafka@3.9.2", oracle=True, backend_version="3.9.2")],
        [header("kafka@3.10.0", oracle=True, backend_version="3.10.0")],
        [header("broker")],
    )
    rows = matrix.oracles(matrix.runs(matrix.outline(lines))).collect()
    assert [(row["run_id"], row["backends"]) for row in rows] == [("run-1", ["kafka@3.10.0", "kafka@3.9.2"])]


def test_of_two_workers_that_asked_the_same_the_later_one_is_told_as_in_the_matrix(
    spark: SparkSession, shown: Any
) -> None:
    files = [
        [check(worker="gw0", reason="later", started="2026-11-18T08:00:00.5Z")],
        [check(worker="gw1", reason="sooner", started="2026-11-18T08:00:00Z")],
    ]
    (row,) = matrix.last_attempts(matrix.attempts(good_lines(spark, *files))).collect()
    (told,) = shown(*files).values()
    assert told.reason == row["reason"] == "later"


def test_only_the_run_that_a_column_shows_has_its_checks_told(shown: Any) -> None:
    earlier = {"run_id": "run-0", "started": "2026-11-17T08:00:00Z"}
    found = shown([header(**earlier), check(question="old", **earlier), header(), check(question="new")])
    assert {name for _, name in found} == {"latest.one-record:new"}


def test_an_exact_answer_has_its_question_and_another_what_led_up_to_it(shown: Any) -> None:
    wire = [exchange(number) for number in range(1, 8)]
    found = shown(
        [
            check(question="exact", evidence=wire),
            check(question="wrong", verdict="deviates", evidence=wire),
            check(question="none"),
        ]
    )
    told = {
        name.partition(":")[2]: ([e.version for e in each.exchanges], each.exchanged)
        for (_, name), each in found.items()
    }
    assert told == {"exact": ([7], 7), "wrong": ([4, 5, 6, 7], 7), "none": ([], 0)}


def test_every_text_is_bounded(shown: Any) -> None:
    long = "x" * 10_000
    found = shown([check(reason=long, asked=long, observed={"a": long}, evidence=[exchange(1, long)])])
    (one,) = found.values()
    assert max(map(len, (one.reason, one.asked, one.observed))) == details.TEXT_CHARACTERS + 1
    assert len(one.exchanges[0].request) == details.MESSAGE_CHARACTERS + 1


def test_what_deviates_gets_the_room_first_and_the_rest_is_still_counted(
    shown: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(details, "BUDGET_CHARACTERS", 100)
    monkeypatch.setattr(details, "CHECKS", 2)
    wire = [exchange(1, "x" * 60)]
    found = shown(
        [
            check(question="a", evidence=wire),
            check(question="b", evidence=wire),
            check(question="z", verdict="deviates", evidence=wire),
        ]
    )
    told = {name.partition(":")[2]: (len(each.exchanges), each.exchanged) for (_, name), each in found.items()}
    assert told == {"z": (1, 1), "a": (0, 1)}


def test_evidence_is_held_only_as_far_as_there_is_memory_for_it(shown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [check(question=name, evidence=[exchange(1, "x" * 100)]) for name in "abc"]
    monkeypatch.setattr(details, "HELD_CHARACTERS", len(text(lines[:1])))
    lines.append(check(question="wrong", verdict="deviates", evidence=[exchange(1, "x")]))
    told = {name.partition(":")[2]: (len(each.exchanges), each.exchanged) for (_, name), each in shown(lines).items()}
    assert told == {"a": (1, 1), "b": (0, 1), "c": (0, 1), "wrong": (1, 1)}


def test_so_many_checks_are_held_and_those_that_deviate_are_never_crowded_out(
    shown: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(details, "HELD_CHECKS", 1)
    lines = [check(question="a"), check(question="b"), check(question="wrong", verdict="deviates")]
    assert {name.partition(":")[2] for _, name in shown([*lines, lines[0]])} == {"a", "wrong"}


def test_evidence_that_is_not_what_the_suite_writes_is_left_out_and_breaks_nothing(shown: Any) -> None:
    odd: list[Any] = [{"api": None}, {"request": {"not": "text"}}, 5, {"version": "7", "ms": None}]
    (one,) = shown([check(verdict="deviates", evidence=odd)]).values()
    nothing = details.Exchange("", 0, "", "", "", 0.0)
    assert one.exchanges == (nothing, replace(nothing, request='{"not": "text"}'), nothing, nothing)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Killed",
        "[" * 5000,
        json.dumps(check())[:-9],
        json.dumps([check()]),
        json.dumps(check(revision="one")),
        json.dumps(check(verdict="fine")),
        json.dumps(check(evidence=None)),
        json.dumps(header()),
    ],
)
def test_a_line_that_is_no_check_is_passed_over(tmp_path: Path, line: str) -> None:
    file = tmp_path / "run.ndjson"
    file.write_text(line + "\n" + text([check(question="good")]))
    (one,) = details.details([str(file)], Wanted({"broker": "run-1"}, {}))
    assert one.check == "latest.one-record:good"


@pytest.mark.parametrize("started", ["at noon", "0001-01-01T00:00:00", "0001-01-01T00:00:00+05:00"])
def test_an_attempt_that_started_at_no_moment_is_the_earlier_one(shown: Any, started: str) -> None:
    found = shown([check(reason="some time"), check(reason="never", started=started)])
    assert [each.reason for each in found.values()] == ["some time"]


def test_a_moment_without_a_zone_is_utc_as_in_the_matrix(shown: Any) -> None:
    first = check(reason="sooner", started="2026-11-18T08:00:00")
    then = check(reason="later", started="2026-11-18T09:00:01+01:00")
    assert [each.reason for each in shown([then, first]).values()] == ["later"]


def test_a_line_that_counts_for_nothing_is_not_told(shown: Any) -> None:
    good, bad = check(question="good"), check(level="PERHAPS")
    found = shown([bad, good], wanted=Wanted({"broker": "run-1"}, {}, {json.dumps(bad)}))
    assert {name for _, name in found} == {"latest.one-record:good"}


def test_a_number_that_python_cannot_read_makes_a_line_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "run.ndjson"
    file.write_text(json.dumps(check()).replace('"offset": 1', f'"offset": {"9" * 5000}') + "\n")
    assert details.details([str(file)], Wanted({"broker": "run-1"}, {})) == ()
