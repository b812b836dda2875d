"""What the matrix says of a handful of lines."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from result_lines import check, footer, good_lines, header, not_run

from reports import matrix
from reports.model import VERDICTS

LATER = "2026-11-19T08:00:00Z"


def columns(lines: DataFrame) -> dict[str, Any]:
    return {row["backend"]: row for row in matrix.columns(matrix.runs(matrix.outline(lines))).collect()}


def grid(lines: DataFrame) -> DataFrame:
    """Its parts are computed first, as in a report: planning it in one piece takes longer than all of it."""
    shown = matrix.columns(matrix.runs(matrix.outline(lines))).localCheckpoint()
    attempts = matrix.last_attempts(matrix.attempts(lines)).localCheckpoint()
    return matrix.grid(matrix.scenarios(attempts), shown, matrix.cells(attempts, shown))


def cells(lines: DataFrame) -> dict[tuple[str, str], Any]:
    return {(row["scenario"], row["backend"]): row for row in grid(lines).collect()}


def test_a_run_with_header_and_footer_is_complete(spark: SparkSession) -> None:
    lines = good_lines(spark, [header(), check(), footer()])
    assert columns(lines)["broker"]["status"] == "complete"


@pytest.mark.parametrize(
    "cut",
    [[header(), check()], [header()], [check(), footer()], [check()]],
    ids=lambda lines: f"{len(lines)}",
)
def test_a_file_without_header_or_footer_is_a_run_cut_off(spark: SparkSession, cut: list[Any]) -> None:
    assert columns(good_lines(spark, cut))["broker"]["status"] == "cut off"


def test_one_worker_without_a_footer_cuts_off_the_whole_column(spark: SparkSession) -> None:
    lines = good_lines(
        spark,
        [header(worker="gw0"), check(worker="gw0"), footer(worker="gw0")],
        [header(worker="gw1"), check(worker="gw1")],
    )
    assert columns(lines)["broker"]["status"] == "cut off"


@pytest.mark.parametrize("refusal", [[not_run()], [header(), not_run()], [header(), not_run(), footer()]])
def test_a_backend_that_would_not_start_is_a_column_not_run_with_its_reason(
    spark: SparkSession, refusal: list[Any]
) -> None:
    lines = good_lines(spark, refusal, [header("other"), check("other"), footer("other")])
    column = columns(lines)["broker"]
    assert (column["status"], column["not_run"]) == ("not run", ["its image would not start"])
    assert cells(lines)["latest.one-record", "broker"]["outcome"] == "not run"


def test_a_scenario_that_a_column_lacks_is_missing_there(spark: SparkSession) -> None:
    lines = good_lines(
        spark,
        [header("one"), check("one", "latest.a"), footer("one")],
        [header("two"), check("two", "latest.b"), footer("two")],
    )
    outcomes = {key: row["outcome"] for key, row in cells(lines).items()}
    assert outcomes == {
        ("latest.a", "one"): "conforms",
        ("latest.a", "two"): "missing",
        ("latest.b", "one"): "missing",
        ("latest.b", "two"): "conforms",
    }


def test_a_cell_shows_the_worst_verdict_in_order_and_counts_them_all(spark: SparkSession) -> None:
    # One scenario per verdict, each with a check of that verdict and one of every better one.
    checks = [
        check(scenario=f"rank.from-{worst}", question=verdict, verdict=verdict)
        for position, worst in enumerate(VERDICTS)
        for verdict in VERDICTS[position:]
    ]
    found = cells(good_lines(spark, [header(), *checks, footer()]))
    assert VERDICTS == ("deviates", "broken", "inconclusive", "conforms", "unsupported", "not-applicable")
    for position, worst in enumerate(VERDICTS):
        cell = found[f"rank.from-{worst}", "broker"]
        assert cell["outcome"] == worst
        assert cell["counts"].asDict() == {verdict: int(verdict in VERDICTS[position:]) for verdict in VERDICTS}


def test_the_last_attempt_wins_even_when_another_worker_made_it(spark: SparkSession) -> None:
    lines = good_lines(
        spark,
        [header(), check(verdict="conforms", attempt=10, worker="gw1"), footer()],
        [header(), check(verdict="deviates", attempt=9, started=LATER), footer()],
    )
    cell = cells(lines)["latest.one-record", "broker"]
    assert (cell["outcome"], cell["counts"]["deviates"]) == ("conforms", 0)


def test_the_newest_run_of_a_backend_is_the_one_shown(spark: SparkSession) -> None:
    # The names of the runs sort the other way round, and so does the text of the fractions of the second.
    lines = good_lines(
        spark,
        [header(run_id="z", started="2026-11-18T08:00:00Z"), check(run_id="z"), footer(run_id="z")],
        [
            header(run_id="a", started="2026-11-18T08:00:00.5Z"),
            check(run_id="a", verdict="deviates"),
            footer(run_id="a"),
        ],
    )
    assert columns(lines)["broker"]["run_id"] == "a"
    assert cells(lines)["latest.one-record", "broker"]["outcome"] == "deviates"


def test_backends_may_each_have_a_newest_run_of_their_own(spark: SparkSession) -> None:
    lines = good_lines(
        spark,
        [header("one", run_id="old"), check("one", run_id="old"), footer("one", run_id="old")],
        [header("two", run_id="new", started=LATER), check("two", run_id="new"), footer("two", run_id="new")],
    )
    assert {name: row["run_id"] for name, row in columns(lines).items()} == {"one": "old", "two": "new"}


def test_a_backend_that_did_not_start_in_the_newest_run_does_not_show_its_older_answers(
    spark: SparkSession,
) -> None:
    lines = good_lines(
        spark,
        [header(run_id="old"), check(run_id="old"), footer(run_id="old")],
        [header("other", run_id="new", started=LATER), footer("other", run_id="new")],
        [not_run(run_id="new")],  # without a header it is as new as the rest of its run
    )
    assert columns(lines)["broker"]["status"] == "not run"
    assert cells(lines)["latest.one-record", "broker"]["outcome"] == "not run"


def test_the_files_of_two_workers_make_one_column(spark: SparkSession) -> None:
    lines = good_lines(
        spark,
        [header(worker="gw0"), check(question="a", worker="gw0"), footer(worker="gw0")],
        [header(worker="gw1"), check(question="b", worker="gw1"), footer(worker="gw1")],
    )
    assert columns(lines)["broker"]["status"] == "complete"
    assert cells(lines)["latest.one-record", "broker"]["counts"]["conforms"] == 2


def test_a_scenario_is_disputed_when_an_oracle_deviates_and_only_then(spark: SparkSession) -> None:
    lines = good_lines(
        spark,
        [
            header("kafka", oracle=True),
            check("kafka", "latest.a", verdict="deviates"),
            check("kafka", "latest.b"),
            footer("kafka"),
        ],
        [header(), check(scenario="latest.a"), check(scenario="latest.b", verdict="deviates"), footer()],
    )
    disputed = {key: row["disputed"] for key, row in cells(lines).items()}
    assert disputed == {
        ("latest.a", "kafka"): True,
        ("latest.a", "broker"): True,
        ("latest.b", "kafka"): False,
        ("latest.b", "broker"): False,
    }


def test_tallies_count_every_scenario_seen_for_every_backend(spark: SparkSession) -> None:
    lines = good_lines(
        spark,
        [
            header("one"),
            check("one", "latest.a"),
            check("one", "latest.b", verdict="deviates"),
            footer("one"),
        ],
        [header("two"), check("two", "latest.c", level="MAY"), footer("two")],
    )
    tallies = {
        (row["level"], row["backend"]): (
            row["scenarios"],
            {outcome: count for outcome, count in row["counts"].asDict().items() if count},
        )
        for row in matrix.tallies(grid(lines)).collect()
    }
    assert tallies == {
        ("MUST", "one"): (2, {"conforms": 1, "deviates": 1}),
        ("MUST", "two"): (2, {"missing": 2}),
        ("MAY", "one"): (1, {"missing": 1}),
        ("MAY", "two"): (1, {"conforms": 1}),
    }


def test_a_deviation_stands_beside_the_answer_of_the_newest_apache_kafka_of_its_run(
    spark: SparkSession,
) -> None:
    def oracle(version: str, offset: int | None, **changes: Any) -> list[Any]:
        name = f"kafka@{version}"
        answer = None if offset is None else {"offset": offset}
        return [
            header(name, oracle=True, backend_version=version, **changes),
            check(name, observed=answer, **changes),
            footer(name, **changes),
        ]

    lines = good_lines(
        spark,
        [header(), check(verdict="deviates", observed={"offset": 0}), footer()],
        oracle("4.9.0", 9),
        oracle("4.10.0", 10),
        oracle("4.11.0", None),  # fell silent, so it has nothing to show
        oracle("5.0.0", 50, run_id="another"),
    )
    runs = matrix.runs(matrix.outline(lines))
    found = matrix.deviations(matrix.last_attempts(matrix.attempts(lines)), runs, matrix.columns(runs)).collect()
    assert [(row["backend"], row["check"]) for row in found] == [("broker", "latest.one-record:latest")]
    assert (found[0]["oracle_backend"], found[0]["oracle_observed"]) == ("kafka@4.10.0", '{"offset":10}')
    assert found[0]["observed"] == '{"offset":0}'


def test_a_deviation_in_a_run_without_apache_kafka_stands_alone(spark: SparkSession) -> None:
    lines = good_lines(spark, [header(), check(verdict="deviates"), footer()])
    runs = matrix.runs(matrix.outline(lines))
    found = matrix.deviations(matrix.last_attempts(matrix.attempts(lines)), runs, matrix.columns(runs)).collect()
    assert [row["oracle_observed"] for row in found] == [None]
