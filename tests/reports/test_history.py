"""What history tells, on a handful of rows."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from result_lines import check, footer, good_lines, header, not_run

from reports import history, matrix

Rows = list[dict[str, Any]]


def night(number: int, *checks: Rows | dict[str, Any], backend: str = "broker", **inputs: Any) -> Rows:
    """A complete run of one backend, on the given day of the month."""
    run = {"run_id": f"run-{number:02}"}
    started = f"2026-11-{number:02}T02:00:00Z"
    lines = [header(backend, started=started, **inputs), *checks, footer(backend)]
    return [line | run | {"backend": backend} for line in lines]  # type: ignore[operator]


def kept(spark: SparkSession, *nights: Rows) -> DataFrame:
    lines = good_lines(spark, *nights)
    return history.checks(matrix.attempts(lines), matrix.outline(lines))


def seen(spark: SparkSession, *nights: Rows) -> DataFrame:
    return history.sightings(kept(spark, *nights))


def wrong(**changes: Any) -> dict[str, Any]:
    return check(verdict="deviates", **changes)


def test_a_check_is_kept_once_with_its_last_verdict_and_the_inputs_of_its_run(spark: SparkSession) -> None:
    rows = kept(spark, night(1, check(), wrong(attempt=2), backend_version="2.0")).collect()
    assert [(row["verdict"], row["flaky"], row["version"], row["build"]) for row in rows] == [
        ("deviates", True, "2.0", "a jar")
    ]


def test_folding_nights_one_by_one_in_any_order_gives_what_folding_them_together_gives(spark: SparkSession) -> None:
    nights = [night(1, check()), night(2, wrong()), night(3, check(), build="b"), night(4, wrong(revision=2))]
    together = {tuple(map(str, row)) for row in seen(spark, *nights).collect()}
    tables = [seen(spark, each) for each in (nights[2], nights[0], nights[3], nights[1])]
    folded = tables[0]
    for table in tables[1:]:
        folded = history.merged(folded.unionByName(table))
    columns = seen(spark, *nights).columns
    assert {tuple(map(str, row)) for row in folded.select(*columns).collect()} == together


def test_a_deviation_is_first_and_last_seen_and_still_there_or_not(spark: SparkSession) -> None:
    table = seen(
        spark,
        night(1, check(question="a"), wrong(question="b")),
        night(2, wrong(question="a"), wrong(question="b")),
        night(3, wrong(question="a"), check(question="b")),
    )
    found = {row["check"]: row for row in history.deviations_seen(table).collect()}
    a, b = (found[f"latest.one-record:{question}"] for question in "ab")
    assert (a["first_run"], a["last_run"], a["deviating"], a["runs"], a["still"]) == ("run-02", "run-03", 2, 3, True)
    assert (b["first"], b["last_run"], b["still"]) == ("2026-11-01T02:00:00Z", "run-02", False)


def test_a_build_that_answers_now_this_now_that_is_flaky_with_an_interval(spark: SparkSession) -> None:
    nights = [night(number, wrong() if number == 3 else check()) for number in range(1, 11)]
    (flake,) = history.flakes(seen(spark, *nights)).collect()
    assert (flake["runs"], flake["odd"], flake["rate"]) == (10, 1, 0.1)
    # Wilson's 95 % interval for 1 of 10
    assert (round(flake["low"], 4), round(flake["high"], 4)) == (0.0179, 0.4042)
    assert flake["verdicts"] == ["conforms", "deviates"]


def test_a_new_build_or_a_new_revision_that_answers_otherwise_is_no_flake(spark: SparkSession) -> None:
    nights = [night(1, check()), night(2, wrong(), build="b"), night(3, wrong(revision=2))]
    assert history.flakes(seen(spark, *nights)).collect() == []


def test_one_run_that_contradicts_itself_is_a_flake(spark: SparkSession) -> None:
    (flake,) = history.flakes(seen(spark, night(1, check(), wrong(attempt=2)))).collect()
    assert (flake["runs"], flake["odd"], flake["high"]) == (1, 1, 1.0)


def test_the_version_at_which_a_behaviour_changed_is_found_in_the_order_of_versions(spark: SparkSession) -> None:
    def at(number: int, version: str, *checks: Any) -> Rows:
        return night(number, *checks, backend=f"broker@{version}", backend_version=version)

    table = seen(
        spark,
        at(3, "3.9.2", check()),
        at(2, "3.10.0", wrong()),  # after 3.9, although its text sorts before
        at(1, "4.0.0", wrong()),
        at(4, "4.1.0", check(revision=2)),  # another question
    )
    (change,) = history.version_changes(table).collect()
    assert (change["family"], change["from_version"], change["to_version"]) == ("broker", "3.9.2", "3.10.0")
    assert (change["before"], change["after"]) == ("conforms", "deviates")


STORY = check(question="story", verdict="inconclusive")

CHANGES: dict[str, tuple[Rows, Rows, str | None]] = {
    "wrong": ([check()], [wrong()], "regression"),
    "mended": ([wrong()], [check()], "fixed"),
    "declined": ([check()], [check(question="story", verdict="not-applicable")], "became not-applicable"),
    "gone": ([check(), check(question="b")], [check()], "vanished"),
    "one more": ([check()], [check(), check(question="b")], "new"),
    "this and that": ([check()], [check(), wrong(attempt=2)], "flaky"),
    "silent": ([check()], [check(verdict="broken")], "undecided"),
    "asked anew": ([check()], [wrong(revision=2)], "scenario changed"),
    "alike": ([check()], [check()], None),
    "not told": ([STORY], [STORY], None),
    "told at last": ([STORY], [check()], "fixed"),
}


@pytest.fixture(scope="module")
def outcomes(spark: SparkSession) -> dict[str, list[str]]:
    """What became of each case, each a backend of its own: one comparison of two nights for all of them."""
    nights = ([night(n, *case[n - 1], backend=name) for name, case in CHANGES.items()] for n in (1, 2))  # type: ignore[misc]
    before, after = (kept(spark, *lines).localCheckpoint() for lines in nights)
    found: dict[str, list[str]] = {name: [] for name in CHANGES}
    for row in history.changes(before, after).collect():
        found[row["backend"]].append(row["outcome"])
    return found


@pytest.mark.parametrize("name", CHANGES)
def test_what_changed_between_two_nights_has_its_outcome(outcomes: dict[str, list[str]], name: str) -> None:
    expected = CHANGES[name][2]
    assert outcomes[name] == ([expected] if expected else [])


def test_a_file_taken_in_twice_changes_nothing(spark: SparkSession) -> None:
    before, after = (kept(spark, night(number, check(), wrong(question="b"))) for number in (1, 2))
    assert history.changes(before.unionByName(before), after).collect() == []


def test_a_change_names_the_inputs_that_moved(spark: SparkSession) -> None:
    before = night(1, check(), build="old", backend_version="1")
    after = night(2, wrong(reason="off by one", revision=2), build="new", backend_version="1")
    (row,) = history.changes(kept(spark, before), kept(spark, after)).collect()
    assert (row["moved"], row["reason"]) == (["broker build", "scenario revision"], "off by one")


def test_a_scenario_that_a_new_suite_does_not_have_is_our_change(spark: SparkSession) -> None:
    before = night(1, check(), check(scenario="ts.zero"), suite_revision="1")
    after = night(2, check(), suite_revision="2")
    (row,) = history.changes(kept(spark, before), kept(spark, after)).collect()
    assert (row["check"], row["outcome"]) == ("ts.zero:latest", "scenario changed")


def test_a_night_counts_scenarios_and_knows_whether_it_is_complete(spark: SparkSession) -> None:
    lines = good_lines(
        spark,
        night(1, check(question="a"), wrong(question="b"), check(scenario="ts.zero")),
        night(1, check(), backend="torn")[:-1],
        [not_run("absent", run_id="run-01")],
    )
    outline = matrix.outline(lines)
    kept = history.checks(matrix.attempts(lines), outline)
    rows = {row["backend"]: row for row in history.nights(outline, kept).collect()}
    assert (rows["broker"]["deviates"], rows["broker"]["conforms"], rows["broker"]["lines"]) == (1, 1, 5)
    assert {name: (row["complete"], row["asked"]) for name, row in rows.items()} == {
        "broker": (True, True),
        "torn": (False, True),
        "absent": (True, False),
    }
    assert rows["absent"]["started"] == "2026-11-01T02:00:00.000Z"


def test_backends_that_answer_alike_share_a_fingerprint_and_one_against_all_is_odd(spark: SparkSession) -> None:
    def column(backend: str, offset: int, **changes: Any) -> Rows:
        return night(1, check(observed={"offset": offset}, **changes), backend=backend)

    lines = good_lines(
        spark,
        column("a", 1),
        column("b", 2),  # exactly Kafka's as well: what was accepted may hold a time of its own
        column("c", 0, verdict="deviates", grade=None),
    )
    columns = matrix.columns(matrix.runs(matrix.outline(lines)))
    cells = matrix.cells(matrix.last_attempts(matrix.attempts(lines)), columns)
    found = history.fingerprints(cells).collect()
    assert {tuple(row["backends"]): row["odd"] for row in found} == {("a", "b"): False, ("c",): True}
