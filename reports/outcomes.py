"""What became of a check between two runs, or between what was expected and what came.

For: the outcomes, one pure function that decides among them, and the same decision as a table for Spark.
Left to others: finding what to compare (`offsets.check`, `offsets.diff`, `reports.history`) and what an outcome
means for an exit code.
"""

from collections.abc import Mapping
from typing import Final

from reports.model import MISSING, VERDICTS

REGRESSION: Final = "regression"
NOT_APPLICABLE: Final = "became not-applicable"
VANISHED: Final = "vanished"
FLAKY: Final = "flaky"
UNDECIDED: Final = "undecided"
NEW: Final = "new"
FIXED: Final = "fixed"
OURS: Final = "scenario changed"
SAME: Final = "same"

# Worst first, which is the order in which a person is told. The last one is told to nobody.
OUTCOMES: Final = (REGRESSION, NOT_APPLICABLE, VANISHED, FLAKY, UNDECIDED, NEW, FIXED, OURS, SAME)

MEANINGS: Final[Mapping[str, str]] = {
    REGRESSION: "conformed or declined before, and is answered wrongly or declined now",
    NOT_APPLICABLE: "was asked before, and the backend now declares that it lacks the capability",
    VANISHED: "was asked before, and is not asked now",
    FLAKY: "got different verdicts when asked again in the same run",
    UNDECIDED: "got no answer that could be judged",
    NEW: "was not judged before",
    FIXED: "deviated or was not judged before, and does not deviate now",
    OURS: "the scenario itself changed, so that the two verdicts cannot be compared",
}

# No verdict on an answer: nothing was asked, or nothing came that could be judged.
_UNJUDGED: Final = frozenset({MISSING, "not-applicable", "inconclusive", "broken"})


def outcome(before: str, after: str) -> str:
    """What became of a check whose verdict was `before` and is `after`; `missing` where it was not asked."""
    if before == after:
        return SAME
    match after:
        case "missing":
            return VANISHED
        case "inconclusive" | "broken":
            return UNDECIDED
        case "not-applicable":
            return NEW if before == MISSING else NOT_APPLICABLE
        case "conforms":
            return NEW if before == MISSING else FIXED
        case "unsupported" if before == "deviates":
            return FIXED  # a wrong answer is worse than an honest no
        case _:
            return NEW if before in _UNJUDGED else REGRESSION


# Every pair of verdicts, so that Spark looks up what Python decides.
TABLE: Final[Mapping[tuple[str, str], str]] = {
    (before, after): outcome(before, after) for before in (*VERDICTS, MISSING) for after in (*VERDICTS, MISSING)
}
