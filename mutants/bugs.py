"""The mutants: each a bug that a real broker could have, or had, and what it would do to a user.

A row is a name, a sentence and a small function from what was asked and answered to another answer. Rows that start
with the same word bend the same answers: `latest`, `earliest`, `newest` and `times` those of ListOffsets that are not
errors, `refusals` those that are; `produced`, `fetched`, `deleted`, `epoch_ends` and `committed` those of other APIs.
"""

from __future__ import annotations

import bisect
import dataclasses
import struct
import time
import typing
from collections.abc import Callable
from typing import Any

import crc32c

from conformance.specs import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    SPECIAL_SPECS,
    T,
)
from mutants.bending import (
    CUT,
    About,
    Bend,
    Bending,
    Part,
    Told,
    asks_for,
    but,
    everywhere,
    per_partition,
    per_question,
    with_request,
)
from mutants.memory import Memory
from mutants.messages import Asked

UNKNOWN_SERVER_ERROR = -1
OFFSET_OUT_OF_RANGE = 1
CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
REQUEST_TIMED_OUT = 7
UNSUPPORTED_VERSION = 35
INVALID_REQUEST = 42
UNKNOWN_LEADER_EPOCH = 75

LIST_OFFSETS_KEY = 2


# -- which answers a row bends


def _bends(api: str, when: Callable[[About, Told], bool]) -> Callable[[str, str, Bend], Bending]:
    def row(name: str, why: str, bend: Bend) -> Bending:
        return Bending(
            name, why, {api: per_partition(lambda about, told: bend(about, told) if when(about, told) else told)}
        )

    return row


def _special(timestamp: int) -> Callable[[str, str, Bend], Bending]:
    return _bends("list_offsets", lambda about, told: about.time == timestamp and told.error_code == 0)


latest = _special(LATEST.timestamp)
earliest = _special(EARLIEST.timestamp)
newest = _special(MAX_TIMESTAMP.timestamp)
earliest_local = _special(EARLIEST_LOCAL.timestamp)
latest_tiered = _special(LATEST_TIERED.timestamp)
pending_upload = _special(EARLIEST_PENDING_UPLOAD.timestamp)
times = _bends("list_offsets", lambda about, told: about.time >= 0 and told.error_code == 0)
found_times = _bends("list_offsets", lambda about, told: about.time >= 0 and told.error_code == 0 and told.offset >= 0)
missed_times = _bends("list_offsets", lambda about, told: about.time >= 0 and told.error_code == 0 and told.offset < 0)
listed = _bends("list_offsets", lambda _, told: bool(told.error_code == 0))
refusals = _bends("list_offsets", lambda _, told: bool(told.error_code))
produced = _bends("produce", lambda _, told: bool(told.error_code == 0))
fetched = _bends("fetch", lambda _, told: bool(told.error_code == 0))
deleted = _bends("delete_records", lambda _, told: bool(told.error_code == 0))
epoch_ends = _bends("offset_for_leader_epoch", lambda _, told: bool(told.error_code == 0))


def at(told: Told, record: tuple[int, int] | None) -> Told:
    """The answer that finds a record, given as offset and timestamp; without one, the answer that finds none."""
    if record is None:
        return but(told, offset=-1, timestamp=-1, leader_epoch=-1)
    return but(told, offset=record[0], timestamp=record[1])


def _first(records: list[tuple[int, int]], wanted: Callable[[int], bool]) -> tuple[int, int] | None:
    return next((record for record in records if wanted(record[1])), None)


def tiered(row: Bending) -> Bending:
    """A row about remote storage, for backends that have it."""
    return dataclasses.replace(row, needs=frozenset({"tiered"}))


@dataclasses.dataclass(frozen=True)
class AboutGroup:
    """What a mutant may look at beside a committed offset: commits in the order in which they were made."""

    end: int
    made_by_the_group: list[int]
    made_by_anybody: list[int]


def committed(name: str, why: str, bend: Callable[[AboutGroup, int], int]) -> Bending:
    """A row about the offsets that OffsetFetch tells."""

    def commit(asked: Asked, answer: Any, memory: Memory) -> Any:
        made = [
            (asked.request.group_id, int(entry.committed_offset))
            for topic in asked.request.topics
            for entry in topic.partitions
        ]
        memory.scratch.setdefault("commits", []).extend(made)
        return answer

    def fetch(asked: Asked, answer: Any, memory: Memory) -> Any:
        request, commits = asked.request, memory.scratch.get("commits", [])
        group = request.groups[0].group_id if hasattr(request, "groups") else request.group_id
        end = max((log.end for log in memory.logs.values()), default=0)
        about = AboutGroup(end, [at for who, at in commits if who == group], [at for _, at in commits])
        return everywhere(answer, "committed_offset", lambda at: bend(about, at))

    return Bending(name, why, {"offset_commit": commit, "offset_fetch": fetch})


