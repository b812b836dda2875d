"""`offsets check`, `diff` and `baseline`: every outcome and every exit code, one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from result_lines import check, footer, header, not_run, text
from whole_runs import ROOT, ended, offsets, suites

from offsets.__main__ import main

BASELINE = """
backend = "broker"
[[known]]
verdict = "deviates"
reason = "times are rounded"
bug = "https://example.org/1"
ids = ["ts.exact"]
[[known]]
verdict = "flaky"
reason = "a race"
bug = "https://example.org/2"
ids = ["ts.zero"]
[[known]]
verdict = "not-applicable"
reason = "no retention"
ids = ["ret.emptied"]
"""

KNOWN = [
    check(scenario="latest.one-record"),
    check(scenario="ts.exact", verdict="deviates"),
    check(scenario="ts.zero"),
    check(scenario="ret.emptied", question="story", verdict="not-applicable"),
]
"""What the baseline expects, all of it."""

EXACT = "ts.exact:latest"


def run(results: Path, *checks: dict[str, Any], run_id: str = "run-1", **inputs: Any) -> None:
    """A complete run of `broker`."""
    lines = [header(run_id=run_id, **inputs), *(line | {"run_id": run_id} for line in checks), footer(run_id=run_id)]
    (results / f"{run_id}.broker.ndjson").write_text(text(lines))


def changed(scenario: str, question: str = "latest", **changes: Any) -> list[dict[str, Any]]:
    """What the baseline expects, but for one check."""
    others = [line for line in KNOWN if line["scenario"] != scenario]
    return [*others, check(scenario=scenario, question=question, **changes)]


@pytest.fixture
def hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Holds a run of these checks against the baseline; gives the exit code and what was printed."""

    def hold(*checks: dict[str, Any], options: tuple[str, ...] = ()) -> tuple[int, str]:
        (tmp_path / "b.toml").write_text(BASELINE)
        run(tmp_path, *checks)
        baseline = str(tmp_path / "b.toml")
        code = main(["check", "last", "--baseline", baseline, "--results", str(tmp_path), *options])
        return code, capsys.readouterr().out

    return hold


def test_a_run_that_is_as_expected_ends_in_0(hold: Any) -> None:
    assert hold(*KNOWN) == (0, "broker in run run-1: as its baseline expects\n")


@pytest.mark.parametrize("verdict", ["deviates", "unsupported"])
def test_an_unlisted_deviation_is_a_regression_and_ends_in_1(hold: Any, verdict: str) -> None:
    code, out = hold(*changed("latest.one-record", verdict=verdict, reason="off by one"))
    assert code == 1
    assert f"  latest.one-record:latest (MUST) conforms -> {verdict}: off by one" in out


def test_becoming_not_applicable_is_a_regression_and_ends_in_1(hold: Any) -> None:
    code, out = hold(*changed("latest.one-record", "story", verdict="not-applicable"))
    assert code == 1
    assert "1 became not-applicable" in out


def test_an_answer_where_none_was_expected_is_new_and_ends_in_1_when_it_is_wrong(hold: Any) -> None:
    code, out = hold(*changed("ret.emptied", verdict="deviates"))
    assert (code, "1 new" in out) == (1, True)


def test_a_listed_deviation_that_is_fixed_ends_in_2(hold: Any) -> None:
    code, out = hold(*changed("ts.exact"))
    assert (code, "1 fixed" in out) == (2, True)


def test_a_listed_deviation_that_is_no_longer_asked_has_vanished_and_ends_in_3(hold: Any) -> None:
    code, out = hold(*(line for line in KNOWN if line["scenario"] != "ts.exact"))
    assert (code, "1 vanished" in out) == (3, True)


@pytest.mark.parametrize("verdict", ["inconclusive", "broken"])
def test_no_answer_that_could_be_judged_ends_in_3(hold: Any, verdict: str) -> None:
    code, out = hold(*changed("latest.one-record", verdict=verdict))
    assert (code, "1 undecided" in out) == (3, True)


def test_a_check_that_came_out_differently_when_asked_again_is_flaky_and_ends_in_3(hold: Any) -> None:
    again = check(scenario="latest.one-record", verdict="deviates", attempt=2)
    code, out = hold(*KNOWN, again)
    assert (code, "one verdict -> conforms, then deviates" in out) == (3, True)


def test_a_check_that_is_listed_as_flaky_may_be(hold: Any) -> None:
    assert hold(*KNOWN, check(scenario="ts.zero", verdict="deviates", attempt=2))[0] == 0


