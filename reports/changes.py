"""What changed between two runs of a backend, or between a baseline and a run, in order and as text.

For: the order in which changes are told, and the text for a terminal. Left to others: finding them.
"""

from collections import Counter
from collections.abc import Sequence

from reports.model import LEVELS, Change
from reports.outcomes import MEANINGS, OUTCOMES
from reports.words import NAME_LENGTH, TEXT_LENGTH, clean

# A screen of them; the rest is a number, as the first ones tell what happened.
SHOWN_PER_OUTCOME = 20


def place(change: Change) -> tuple[int, int, str, str]:
    """Worst first, and what must hold before what should."""
    level = LEVELS.index(change.level) if change.level in LEVELS else len(LEVELS)
    return OUTCOMES.index(change.outcome), level, change.check, change.backend


def told(changes: Sequence[Change], subject: str, nothing: str) -> str:
    """The changes for a terminal, worst first, each kind with what it means."""
    subject = clean(subject, TEXT_LENGTH)
    counts = Counter(change.outcome for change in changes)
    if not counts:
        return f"{subject}: {nothing}"
    present = [outcome for outcome in OUTCOMES if outcome in counts]
    lines = [f"{subject}: {', '.join(f'{counts[outcome]} {outcome}' for outcome in present)}"]
    for outcome in present:
        of_kind = [change for change in changes if change.outcome == outcome]
        lines += ["", f"{outcome}: {MEANINGS[outcome]}"]
        lines += [f"  {one_line(change)}" for change in of_kind[:SHOWN_PER_OUTCOME]]
        if len(of_kind) > SHOWN_PER_OUTCOME:
            lines.append(f"  and {len(of_kind) - SHOWN_PER_OUTCOME} more")
    return "\n".join(lines)


def one_line(change: Change) -> str:
    """One change on one line, safe to print."""
    why = f": {clean(change.reason, TEXT_LENGTH)}" if change.reason else ""
    level = f" ({clean(change.level, NAME_LENGTH)})" if change.level else ""
    verdicts = f"{clean(change.before, NAME_LENGTH)} -> {clean(change.after, NAME_LENGTH)}"
    moved = f" [moved: {clean('; '.join(change.moved), TEXT_LENGTH)}]" if change.moved else ""
    return f"{clean(change.check, NAME_LENGTH)}{level} {verdicts}{why}{moved}"