# -- bends that take more than a line


def _no_topics_where_all_were_asked_for(asked: Asked, answer: Any, _memory: Memory) -> Any:
    request = asked.request.groups[0] if hasattr(asked.request, "groups") else asked.request
    return everywhere(answer, "topics", lambda _: ()) if request.topics is None else answer


def _local(about: About) -> list[tuple[int, int]]:
    return [record for record in about.log.records if record[0] >= about.log.local]


def _stale(about: About, told: Told) -> Told:
    batch, about.log.fresh = about.log.fresh, None
    return but(told, offset=batch.base) if batch else told


def _not_yet_found(about: About, told: Told) -> Told:
    batch, about.log.fresh = about.log.fresh, None
    return at(told, None) if batch and told.offset >= batch.base else told


def _floor(about: About, told: Told) -> Told:
    older = [record for record in about.log.records if record[1] <= about.time]
    return at(told, older[-1] if older else None)


def _binary_search(about: About, told: Told) -> Told:
    records = about.log.records
    place = bisect.bisect_left([stamp for _offset, stamp in records], about.time)
    return at(told, records[place] if place < len(records) else None)


def _by_write_time(about: About, told: Told) -> Told:
    readable = about.log.records
    return at(told, readable[0] if readable and about.time <= time.time() * 1000 else None)


def _batch_start(about: About, told: Told) -> Told:
    batch = about.log.batch_of(told.offset)
    return at(told, (batch.base, batch.times[0])) if len(batch.times) > 1 else told


def _compressed_batch_start(about: About, told: Told) -> Told:
    return _batch_start(about, told) if about.log.batch_of(told.offset).compressed else told


def _last_equal(about: About, told: Told) -> Told:
    equal = [record for record in about.log.records if record[1] == told.timestamp]
    return at(told, equal[-1]) if equal else told


def _clients_time(about: About, told: Told) -> Told:
    sent = about.log.time_of(told.offset)
    return but(told, timestamp=sent) if sent >= 0 else told


def _gate_missing(about: About, told: Told) -> Told:
    """What a broker would say that knows the number, whatever version it came in."""
    known = {
        MAX_TIMESTAMP.timestamp: about.log.end - 1,
        EARLIEST_LOCAL.timestamp: about.log.start,
        LATEST_TIERED.timestamp: -1,
        EARLIEST_PENDING_UPLOAD.timestamp: -1,
    }
    if told.error_code != UNSUPPORTED_VERSION or about.time not in known:
        return told
    return but(told, error_code=0, offset=known[about.time], timestamp=-1)


def _served_as_earliest(about: About, told: Told) -> Told:
    named = {spec.timestamp for spec in SPECIAL_SPECS}
    if told.error_code != UNSUPPORTED_VERSION or about.time in named:
        return told
    return but(told, error_code=0, offset=about.log.start)


def _of_the_whole_topic(about: About, told: Told) -> Told:
    logs = about.memory.logs.items()
    return but(told, offset=sum(log.end for (topic, _partition), log in logs if topic == about.entry.topic))


def _impatient(about: About, told: Told) -> Told:
    timeout = getattr(about.exchange.request, "timeout", None)
    short = timeout is not None and 0 < timeout.total_seconds() < 1
    return but(told, error_code=REQUEST_TIMED_OUT, offset=-1) if short else told


def _swap(_asked: Asked, answer: Any, _memory: Memory) -> Any:
    def swapped(topic: Any) -> Any:
        if len(topic.partitions) < 2:
            return topic
        one, other, *rest = topic.partitions
        partitions = but(one, offset=other.offset), but(other, offset=one.offset), *rest
        return but(topic, partitions=partitions)

    return but(answer, topics=tuple(swapped(topic) for topic in answer.topics))


def _leave_out_the_last(_asked: Asked, answer: Any, _memory: Memory) -> Any:
    *topics, last = answer.topics or (None,)
    if last is None or len(topics) + len(last.partitions) < 2:
        return answer
    return but(answer, topics=(*topics, but(last, partitions=last.partitions[:-1])))