def test_a_wrong_answer_matters_more_than_a_stale_entry_and_that_more_than_none(hold: Any) -> None:
    stale = changed("ts.exact")
    assert hold(*stale, check(scenario="ts.between", verdict="inconclusive"))[0] == 2
    assert hold(*stale, check(scenario="ts.between", verdict="deviates"))[0] == 1


def test_a_run_that_was_cut_off_ends_in_3_even_if_all_it_asked_was_right(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(BASELINE)
    (tmp_path / "run-1.broker.ndjson").write_text(text([header(), *KNOWN]) + '{"kind": "che')
    assert main(["check", "last", "--baseline", str(tmp_path / "b.toml"), "--results", str(tmp_path)]) == 3


def test_a_broker_that_did_not_start_ends_in_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.toml").write_text(BASELINE)
    (tmp_path / "run-1.broker.ndjson").write_text(text([not_run()]))
    assert main(["check", "last", "--baseline", str(tmp_path / "b.toml"), "--results", str(tmp_path)]) == 4
    assert "broker did not run: its image would not start" in capsys.readouterr().err


def test_a_run_of_another_backend_ends_in_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.toml").write_text(BASELINE.replace('"broker"', '"other"'))
    run(tmp_path, *KNOWN)
    assert main(["check", "last", "--baseline", str(tmp_path / "b.toml"), "--results", str(tmp_path)]) == 4
    assert "has nothing of other" in capsys.readouterr().err


@pytest.mark.parametrize("baseline", [None, "backend = 5"])
def test_a_baseline_that_is_none_ends_in_5(tmp_path: Path, baseline: str | None) -> None:
    if baseline:
        (tmp_path / "b.toml").write_text(baseline)
    run(tmp_path, *KNOWN)
    assert main(["check", "last", "--baseline", str(tmp_path / "b.toml"), "--results", str(tmp_path)]) == 5


def test_with_a_profile_only_its_rules_are_judged(hold: Any) -> None:
    wrong = [check(scenario="ts.exact"), check(scenario="latest.one-record"), check(scenario="ts.zero")]
    assert hold(*wrong, options=("--profile", "core@1"))[0] == 0
    assert hold(*wrong, options=("--profile", "timestamps@1"))[0] == 2
    assert hold(*wrong, options=("--profile", "colours"))[0] == 5


# -- diff


def diff(results: Path, before: list[dict[str, Any]], after: list[dict[str, Any]], **inputs: Any) -> int:
    run(results, *before, run_id="1")
    run(results, *after, run_id="2", **inputs)
    return main(["diff", "last~1", "last", "--results", str(results)])


ONE = "latest.one-record"


@pytest.mark.parametrize(
    ("before", "after", "outcome", "code"),
    [
        ("conforms", "deviates", "regression", 1),
        ("conforms", "not-applicable", "became not-applicable", 1),
        ("deviates", "conforms", "fixed", 0),
        ("conforms", None, "vanished", 3),
        (None, "deviates", "new", 0),
        ("conforms", "inconclusive", "undecided", 3),
    ],
)
def test_every_change_between_two_runs_is_named_and_has_its_exit_code(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    before: str | None,
    after: str | None,
    outcome: str,
    code: int,
) -> None:
    always = check(scenario="ts.zero")
    one, other = ([always, *([check(verdict=verdict)] if verdict else [])] for verdict in (before, after))
    assert diff(tmp_path, one, other) == code
    assert f"1 {outcome}" in capsys.readouterr().out.splitlines()[0]


def test_two_runs_alike_end_in_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(tmp_path, KNOWN, KNOWN) == 0
    assert capsys.readouterr().out == "broker, 1 -> 2: nothing changed\n"


def test_a_flaky_check_is_told_as_that_and_ends_in_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(tmp_path, [check()], [check(), check(verdict="deviates", attempt=2)]) == 3
    assert "1 flaky" in capsys.readouterr().out


def test_a_story_that_is_declined_now_takes_its_checks_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = [check(question="story", verdict="not-applicable", reason="no batches here")]
    assert diff(tmp_path, [check(question="a"), check(question="b")], after) == 1
    out = capsys.readouterr().out
    assert out.startswith("broker, 1 -> 2: 2 became not-applicable\n")
    assert f"{ONE}:a (MUST) conforms -> not-applicable: no batches here" in out


def test_a_story_that_is_told_to_its_end_now_has_vanished_nowhere(tmp_path: Path) -> None:
    assert diff(tmp_path, [check(question="story", verdict="inconclusive")], [check(question="a")]) == 0


def test_a_change_of_our_own_scenario_is_nobodys_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(tmp_path, [check()], [check(verdict="deviates", revision=2)], suite_revision="new") == 0
    out = capsys.readouterr().out
    assert "1 scenario changed" in out
    assert "scenario revision" in out


def test_a_scenario_that_a_new_suite_does_not_have_did_not_vanish_by_the_brokers_doing(tmp_path: Path) -> None:
    always = check(scenario="ts.zero")
    assert diff(tmp_path, [always, check()], [always], suite_revision="new") == 0
    assert diff(tmp_path, [always, check()], [always]) == 3


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"build": "another jar"}, "moved: broker build: a jar -> another jar"),
        ({"backend_version": "2"}, "moved: broker version: unknown -> 2"),
        ({"clients": {"kio": "0.7"}}, "moved: client: kio 0.6.5 -> kio 0.7"),
        ({"suite_revision": "abc"}, "moved: suite: unknown -> abc"),
        ({"host": {"system": "BSD"}}, "moved: host: system Linux -> system BSD"),
    ],
)
def test_the_input_that_moved_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], inputs: dict[str, Any], told: str
) -> None:
    assert diff(tmp_path, [check()], [check(verdict="deviates")], **inputs) == 1
    out = capsys.readouterr().out
    assert told in out
    assert f"[{told.rpartition(': ')[0].replace(': ', ': ', 1)}]" in out


