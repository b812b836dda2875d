"""The tour: every offset question asked of one state of a partition, the answers derived from its records.

The rule is KIP-79's and KIP-734's: a time is answered by the first record in offset order that is not older,
max-timestamp by the first record that is the newest. What Kafka answers beside the rule is said by the story.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NotRequired, TypedDict, Unpack

from conformance.answers import (
    NOT_FOUND,
    UNSUPPORTED_VERSION,
    Accepted,
    Between,
    Wanted,
    advertises_below,
    answer,
    refused,
)
from conformance.cluster import READ_COMMITTED, READ_UNCOMMITTED
from conformance.partition import Partition
from conformance.specs import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    END_OF_TIME,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    NO_TIMESTAMP,
    SPECIAL_SPECS,
    UNKNOWN_NEGATIVE,
    OffsetSpec,
    T,
    at,
    at_epoch,
)

TIMES = (at_epoch(0), at(1500), at(2000), at(2500), at(3500), at(1_000_000_000), END_OF_TIME)
"""Before all records, between them, exactly at one, after those of 2023 but before today, after everything."""

CLOCK_SKEW_MS = 300_000
"""A broker elsewhere may have another idea of now; five minutes is more than any clock that is looked after."""

STORY_MS = 3_600_000
"""No story takes an hour, so what is stamped by the broker during one is not later than that."""


def stamped_now() -> Between:
    """The timestamp that a broker gives to a record while this story runs."""
    now = round(time.time() * 1000)
    return Between(now - CLOCK_SKEW_MS, now + STORY_MS)


class State(TypedDict):
    """What a story knows of its partition when it asks everything.

    `records` are the readable ones: offset -> milliseconds after T, or what the broker stamps. `newest` replaces
    the rule for max-timestamp; `local` is the first offset on local disk where that is not the earliest;
    `tiered` and `pending` are for partitions with remote storage.
    """

    latest: int
    earliest: int
    records: Mapping[int, int | Between]
    newest: NotRequired[tuple[Accepted, ...]]
    local: NotRequired[int]
    tiered: NotRequired[tuple[Accepted, ...]]
    pending: NotRequired[tuple[Accepted, ...]]


def tour(partition: Partition, *, isolation: int = READ_UNCOMMITTED, prefix: str = "", **state: Unpack[State]) -> None:
    """Ask everything. `prefix` tells several tours of one story apart."""
    records = state["records"]
    log_position = {"timestamp": NO_TIMESTAMP}
    expected: dict[OffsetSpec, tuple[Accepted, ...]] = {
        LATEST: (answer(offset=state["latest"], **log_position),),
        EARLIEST: (answer(offset=state["earliest"], **log_position),),
        MAX_TIMESTAMP: state.get("newest", (_newest(records),)),
        EARLIEST_LOCAL: (answer(offset=state.get("local", state["earliest"]), **log_position),),
        LATEST_TIERED: state.get("tiered", (NOT_FOUND,)),
        EARLIEST_PENDING_UPLOAD: state.get("pending", (NOT_FOUND,)),
        UNKNOWN_NEGATIVE: (
            refused(UNSUPPORTED_VERSION),
            _first_not_older(records, UNKNOWN_NEGATIVE).when(
                advertises_below(9), "KAFKA-17331: taken for an ordinary time before there was a gate"
            ),
        ),
    } | {spec: (_first_not_older(records, spec),) for spec in TIMES}
    for spec, accepted in expected.items():
        partition.expect(spec, *accepted, check=f"{prefix}{spec.name}", isolation=isolation)


def committed_tour(partition: Partition, **state: Unpack[State]) -> None:
    """Ask everything as a reader of committed records does, after a tour of the same story."""
    tour(partition, isolation=READ_COMMITTED, prefix="committed-", **state)


def tour_of_errors(partition: Partition, error: int) -> None:
    """Ask everything of a partition that is not there: each question is refused with the same error.

    A number that is no spec may be refused as such before anybody looks for the partition.
    """
    for spec in (*SPECIAL_SPECS, *TIMES):
        partition.expect(spec, refused(error))
    partition.expect(UNKNOWN_NEGATIVE, refused(UNSUPPORTED_VERSION), refused(error).legal("order of checks is free"))


def _newest(records: Mapping[int, int | Between]) -> Accepted:
    if not records:
        return NOT_FOUND
    newest = max(records, key=lambda offset: (_lowest(records[offset]), -offset))
    return answer(offset=newest, timestamp=_wanted(records[newest]))


def _first_not_older(records: Mapping[int, int | Between], spec: OffsetSpec) -> Accepted:
    for offset in sorted(records):
        if _lowest(records[offset]) >= spec.timestamp:
            return answer(offset=offset, timestamp=_wanted(records[offset]))
    return NOT_FOUND


def _lowest(stamp: int | Between) -> int:
    if isinstance(stamp, Between):
        return stamp.low or 0
    return T + stamp


def _wanted(stamp: int | Between) -> Wanted:
    return stamp if isinstance(stamp, Between) else T + stamp