def _twice(_asked: Asked, answer: Any, _memory: Memory) -> Any:
    if sum(len(topic.partitions) for topic in answer.topics) < 2:
        return answer
    doubled = (but(topic, partitions=(*topic.partitions, *topic.partitions[:1])) for topic in answer.topics)
    return but(answer, topics=tuple(doubled))


def _one_fails_all(_asked: Asked, answer: Any, _memory: Memory) -> Any:
    errors = [each.error_code for topic in answer.topics for each in topic.partitions if each.error_code]
    return everywhere(answer, "error_code", lambda _code: errors[0]) if errors else answer


def _all_partitions_for_none(asked: Asked, answer: Any, _memory: Memory) -> Any:
    if not asked.request.topics or any(topic.partitions for topic in asked.request.topics):
        return answer
    topic_type = _entry_type(type(answer), "topics")
    entry = _filled(_entry_type(topic_type, "partitions"), partition_index=0, error_code=0, timestamp=-1, offset=0)
    return but(answer, topics=tuple(topic_type(name=each.name, partitions=(entry,)) for each in asked.request.topics))


def _entry_type(entity: type, field: str) -> Any:
    return typing.get_args(typing.get_type_hints(entity)[field])[0]


def _filled(entity: Any, **values: int) -> Any:
    """An entry of any version; what is not given has the codec's default, or 0 where there is none."""
    required = [each.name for each in dataclasses.fields(entity) if each.default is dataclasses.MISSING]
    return entity(**{name: values.get(name, 0) for name in required} | values)


def _one_kind_for_all(asked: Asked, memory: Memory) -> Asked:
    if asked.api != "list_offsets" or not any(topic.partitions for topic in asked.request.topics):
        return asked
    first = next(entry.timestamp for topic in asked.request.topics for entry in topic.partitions)
    return per_question("list_offsets", lambda entry: but(entry, timestamp=first))(asked, memory) or asked


def _batches(data: bytes) -> list[bytes]:
    """The record batches of a Fetch, each by itself."""
    batches, position = [], 0
    while position + 12 <= len(data):
        (length,) = struct.unpack_from(">i", data, position + 8)
        batches.append(data[position : position + 12 + length])
        position += 12 + length
    return batches


def _records(bend: Callable[[list[bytes]], list[bytes]]) -> Bend:
    def change(_about: About, told: Told) -> Told:
        batches = _batches(bytes(told.records or b""))
        return but(told, records=b"".join(bend(batches))) if batches else told

    return change


def _without_producer(batch: bytes) -> bytes:
    """The batch as if its producer had no identity, so that nobody can tell a repetition. Transactions keep theirs."""
    transactional = len(batch) > 57 and batch[22] & 0x10
    if len(batch) <= 57 or transactional or batch[43:51] == b"\xff" * 8:
        return batch
    body = batch[21:43] + b"\xff" * 14 + batch[57:]
    return batch[:17] + struct.pack(">I", crc32c.crc32c(body)) + body


def _delete_nothing(asked: Asked, memory: Memory) -> Asked:
    return per_question("delete_records", lambda entry: but(entry, offset=0))(asked, memory) or asked


def _advertised_from(version: int) -> Callable[[Asked, Any, Memory], Any]:
    def change(_asked: Asked, answer: Any, _memory: Memory) -> Any:
        keys = (
            but(entry, min_version=max(version, entry.min_version)) if entry.api_key == LIST_OFFSETS_KEY else entry
            for entry in answer.api_keys
        )
        return but(answer, api_keys=tuple(keys))

    return change


def _every_topic_exists(_asked: Asked, answer: Any, _memory: Memory) -> Any:
    return everywhere(answer, "error_code", lambda code: 0 if code == UNKNOWN_TOPIC_OR_PARTITION else code)


def _latest_twice(asked: Asked, whole: bytes, _memory: Memory) -> list[Part] | None:
    return [whole, whole] if asks_for(asked, LATEST.timestamp) else None


def _cut_on_unknown(asked: Asked, _whole: bytes, _memory: Memory) -> list[Part] | None:
    return [CUT] if asks_for(asked, -7, -1000) else None


def _cut_short(asked: Asked, whole: bytes, _memory: Memory) -> list[Part] | None:
    return [whole[:-3], CUT] if asks_for(asked, MAX_TIMESTAMP.timestamp) else None


