"""What became of a check, for every pair of verdicts."""

import pytest

from reports.model import MISSING, VERDICTS
from reports.outcomes import MEANINGS, OUTCOMES, SAME, TABLE, outcome


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("conforms", "deviates", "regression"),
        ("conforms", "unsupported", "regression"),
        ("unsupported", "deviates", "regression"),
        ("conforms", "not-applicable", "became not-applicable"),
        ("deviates", "not-applicable", "became not-applicable"),
        ("deviates", "conforms", "fixed"),
        ("unsupported", "conforms", "fixed"),
        ("not-applicable", "conforms", "fixed"),
        ("deviates", "unsupported", "fixed"),
        ("conforms", MISSING, "vanished"),
        ("deviates", MISSING, "vanished"),
        (MISSING, "conforms", "new"),
        (MISSING, "deviates", "new"),
        (MISSING, "not-applicable", "new"),
        ("not-applicable", "deviates", "new"),
        ("inconclusive", "deviates", "new"),
        ("conforms", "inconclusive", "undecided"),
        ("conforms", "broken", "undecided"),
        ("deviates", "deviates", "same"),
    ],
)
def test_an_outcome_follows_from_two_verdicts(before: str, after: str, expected: str) -> None:
    assert outcome(before, after) == expected


def test_nothing_that_passed_ends_in_silence() -> None:
    for after in {*VERDICTS, MISSING} - {"conforms"}:
        assert outcome("conforms", after) not in (SAME, "fixed", "new")


def test_the_table_has_every_pair_and_every_outcome_a_meaning() -> None:
    assert len(TABLE) == (len(VERDICTS) + 1) ** 2
    assert set(OUTCOMES) - {SAME} == set(MEANINGS)
