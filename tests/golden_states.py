"""Which scenario brings a partition into which golden state, and how its recorded answers compare."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from conformance.specs import T

GOLDEN = Path(__file__).parent / "golden"

CHECKS = {
    "-1": "latest",
    "-2": "earliest",
    "-3": "max-timestamp",
    "-4": "earliest-local",
    "-5": "latest-tiered",
    "-6": "earliest-pending-upload",
    "-7": "unknown-negative",
    "ts0": "at-0",
    "T+1500": "at+1500",
    "T+2000": "at+2000",
    "T+2500": "at+2500",
    "T+3500": "at+3500",
    "T+8000": "at+8000",
    "T+9500": "at+9500",
    "T+1e9": "at+1000000000",
    "maxlong": "end-of-time",
}
"""The golden files' name for each question, and the tour's."""

COMMITTED = "committed-"

PLAIN = {
    "empty": "tour.empty:",
    "one": "tour.one:",
    "two": "tour.two:",
    "two.rc": "tour.two:" + COMMITTED,
    "retained_all": "tour.retention-emptied:",
    "retained_then_third": "tour.retention-then-third:",
    "four_segments": "tour.four-segments:",
    "retention_bytes_partial": "tour.retention-by-size:",
    "dr_to_2_of_4": "tour.deleted-to-the-middle:",
    "dr_to_hw": "tour.deleted-to-the-end:",
    "dr_to_hw_then_one": "tour.deleted-to-the-end-then-one:",
    "dr_midbatch_2_of_4": "tour.deleted-inside-a-batch:",
    "dr_cut_max_ts": "tour.newest-deleted:",
    "compacted a@0 b@1 a@2 c@3": "tour.compacted:",
    "compacted2 z1000@0 a9000@1 a9600@2 a9100@3 q10200@4 q10800@5": "tour.compacted-out-of-order:",
    "ooo_batches 3000,1000,2000": "tour.out-of-order-batches:",
    "ooo_one_batch 1000,3000,2000": "tour.out-of-order-batch:",
    "ooo_gzip_batch 1000,3000,2000": "tour.out-of-order-gzip-batch:",
    "equal_ts 2x2 @2000": "tour.equal-timestamps:",
    "ooo_segments 1000,9000|,2000,3000 segment.ms=500": "tour.out-of-order-segments:",
    "record_ts_-1": "tour.record-without-timestamp:",
    "record_ts_0": "tour.record-at-zero:",
    "LogAppendTime 3 in batch": "tour.append-time-batch:",
    "LogAppendTime 3 batches": "tour.append-time-batches:",
    "LogAppendTime gzip 3 in batch": "tour.append-time-gzip-batch:",
    "txn_open.ru 1 plain+2 txn": "tour.open-transaction:",
    "txn_open.rc": "tour.open-transaction:" + COMMITTED,
    "txn_open+plain after.ru": "tour.open-transaction-then-plain:",
    "txn_open+plain after.rc": "tour.open-transaction-then-plain:" + COMMITTED,
    "txn_committed.ru": "tour.committed-transaction:",
    "txn_committed.rc": "tour.committed-transaction:" + COMMITTED,
    "txn_aborted.ru": "tour.aborted-transaction:",
    "txn_aborted.rc": "tour.aborted-transaction:" + COMMITTED,
    "txn_open_from_0.ru": "tour.open-transaction-first:",
    "txn_open_from_0.rc": "tour.open-transaction-first:" + COMMITTED,
    "txn_open_then_dr_hw.ru": "tour.open-transaction-deleted:",
    "txn_open_then_dr_hw.rc": "tour.open-transaction-deleted:" + COMMITTED,
    "txn_open_dr_then_commit.ru": "tour.deleted-transaction-committed:",
    "txn_open_dr_then_commit.rc": "tour.deleted-transaction-committed:" + COMMITTED,
    "topic_deleted": "tour.topic-deleted:",
    "topic_recreated": "tour.topic-recreated:",
    "unknown_topic": "tour.unknown-topic:",
    "unknown_partition": "tour.unknown-partition:",
    "negative_partition": "tour.negative-partition:",
    "invalid_topic_name": "tour.invalid-topic-name:",
    "empty_topic_name": "tour.empty-topic-name:",
}
"""Every golden state of a single node in which all questions were asked. What else the files hold are answers to
single odd requests, and states after restarts."""

TIERED = {
    "1 rec active only (nothing to upload)": "tour.tiered-nothing-uploaded:",
    "2 segs uploaded, local kept": "tour.tiered-some-uploaded:",
    "local deleted (local start 2)": "tour.tiered-local-copies-gone:",
    "local deleted .rc": "tour.tiered-local-copies-gone:" + COMMITTED,
    "z: 3 recs ALL remote, local empty": "tour.tiered-all-remote:",
    "z .rc": "tour.tiered-all-remote:" + COMMITTED,
    "z: 4th tiered": "tour.tiered-all-remote-then-one:",
    "z DR settled 1s": "tour.tiered-deleted-to-the-end:",
    "w retention.bytes=150 of 4x70": "tour.tiered-retention-by-size:",
    "open txn in seg2 of 3 .ru": "tour.tiered-open-transaction:",
    "open txn .rc": "tour.tiered-open-transaction:" + COMMITTED,
    "max: 1000,9000,2000,3000,9600; local.retention.ms=1": "tour.tiered-newest-is-remote:",
    "topic deleted": "tour.tiered-topic-deleted:",
}
"""The settled states with remote storage. Left out are those asked at once, whose answers race with the upload,
and those whose leader epochs count the restarts before them; of these, the one below is compared without epochs."""

TIERED_WITHOUT_EPOCHS = {"retention.ms=1 settled": "tour.tiered-retention-emptied:"}

CLOCK_MS = 600_000
"""A golden NOW is the broker's clock as the question was asked: within ten minutes of the check."""


def golden(name: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())["G"]
    return answers


def differences(
    lines: Iterable[Mapping[str, Any]],
    answers: Mapping[str, Any],
    states: Mapping[str, str],
    *,
    epochs: bool = True,
) -> list[str]:
    """Where recorded answers are not the golden ones, in words; a question that was not asked differs too."""
    recorded = {line["check"]: line for line in lines}
    found = []
    for state, prefix in states.items():
        for spec, expected in answers[state].items():
            check = prefix + CHECKS[spec]
            if check not in recorded:
                found.append(f"{check} ({state}, {spec}) was not asked")
                continue
            seen = _answer(recorded[check])
            wanted = _plain(expected, seen, recorded[check])
            if seen != wanted if epochs else seen[:3] != wanted[:3]:
                found.append(f"{check} ({state}, {spec}): {seen} instead of {wanted}")
    return found


def _answer(line: Mapping[str, Any]) -> list[Any]:
    observed = line["observed"] or {}
    return [observed.get(name) for name in ("error", "offset", "timestamp", "leader_epoch")]


def _plain(expected: list[Any], seen: list[Any], line: Mapping[str, Any]) -> list[Any]:
    """The golden answer in numbers; NOW becomes the timestamp seen, if that is the time of the question."""
    error, offset, timestamp, epoch = expected[:4]
    if timestamp == "NOW":
        asked_ms = datetime.fromisoformat(line["started"]).timestamp() * 1000
        timestamp = seen[2] if seen[2] is not None and abs(seen[2] - asked_ms) < CLOCK_MS else "NOW"
    elif isinstance(timestamp, str):
        timestamp = T + int(timestamp.removeprefix("T+"))
    return [error, offset, timestamp, epoch]
