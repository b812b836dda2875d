"""Is a broker safe for a use? The verdict of a profile on a column of the matrix, as a pure function.

A rule that the backend declines or declares absent is not kept: whoever relies on it would be let down. A rule that
was not asked, or got no answer that could be judged, leaves the verdict open.
"""

from collections.abc import Mapping, Sequence

from reports.model import MISSING, Failure, Matrix, ProfileVerdict

YES = "yes"
NO = "no"
UNKNOWN = "unknown"

_LETS_DOWN = frozenset({"deviates", "unsupported", "not-applicable"})


def verdicts(matrix: Matrix, profiles: Mapping[str, Sequence[str]]) -> tuple[ProfileVerdict, ...]:
    """One verdict per profile and column, in that order. A profile is its name and its rules, scenarios by id."""
    rows = {row.scenario: row for row in matrix.rows}
    found = []
    for profile, rules in profiles.items():
        for place, column in enumerate(matrix.columns):
            outcomes = [
                Failure(rule, row.cells[place].outcome, row.impact) if row else Failure(rule, MISSING, "")
                for rule, row in ((rule, rows.get(rule)) for rule in rules)
            ]
            failures = tuple(each for each in outcomes if each.outcome in _LETS_DOWN)
            kept = sum(each.outcome == "conforms" for each in outcomes)
            unknown = tuple(each for each in outcomes if each.outcome not in (*_LETS_DOWN, "conforms"))
            safe = NO if failures else UNKNOWN if unknown else YES
            found.append(ProfileVerdict(profile, column.backend, safe, len(rules), kept, failures, unknown))
    return tuple(found)
