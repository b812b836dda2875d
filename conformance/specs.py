"""What a ListOffsets request may ask of a partition: the six special timestamps, and points in time."""

from __future__ import annotations

from dataclasses import dataclass

NO_OFFSET = -1
"""The offset of an answer that names no record."""

NO_TIMESTAMP = -1
"""The timestamp of an answer that is about the log rather than about one record."""


@dataclass(frozen=True)
class OffsetSpec:
    """One question: the number that goes into the timestamp field, and its name in every report.

    `since` is the first ListOffsets version in which the number has its meaning. Asking below it is
    allowed here (a scenario may want to see the refusal); a well-behaved client would not.
    """

    name: str
    timestamp: int
    since: int = 1

    @property
    def is_core(self) -> bool:
        """Whether every consumer depends on the answer, so that declining to give one is a deviation."""
        return self.timestamp >= 0 or self in (LATEST, EARLIEST)


LATEST = OffsetSpec("latest", -1)
EARLIEST = OffsetSpec("earliest", -2)
MAX_TIMESTAMP = OffsetSpec("max-timestamp", -3, since=7)  # KIP-734
EARLIEST_LOCAL = OffsetSpec("earliest-local", -4, since=8)  # KIP-405
LATEST_TIERED = OffsetSpec("latest-tiered", -5, since=9)  # KIP-1005
EARLIEST_PENDING_UPLOAD = OffsetSpec("earliest-pending-upload", -6, since=11)  # KIP-1023

SPECIAL_SPECS = (LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD)

UNKNOWN_NEGATIVE = OffsetSpec("unknown-negative", -7)
"""The first negative number without a meaning in any Kafka release so far."""

END_OF_TIME = OffsetSpec("end-of-time", 2**63 - 1)
"""The largest timestamp that the field can carry: no record is that late."""

T = 1_700_000_000_000
"""The moment (14 November 2023) from which scenarios count their record timestamps.

Fixed, so that answers can be compared between runs and versions; in the past, so that no broker refuses a
record as coming from the future. Topics are created with retention.ms=-1 so that nothing expires by itself.
"""


def at(millis: int) -> OffsetSpec:
    """The first record at or after `T + millis`."""
    return OffsetSpec(f"at+{millis}", T + millis)


def at_epoch(timestamp: int) -> OffsetSpec:
    """The first record at or after an absolute time in milliseconds."""
    return OffsetSpec(f"at-{timestamp}", timestamp)


def parse_spec(text: str) -> OffsetSpec:
    """The spec for a name, a special number or a timestamp in milliseconds, as a person types it.

    Negative numbers without a name are allowed: what a broker says to them is an offset question too.
    """
    names = {spec.name: spec.timestamp for spec in SPECIAL_SPECS}
    try:
        timestamp = names[text] if text in names else int(text)
    except ValueError:
        known = ", ".join(names)
        raise ValueError(f"{text!r} is no offset spec: use {known}, -1 to -6, or milliseconds since 1970") from None
    if not -(2**63) <= timestamp < 2**63:
        raise ValueError(f"{text} does not fit the 64 bits of a timestamp")
    special = {spec.timestamp: spec for spec in SPECIAL_SPECS}
    return special.get(timestamp, OffsetSpec(str(timestamp), timestamp))
