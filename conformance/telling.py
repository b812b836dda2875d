"""How the end of a story becomes a verdict: what was asked is judged already, the rest is how it broke off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from conformance.answers import Judgement, Silence, Verdict, worst
from conformance.cluster import NotSupported, StepFailed
from conformance.partition import Story
from conformance.results import Check
from conformance.waiting import DeadlinePassed
from conformance.wire import WireError

CAPABILITY_APIS: Mapping[str, tuple[str, ...]] = {
    "delete-records": ("delete_records",),
    "retention": ("create_topics", "incremental_alter_configs"),
    "compaction": ("create_topics", "incremental_alter_configs"),
    "logappendtime": ("create_topics",),
    "tiered": ("create_topics", "incremental_alter_configs"),
    "transactions": ("init_producer_id", "find_coordinator", "add_partitions_to_txn", "end_txn"),
    "idempotence": ("init_producer_id",),
    "groups": ("find_coordinator", "offset_fetch", "offset_commit"),
}
"""The APIs without which a capability cannot be shown; a broker that does not advertise one declines by that."""


def objection(story: Story, capabilities: frozenset[str], apis: Mapping[str, tuple[int, int]]) -> Judgement | None:
    """Why this story cannot be told on this backend at all, if it cannot."""
    needs = story.scenario.entry.needs
    absent = [need for need in needs if need not in capabilities]
    if absent:
        return Judgement(Verdict.NOT_APPLICABLE, reason=f"the backend declares that it has no {', '.join(absent)}")
    unheard = [api for need in needs for api in CAPABILITY_APIS.get(need, ()) if api not in apis]
    if unheard:
        return Judgement(Verdict.UNSUPPORTED, reason=f"the broker does not advertise {', '.join(unheard)}")
    return None


@contextmanager
def telling(story: Story) -> Iterator[None]:
    """Tell a story inside; a step that fails is recorded as the check `story`, and does not get out.

    An exception that no broker can cause is a mistake of ours: it is recorded as broken, and goes on.
    """
    try:
        yield
    except NotSupported as error:
        decline(story, Judgement(Verdict.UNSUPPORTED, reason=str(error)))
    except (StepFailed, DeadlinePassed) as error:
        decline(story, Judgement(Verdict.INCONCLUSIVE, reason=str(error)))
    except WireError as error:
        gone = error.silence is Silence.UNREACHABLE
        decline(story, Judgement(Verdict.BROKEN if gone else Verdict.INCONCLUSIVE, reason=str(error)))
    except Exception as error:
        decline(story, Judgement(Verdict.BROKEN, reason=f"the harness failed: {error!r}"))
        raise
    if not story.checks:
        decline(story, Judgement(Verdict.BROKEN, reason="the scenario asked nothing"))


def decline(story: Story, judgement: Judgement) -> None:
    """Record that a story was not told, or not to its end."""
    story.add("story", "", (), None, judgement)


def outcome(checks: Sequence[Check]) -> Verdict:
    """The verdict of a whole story."""
    return worst([check.judgement.verdict for check in checks])
