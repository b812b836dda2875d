"""Baselines: reading, matching, checking, proposing."""

from pathlib import Path

import pytest

from conformance import baselines
from conformance.answers import Verdict
from conformance.baselines import BadBaseline, Baseline, Known
from conformance.stored import Inputs, StoredCheck, StoredColumn

ROOT = Path(__file__).parents[2]
BUG = "https://example.org/1"


def column(version: str = "3.8.1", **verdicts: str) -> StoredColumn:
    """A run whose checks are given as `family_scenario__check`."""
    checks = {}
    for name, verdict in verdicts.items():
        scenario, _, question = name.partition("__")
        id = f"{scenario.replace('_', '.', 1).replace('_', '-')}:{question}"
        checks[id] = StoredCheck(id, id.partition(":")[0], 1, "MUST", (Verdict(verdict),), f"why {id}", "")
    return StoredColumn("run", "broker@1", Inputs(version=version), checks, (), True)


def surprises(baseline: Baseline, stored: StoredColumn) -> list[tuple[str, str, str]]:
    verdicts = {id: check.verdict for id, check in stored.checks.items()}
    found = baselines.surprises(baseline, baselines.version_of(stored), verdicts)
    return [(each.check, each.expected, each.got) for each in found]


def test_what_is_not_listed_is_expected_to_conform() -> None:
    stored = column(ts_exact__a="conforms", ts_exact__b="deviates")
    assert surprises(Baseline("broker"), stored) == [("ts.exact:b", "conforms", "deviates")]


def test_a_scenario_stands_for_its_checks_and_a_check_speaks_for_itself() -> None:
    baseline = Baseline("broker", (Known("deviates", ("ts.exact",), "r"), Known("unsupported", ("ts.exact:b",), "r")))
    assert surprises(baseline, column(ts_exact__a="deviates", ts_exact__b="unsupported")) == []
    assert surprises(baseline, column(ts_exact__b="deviates")) == [("ts.exact:b", "unsupported", "deviates")]


def test_a_listed_deviation_that_conforms_is_a_surprise() -> None:
    baseline = Baseline("broker", (Known("deviates", ("ts.exact",), "r"),))
    assert surprises(baseline, column(ts_exact__a="conforms")) == [("ts.exact:a", "deviates", "conforms")]


@pytest.mark.parametrize("verdict", ["conforms", "deviates", "inconclusive"])
def test_what_is_known_to_be_flaky_surprises_nobody(verdict: str) -> None:
    baseline = Baseline("broker", (Known("flaky", ("ts.exact",), "r"),))
    assert surprises(baseline, column(ts_exact__a=verdict)) == []


@pytest.mark.parametrize(
    ("condition", "version", "holds"),
    [
        (">=3.5, <3.9", "3.8.1", True),
        (">=3.5, <3.9", "3.9.0", False),
        ("==3.9", "3.9.0", True),
        ("<3.10", "3.9.2", True),
        (">=3.5", "", False),
        ("", "", True),
    ],
)
def test_an_entry_holds_for_the_versions_that_it_names(condition: str, version: str, holds: bool) -> None:
    assert Known("deviates", ("ts.exact",), "r", versions=condition).holds_for(version) is holds


def test_a_version_is_taken_from_the_build_where_the_backend_has_none() -> None:
    assert baselines.version_in(None, "librdkafka 2.16.0 in confluent-kafka 2.16.1") == "2.16.0"


@pytest.mark.parametrize("name", ["broker", "broker@1.2", "broker(127.0.0.1:9092)"])
def test_a_baseline_is_for_every_version_and_address_of_its_backend(name: str) -> None:
    assert Baseline("broker").is_for(name)
    assert not Baseline("broke").is_for(name)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("backend =", "not TOML"),
        ("", "names no backend"),
        ('backend = "b"\ncolour = "blue"', "'colour' means nothing"),
        (
            'backend = "b"\n[[known]]\nverdict = "conforms"\nids = ["ts.exact"]\nreason = ""',
            "is none of flaky, deviates",
        ),
        ('backend = "b"\n[[known]]\nverdict = "deviates"\nids = []\nreason = ""', "ids is not a list"),
        ('backend = "b"\n[[known]]\nverdict = "deviates"\nids = ["a.b"]', "reason is not a text"),
        (
            'backend = "b"\n[[known]]\nverdict = "deviates"\nids = ["a.b"]\nreason = ""\nversions = "new"',
            "versions 'new' is no condition",
        ),
        ('backend = "b"\n[[known]]\nid = "x"', "'id' means nothing"),
    ],
)
def test_a_baseline_that_cannot_be_used_says_why(text: str, sentence: str) -> None:
    with pytest.raises(BadBaseline, match=sentence):
        baselines.parse(text)


def test_lint_finds_unknown_ids_doubles_and_entries_without_reason_or_link() -> None:
    entry = Known("deviates", ("ts.exact", "ts.never"), "")
    problems = baselines.lint(Baseline("b", (entry, Known("deviates", ("ts.exact",), "r", BUG))))
    assert [problem.partition(": ")[2][:20] for problem in problems] == [
        "say why in `reason`",
        "give the https link ",
        "'ts.never' is not in",
        "'ts.exact' is in ent",
    ]


def test_the_same_id_may_be_listed_for_different_versions() -> None:
    one, other = (Known("deviates", ("ts.exact",), "r", BUG, versions) for versions in ("<3", ">=3"))
    assert baselines.lint(Baseline("b", (one, other))) == []


def test_a_proposal_holds_no_surprise_and_names_a_scenario_where_all_its_checks_agree() -> None:
    stored = column(ts_exact__a="deviates", ts_exact__b="deviates", ts_zero__a="deviates", ts_zero__b="conforms")
    proposed = baselines.propose(stored, BUG)
    assert proposed == Baseline("broker", (Known("deviates", ("ts.exact", "ts.zero:a"), "why ts.exact:a", BUG),))
    assert surprises(proposed, stored) == []


def test_a_proposal_keeps_what_the_run_bears_out_and_drops_what_is_fixed() -> None:
    elsewhere = Known("deviates", ("ts.zero",), "of old versions", BUG, "<3")
    flaky = Known("flaky", ("ts.between",), "a race", BUG)
    old = Baseline("broker", (Known("deviates", ("ts.exact", "ts.far-future"), "by hand", BUG), elsewhere, flaky))
    stored = column(
        ts_exact__a="deviates", ts_far_future__a="conforms", ts_zero__a="conforms", ts_between__a="deviates"
    )
    kept = Known("deviates", ("ts.exact",), "by hand", BUG)
    assert baselines.propose(stored, BUG, old).known == (kept, elsewhere, flaky)


def test_a_rendered_baseline_reads_back_as_itself_whatever_a_broker_said() -> None:
    nasty = 'quote " backslash \\ escape \x1b[31m delete \x7f bell \x07 line\nbreak 😀'
    baseline = Baseline("broker", (Known("deviates", ("ts.exact",), nasty, BUG, ">=1"),))
    read = baselines.parse(baselines.render(baseline))
    assert read.known[0].ids == ("ts.exact",)
    assert read.known[0].reason.isprintable()
    assert 'quote " backslash \\ escape' in read.known[0].reason


@pytest.mark.parametrize("file", sorted((ROOT / "baselines").glob("*.toml")), ids=lambda file: file.stem)
def test_every_baseline_of_the_project_is_in_order_and_named_after_its_backend(file: Path) -> None:
    baseline = baselines.parse(file.read_text())
    assert baselines.lint(baseline) == []
    assert baseline.backend == file.stem