def test_a_diff_of_a_run_that_is_not_there_or_of_one_with_itself_says_so(tmp_path: Path) -> None:
    run(tmp_path, *KNOWN)
    assert main(["diff", "last", "last~1", "--results", str(tmp_path)]) == 4
    assert main(["diff", "last", "run", "--results", str(tmp_path)]) == 5


def test_what_a_hostile_file_says_does_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nasty = check(verdict="deviates", question="\x1b[2J", reason="\x1b]0;title\x07\u202e")
    diff(tmp_path, [], [nasty], build="\x1b[31m")
    out = capsys.readouterr().out
    assert "1 new" in out
    assert all(letter.isprintable() or letter == "\n" for letter in out)


# -- baseline


def test_a_written_baseline_makes_the_run_as_expected(tmp_path: Path) -> None:
    run(tmp_path, *KNOWN, check(scenario="ts.between", verdict="deviates"))
    file = str(tmp_path / "new" / "b.toml")
    results = ["--results", str(tmp_path)]
    assert main(["baseline", "write", "last", "broker", file, *results]) == 0
    assert main(["check", "last", "--baseline", file, *results]) == 0
    assert main(["baseline", "lint", file]) == 5  # a deviation without a link


def test_a_baseline_of_another_backend_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text('backend = "other"\n')
    run(tmp_path, *KNOWN)
    file = str(tmp_path / "b.toml")
    assert main(["baseline", "write", "last", "broker", file, "--results", str(tmp_path)]) == 5
    assert (tmp_path / "b.toml").read_text() == 'backend = "other"\n'


# -- the real thing: librdkafka's mock, its real deviations, its real baseline

MOCK = str(ROOT / "baselines" / "librdkafka-mock.toml")


def test_the_mock_is_as_its_baseline_expects_in_pytest_and_in_check(tmp_path: Path) -> None:
    code, said = ended(suites(tmp_path, "--backend=librdkafka-mock", f"--baseline={MOCK}"))
    assert code == 0, said
    assert "xfailed" in said
    ran = offsets("check", "last", "--baseline", MOCK, "--results", str(tmp_path))
    assert ran.code == 0, ran.out


def test_in_pytest_a_listed_deviation_that_conforms_fails_and_so_does_an_unlisted_one(tmp_path: Path) -> None:
    baseline = tmp_path / "b.toml"
    baseline.write_text(
        'backend = "librdkafka-mock"\n[[known]]\nverdict = "deviates"\nreason = ""\nids = ["latest.one-record"]\n'
    )
    wanted = [f"--scenario={id}" for id in ("latest.one-record", "ts.exact", "ret.emptied", "latest.empty-partition")]
    code, said = ended(suites(tmp_path, "--backend=librdkafka-mock", f"--baseline={baseline}", *wanted, "--tb=short"))
    assert code == 1
    assert "latest.one-record:latest: expected deviates, got conforms" in said
    assert "ts.exact:at+200: expected conforms, got deviates" in said
    assert "ret.emptied:story: expected conforms, got not-applicable" in said
    assert "1 passed" in said


def test_in_pytest_a_profile_chooses_its_scenarios_and_an_unknown_one_is_a_mistake(tmp_path: Path) -> None:
    code, said = ended(suites(tmp_path, "--backend=librdkafka-mock", "--profile=ingest-storage", "--collect-only"))
    assert (code, "23/" in said) == (0, True), said
    assert ended(suites(tmp_path, "--backend=librdkafka-mock", "--profile=colours"))[0] == 4  # pytest's own code