MUTANTS: tuple[Bending, ...] = (
    # -- latest
    latest(
        "latest-is-the-last-offset",
        "A strongly consistent read does not wait for the last record, and misses it.",
        lambda _, told: but(told, offset=max(0, told.offset - 1)),
    ),
    latest(
        "latest-is-one-too-high",
        "A strongly consistent read waits for a record that nobody wrote.",
        lambda _, told: but(told, offset=told.offset + 1),
    ),
    latest(
        "latest-is-zero-on-an-emptied-log",
        "After retention an ingester starts over at 0 and fails, or replays.",
        lambda about, told: but(told, offset=0) if about.log.emptied else told,
    ),
    latest(
        "latest-is-minus-one-on-an-empty-log",
        "An ingester of a new partition takes -1 for an offset.",
        lambda _, told: but(told, offset=-1) if told.offset == 0 else told,
    ),
    latest("latest-is-stale-after-an-acknowledgement", "A query right after a write does not see it.", _stale),
    latest(
        "latest-goes-back-between-connections",
        "A reader that remembers a larger offset waits for ever.",
        lambda about, told: but(told, offset=max(0, told.offset - 3)) if about.exchange.connection % 2 else told,
    ),
    latest(
        "latest-counts-batches",
        "Most records of a batch are never waited for.",
        lambda about, told: but(told, offset=len(about.log.batches)) if about.log.batches else told,
    ),
    latest(
        "latest-counts-a-compressed-batch-as-one",
        "Records in compressed batches are never waited for.",
        lambda about, told: but(
            told, offset=told.offset - sum(len(each.times) - 1 for each in about.log.batches if each.compressed)
        ),
    ),
    latest("latest-is-of-the-whole-topic", "One busy partition moves the end of all the others.", _of_the_whole_topic),
    latest(
        "latest-carries-a-timestamp",
        "A client takes it for a record's time and seeks by it.",
        lambda about, told: but(told, timestamp=about.log.records[-1][1]) if about.log.records else told,
    ),
    latest(
        "latest-of-old-versions-is-the-last-offset",
        "Only clients from before 2018 miss the last record, and nobody can tell why.",
        lambda about, told: but(told, offset=max(0, told.offset - 1)) if about.exchange.version < 4 else told,
    ),
    latest(
        "latest-leaves-out-markers",
        "Readers of committed records stop one short after each transaction.",
        lambda about, told: but(told, offset=max(0, told.offset - 1)) if about.committed else told,
    ),
    latest(
        "a-recreated-topic-keeps-its-end",
        "Readers of a new topic wait at an offset of the old one.",
        lambda about, told: but(told, offset=max(told.offset, about.log.end)),
    ),
    listed(
        "a-timeout-of-a-millisecond-is-obeyed", "Clients that set a timeout get errors from local data.", _impatient
    ),
    # -- earliest
    earliest(
        "earliest-never-moves",
        "A reader that starts at 0 after deletion fails with OFFSET_OUT_OF_RANGE.",
        lambda _, told: but(told, offset=0),
    ),
    earliest(
        "earliest-is-zero-on-an-emptied-log",
        "After retention a reader starts at 0 and fails.",
        lambda about, told: but(told, offset=0) if about.log.emptied else told,
    ),
    earliest(
        "earliest-is-the-start-of-the-segment",
        "Records that were deleted for a customer are still announced.",
        lambda about, told: but(told, offset=0) if 0 < told.offset == about.log.deleted else told,
    ),
    earliest(
        "earliest-is-the-start-of-the-batch",
        "A reader starts at a record that was deleted.",
        lambda about, told: but(told, offset=about.log.batch_of(told.offset).base),
    ),
    earliest(
        "earliest-is-the-last-deleted-offset",
        "A reader starts one too early and fails.",
        lambda _, told: but(told, offset=max(0, told.offset - 1)),
    ),
    earliest(
        "earliest-passes-latest-on-an-emptied-log",
        "A reader sees a log that ends before it begins and gives up.",
        lambda about, told: but(told, offset=told.offset + 1) if about.log.emptied else told,
    ),
    earliest(
        "earliest-is-one-too-high",
        "A reader skips the first record.",
        lambda _, told: but(told, offset=told.offset + 1),
    ),
    earliest(
        "earliest-carries-a-timestamp",
        "A client takes it for a record's time and seeks by it.",
        lambda about, told: but(told, timestamp=about.log.records[0][1]) if about.log.records else told,
    ),
    earliest(
        "earliest-is-not-there-for-readers-of-committed-records",
        "A transactional reader cannot start at the beginning.",
        lambda about, told: but(told, offset=-1) if about.committed else told,
    ),
    # -- times
    Bending(
        "time-search-is-exclusive",
        "A replay skips the records of the moment it starts at.",
        ask=per_question(
            "list_offsets",
            lambda entry: but(entry, timestamp=entry.timestamp + 1) if 0 <= entry.timestamp < 2**63 - 1 else entry,
        ),
    ),
    Bending(
        "times-are-taken-for-seconds",
        "Every replay reads the whole partition.",
        ask=per_question(
            "list_offsets",
            lambda entry: but(entry, timestamp=entry.timestamp // 1000) if entry.timestamp >= 0 else entry,
        ),
    ),
    times("time-search-takes-the-floor", "A replay starts at a record that is too old.", _floor),
    times("time-search-is-by-write-time", "A replay of last year's records finds those written today.", _by_write_time),
    times("time-search-is-binary", "Records out of order are skipped.", _binary_search),
    times(
        "time-search-ignores-deletion",
        "A replay starts at a record that was deleted, and fails.",
        lambda about, told: at(told, _first(about.log.everything, lambda stamp: stamp >= about.time)),
    ),
    times(
        "time-search-does-not-see-new-records", "A reader told that nothing is newer skips the newest.", _not_yet_found
    ),
    times(
        "time-zero-means-now",
        "A replay from the beginning reads nothing.",
        lambda about, told: at(told, None) if about.time == 0 else told,
    ),
    times(
        "the-end-of-time-overflows",
        "A client that asks for the end is sent to the beginning.",
        lambda about, told: at(told, (0, T)) if about.time == 2**63 - 1 else told,
    ),
    found_times("time-search-finds-batches", "A replay reads records that are too old.", _batch_start),
    found_times(
        "time-search-finds-compressed-batches",
        "A replay of compressed records reads some that are too old.",
        _compressed_batch_start,
    ),
    found_times("time-search-takes-the-last-of-equal-times", "A replay skips records of the same moment.", _last_equal),
    found_times(
        "the-requested-timestamp-is-answered",
        "A client dates records wrongly.",
        lambda about, told: but(told, timestamp=about.time),
    ),
    found_times(
        "a-found-record-has-no-timestamp",
        "Java clients fail with an IllegalArgumentException.",
        lambda _, told: but(told, timestamp=-1),
    ),
    found_times(
        "a-found-record-is-one-too-far",
        "A replay skips the first record that it wants.",
        lambda _, told: but(told, offset=told.offset + 1),
    ),
    found_times("append-time-is-answered-as-the-clients", "Replays by arrival skip records.", _clients_time),
    missed_times("not-found-is-zero", "A client reads the whole topic again.", lambda _, told: but(told, offset=0)),
    missed_times(
        "not-found-is-latest",
        "A client skips what is written between question and read.",
        lambda about, told: but(told, offset=about.log.end),
    ),
    missed_times(
        "not-found-is-the-last-record",
        "A client reads a record that is too old.",
        lambda about, told: but(told, offset=max(0, about.log.end - 1)),
    ),
    missed_times(
        "not-found-is-an-error",
        "A client fails on a partition that has nothing newer.",
        lambda _, told: but(told, error_code=OFFSET_OUT_OF_RANGE),
    ),
    missed_times(
        "not-found-carries-an-epoch",
        "A client remembers an epoch for an offset that it was not given.",
        lambda _, told: but(told, leader_epoch=0),
    ),
    # -- max-timestamp
    newest(
        "max-timestamp-is-the-last-record",
        "A freshness check looks at a record that is not the newest.",
        lambda about, told: but(told, offset=about.log.end - 1) if told.offset >= 0 else told,
    ),
    newest(
        "max-timestamp-is-latest",
        "A freshness check reads beyond the end and waits.",
        lambda about, told: but(told, offset=about.log.end, timestamp=-1),
    ),
    newest(
        "max-timestamp-is-zero-on-an-empty-log",
        "A freshness check reads a record that is not there.",
        lambda _, told: but(told, offset=0) if told.offset < 0 else told,
    ),
    newest("max-timestamp-takes-the-last-of-equal-times", "A freshness check moves without a reason.", _last_equal),
    newest(
        "max-timestamp-is-the-last-of-its-batch",
        "Kafka before 3.8: the offset of another record with the newest one's time.",
        lambda about, told: but(told, offset=about.log.batch_of(told.offset).end - 1) if told.offset >= 0 else told,
    ),
    # -- tiers
    earliest_local(
        "earliest-local-is-an-error-without-tiering",
        "A reader of local data fails on every ordinary topic.",
        lambda about, told: but(told, error_code=INVALID_REQUEST, offset=-1) if about.log.start < 4 else told,
    ),
    earliest_local(
        "earliest-local-is-minus-one-without-tiering",
        "A reader of local data finds none although all is local.",
        lambda about, told: at(told, None) if told.offset == about.log.start else told,
    ),
    earliest_local(
        "earliest-local-carries-a-timestamp",
        "A client takes it for a record's time and seeks by it.",
        lambda _, told: but(told, timestamp=T),
    ),
    latest_tiered(
        "latest-tiered-is-latest-without-tiering",
        "A reader of remote data looks for records that are only local.",
        lambda about, told: but(told, offset=about.log.end) if told.offset < 0 else told,
    ),
    latest_tiered(
        "latest-tiered-is-zero-without-tiering",
        "A reader of remote data looks for a record that is only local.",
        lambda _, told: but(told, offset=0) if told.offset < 0 else told,
    ),
    latest_tiered(
        "latest-tiered-carries-a-timestamp",
        "A client takes it for a record's time and seeks by it.",
        lambda _, told: but(told, timestamp=T),
    ),
    pending_upload(
        "pending-upload-is-zero-without-tiering",
        "A tool that watches uploads reports a backlog where there is nothing to upload.",
        lambda _, told: but(told, offset=0) if told.offset < 0 else told,
    ),
    # -- tiers, where there are any
    tiered(
        earliest(
            "earliest-is-the-earliest-local",
            "Records that are only remote cannot be read.",
            lambda about, told: but(told, offset=max(told.offset, about.log.local)),
        )
    ),
    tiered(
        times(
            "time-search-looks-at-local-records-only",
            "A replay skips the records that are only remote.",
            lambda about, told: at(told, _first(_local(about), lambda stamp: stamp >= about.time)),
        )
    ),
    tiered(
        latest_tiered(
            "latest-tiered-is-exclusive",
            "A reader of remote data looks for a record that is only local.",
            lambda _, told: but(told, offset=told.offset + 1) if told.offset >= 0 else told,
        )
    ),
    tiered(
        pending_upload(
            "pending-upload-is-the-last-uploaded",
            "A tool that watches uploads never sees the end of them.",
            lambda _, told: but(told, offset=told.offset - 1) if told.offset > 0 else told,
        )
    ),
    # -- numbers and versions
    refusals(
        "an-unknown-negative-is-earliest",
        "A client of a later release is told an offset that means something else.",
        _served_as_earliest,
    ),
    refusals("version-gates-are-missing", "A client takes the answer for another question's.", _gate_missing),
    Bending(
        "an-unknown-negative-closes-the-connection",
        "One new client makes every other question on its connection fail.",
        deliver=_cut_on_unknown,
    ),
    Bending(
        "answers-to-max-timestamp-are-cut-short", "Clients lose the connection and try for ever.", deliver=_cut_short
    ),
    Bending(
        "latest-is-answered-twice",
        "Clients take the second answer for that of the next question.",
        deliver=_latest_twice,
    ),
    Bending(
        "old-versions-are-not-advertised",
        "Clients from before 2018 find no version to speak.",
        {"api_versions": _advertised_from(4)},
    ),
    # -- errors
    refusals(
        "errors-are-swallowed",
        "A typo in a topic's name reads as a partition without records.",
        lambda _, told: but(told, error_code=0),
    ),
    refusals(
        "an-unknown-topic-is-offset-zero",
        "A typo in a topic's name reads as an empty topic.",
        lambda _, told: but(told, error_code=0, offset=0) if told.error_code == UNKNOWN_TOPIC_OR_PARTITION else told,
    ),
    refusals(
        "every-error-is-unknown",
        "Clients cannot tell what to do, and give up.",
        lambda _, told: but(told, error_code=UNKNOWN_SERVER_ERROR),
    ),
    refusals(
        "errors-carry-an-offset",
        "A client uses the offset of an answer that was an error.",
        lambda _, told: but(told, offset=0, timestamp=0),
    ),
    refusals(
        "a-negative-partition-is-the-first",
        "A client with a bug reads somebody else's partition.",
        lambda about, told: but(told, error_code=0, offset=0) if about.entry.partition < 0 else told,
    ),
    refusals(
        "duplicate-questions-are-accepted",
        "A client that asks twice is told one answer for two questions.",
        lambda _, told: but(told, error_code=0, offset=0) if told.error_code == INVALID_REQUEST else told,
    ),
    Bending("one-partition-is-missing", "Mimir's client fails on the gap.", {"list_offsets": _leave_out_the_last}),
    Bending("a-partition-is-answered-twice", "Sums over partitions are too high.", {"list_offsets": _twice}),
    Bending(
        "two-partitions-are-swapped",
        "Readers of two partitions start at each other's offsets.",
        {"list_offsets": _swap},
    ),
    Bending(
        "one-bad-partition-fails-all",
        "One deleted topic stops the readers of all others.",
        {"list_offsets": _one_fails_all},
    ),
    Bending(
        "the-first-question-is-asked-for-all",
        "A client that asks for several kinds at once gets one kind for all.",
        ask=_one_kind_for_all,
    ),
    Bending(
        "no-partitions-means-all",
        "A client is told about partitions that it did not ask for.",
        {"list_offsets": _all_partitions_for_none},
    ),
    Bending("asking-creates-topics", "Every typo leaves a topic behind.", {"metadata": _every_topic_exists}),
    # -- epochs and isolation
    Bending(
        "epochs-are-never-checked",
        "A client with old metadata reads from a broker that is no longer the leader.",
        ask=per_question("list_offsets", lambda entry: but(entry, current_leader_epoch=-1)),
    ),
    listed(
        "the-current-epoch-is-refused",
        "Clients that know the epoch are refused.",
        lambda about, told: (
            but(told, error_code=UNKNOWN_LEADER_EPOCH)
            if getattr(about.asked, "current_leader_epoch", -1) >= 0
            else told
        ),
    ),
    listed(
        "an-epoch-is-garbage",
        "A client remembers an epoch that the broker then refuses.",
        lambda about, told: but(told, leader_epoch=2**31 - 1) if about.log.batches else told,
    ),
    Bending(
        "read-committed-is-ignored",
        "Readers of committed records wait for an offset that they may not read yet.",
        ask=with_request("list_offsets", isolation_level=0),
    ),
    # -- Produce
    produced(
        "a-base-offset-is-one-too-high",
        "A producer remembers the offset of another record.",
        lambda _, told: but(told, base_offset=told.base_offset + 1),
    ),
    produced(
        "a-base-offset-is-always-zero",
        "A strongly consistent read waits for the first record only.",
        lambda _, told: but(told, base_offset=0),
    ),
    produced(
        "a-base-offset-is-that-of-the-last-record",
        "A producer of batches remembers offsets that others get.",
        lambda about, told: but(told, base_offset=about.log.batches[-1].end - 1),
    ),
    produced(
        "produce-knows-no-log-start",
        "A producer's metrics show a log that was never deleted from.",
        lambda _, told: but(told, log_start_offset=0),
    ),
    _bends("produce", lambda _, told: bool(told.error_code == CORRUPT_MESSAGE))(
        "a-corrupt-batch-is-acknowledged",
        "A record that was lost counts as written.",
        lambda about, told: but(told, error_code=0, base_offset=about.log.end),
    ),
    Bending(
        "a-repeated-batch-is-written-again",
        "Records are doubled by every producer that tries again.",
        ask=per_question("produce", lambda entry: but(entry, records=_without_producer(bytes(entry.records or b"")))),
    ),
    # -- Fetch
    fetched(
        "the-high-watermark-is-the-last-offset",
        "Mimir's concurrent fetchers stop short of the end.",
        lambda _, told: but(told, high_watermark=max(0, told.high_watermark - 1)),
    ),
    fetched(
        "the-last-stable-offset-is-the-high-watermark",
        "Readers of committed records wait for those of open transactions.",
        lambda _, told: but(told, last_stable_offset=told.high_watermark),
    ),
    fetched(
        "fetch-knows-no-log-start",
        "A reader that is behind does not learn what was deleted.",
        lambda _, told: but(told, log_start_offset=0),
    ),
    fetched("fetch-skips-the-first-batch", "Records are lost without a word.", _records(lambda batches: batches[1:])),
    fetched(
        "fetch-repeats-the-last-batch", "Records are read twice.", _records(lambda batches: [*batches, batches[-1]])
    ),
    _bends("fetch", lambda _, told: bool(told.error_code == OFFSET_OUT_OF_RANGE))(
        "out-of-range-is-an-empty-answer",
        "A reader that is behind, or ahead, reads nothing and nobody tells it.",
        lambda about, told: but(told, error_code=0, high_watermark=about.log.end, log_start_offset=about.log.start),
    ),
    # -- DeleteRecords
    deleted(
        "delete-records-answers-what-was-asked",
        "A clean-up job is told that records are left which are gone.",
        lambda about, told: but(told, low_watermark=about.asked.offset),
    ),
    deleted(
        "delete-records-fails-below-the-start",
        "Redpanda before 2024: a deletion that is repeated fails.",
        lambda about, told: (
            but(told, error_code=OFFSET_OUT_OF_RANGE, low_watermark=-1)
            if 0 <= about.asked.offset < told.low_watermark
            else told
        ),
    ),
    deleted(
        "delete-records-fails-on-an-empty-partition",
        "A clean-up job fails on partitions that are only empty.",
        lambda _, told: but(told, error_code=OFFSET_OUT_OF_RANGE) if told.low_watermark == 0 else told,
    ),
    Bending("delete-records-does-nothing", "A customer's records stay where they are.", ask=_delete_nothing),
    _bends("delete_records", lambda _, told: bool(told.error_code))(
        "delete-records-swallows-errors",
        "A clean-up job believes that it deleted what it did not.",
        lambda about, told: but(told, error_code=0, low_watermark=max(0, about.asked.offset)),
    ),
    # -- OffsetForLeaderEpoch, OffsetFetch, Metadata
    epoch_ends(
        "an-epoch-ends-at-zero",
        "A client believes that its records were truncated, and reads them again.",
        lambda _, told: but(told, end_offset=0),
    ),
    epoch_ends(
        "an-epoch-ends-at-its-last-record",
        "A client believes that its last record was truncated.",
        lambda _, told: but(told, end_offset=max(0, told.end_offset - 1)),
    ),
    committed(
        "a-group-without-a-commit-is-at-zero",
        "A new group reads the whole topic whatever its reset policy says.",
        lambda _, at: max(0, at),
    ),
    committed(
        "a-group-without-a-commit-is-at-the-end",
        "Korvet's early access falls back to what was delivered: records that a crash lost are never read again.",
        lambda about, at: about.end if at < 0 < about.end else at,
    ),
    committed(
        "a-commit-is-the-last-record-read",
        "Maelstrom's kafka counts that way: a group that goes on reads a record again.",
        lambda _, at: max(0, at - 1) if at >= 0 else at,
    ),
    committed(
        "a-commit-of-zero-is-no-commit",
        "A group that committed the beginning starts at the end instead.",
        lambda _, at: at or -1,
    ),
    committed(
        "commits-never-go-back",
        "An operator who rewinds a group sees it go on as if nothing had been said.",
        lambda about, at: max([at, *about.made_by_the_group]),
    ),
    committed(
        "groups-share-their-commits",
        "One group moves another, which then skips records or reads them again.",
        lambda about, at: about.made_by_anybody[-1] if about.made_by_anybody else at,
    ),
    committed(
        "commits-beyond-the-end-are-clipped",
        "A group that is ahead after a loss is not told that it is.",
        lambda about, at: min(at, about.end),
    ),
    Bending(
        "a-commit-forgets-its-metadata",
        "A client that keeps its own position there loses it.",
        {"offset_fetch": lambda _asked, answer, _memory: everywhere(answer, "metadata", lambda _: "")},
    ),
    Bending(
        "a-commit-forgets-its-epoch",
        "A group cannot tell that what it had read was truncated meanwhile.",
        {"offset_fetch": lambda _asked, answer, _memory: everywhere(answer, "committed_leader_epoch", lambda _: -1)},
    ),
    Bending(
        "all-commits-are-none",
        "Whoever lists what a group reads is told that it reads nothing.",
        {"offset_fetch": _no_topics_where_all_were_asked_for},
    ),
    _bends("offset_commit", lambda _, told: bool(told.error_code))(
        "a-commit-that-is-refused-is-acknowledged",
        "A group believes that it committed, and goes on elsewhere.",
        lambda _, told: but(told, error_code=0),
    ),
    Bending(
        "metadata-announces-the-next-epoch",
        "Clients that trust it are refused until the leader changes.",
        {"metadata": lambda _asked, answer, _memory: everywhere(answer, "leader_epoch", lambda epoch: epoch + 1)},
    ),
)
"""In the order in which they are reported. Names are stable: reports show them."""
