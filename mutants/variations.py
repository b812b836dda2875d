"""The legal variations: liberties that the protocol leaves to a broker, and that no scenario may call a deviation."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from conformance.specs import EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LATEST_TIERED, MAX_TIMESTAMP
from conformance.wire import API_KEYS
from mutants.bending import About, Bending, Part, Told, but, everywhere, per_partition
from mutants.bugs import (
    INVALID_REQUEST,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
    _batches,
    at,
)
from mutants.memory import Memory
from mutants.messages import Asked
from mutants.partitions import change_questions

OFFSET_APIS = ("list_offsets", "produce", "fetch", "delete_records", "offset_for_leader_epoch")

SLOW_SECONDS = 0.02
"""Ten times what a broker takes on this machine, and a tenth of what clients call slow."""

PIECE_BYTES = 7
"""Less than any header, and no divisor of one: every number of an answer is torn apart somewhere."""

EPOCHS_BEFORE = 5
"""As if the leader had changed five times before the topic was first used."""

OLDER: Mapping[str, int] = {
    "metadata": 8,  # the last without topic ids
    "produce": 7,
    "fetch": 8,
    "delete_records": 1,
    "create_topics": 4,
    "find_coordinator": 3,
    "init_producer_id": 2,
    "add_partitions_to_txn": 2,
    "end_txn": 2,
}
"""The highest versions of a broker from 2018, of APIs that no scenario is about."""


def _answers(change: Callable[[Any], Any], *apis: str) -> dict[str, Callable[[Asked, Any, Memory], Any]]:
    return dict.fromkeys(apis, lambda _asked, answer, _memory: change(answer))


def _reversed_topics(answer: Any) -> Any:
    topics = (but(topic, partitions=tuple(reversed(topic.partitions))) for topic in answer.topics)
    return but(answer, topics=tuple(reversed(tuple(topics))))


def _with_tags(asked: Asked, whole: bytes, _memory: Memory) -> list[Part] | None:
    """A tagged field of a later release at the end of an answer that has none."""
    if asked.api not in OFFSET_APIS or not asked.flexible or not whole.endswith(b"\x00"):
        return None
    frame = whole[4:-1] + b"\x01\x63\x01\x2a"  # one field: number 99, one byte long
    return [struct.pack(">i", len(frame)) + frame]


def _with_header_tags(asked: Asked, whole: bytes, _memory: Memory) -> list[Part] | None:
    if asked.api not in OFFSET_APIS or not asked.flexible or whole[8:9] != b"\x00":
        return None
    frame = whole[4:8] + b"\x01\x63\x01\x2a" + whole[9:]
    return [struct.pack(">i", len(frame)) + frame]


def _in_pieces(asked: Asked, whole: bytes, _memory: Memory) -> list[Part] | None:
    if asked.api not in OFFSET_APIS:
        return None
    return [whole[start : start + PIECE_BYTES] for start in range(0, len(whole), PIECE_BYTES)]


def _slowly(asked: Asked, whole: bytes, _memory: Memory) -> list[Part] | None:
    return [SLOW_SECONDS, whole] if asked.api in OFFSET_APIS else None


def _advertised(highest: Mapping[str, int]) -> dict[str, Callable[[Asked, Any, Memory], Any]]:
    keys = {API_KEYS[api]: version for api, version in highest.items()}

    def change(answer: Any) -> Any:
        entries = (
            but(entry, max_version=min(entry.max_version, keys.get(int(entry.api_key), entry.max_version)))
            for entry in answer.api_keys
        )
        return but(answer, api_keys=tuple(entries))

    return _answers(change, "api_versions")


def _refused_above(highest: Mapping[str, int]) -> Callable[[Asked, Memory], Asked | None]:
    def ask(asked: Asked, _memory: Memory) -> Asked | None:
        return None if asked.version > highest.get(asked.api, asked.version) else asked

    return ask


def _apis_in_another_order(answer: Any) -> Any:
    (first, *_rest) = answer.api_keys
    unheard_of = but(first, api_key=12345, min_version=0, max_version=3)
    return but(answer, api_keys=(*reversed(answer.api_keys), unheard_of))


def _other_broker_ids(answer: Any) -> Any:
    for name in ("node_id", "controller_id", "leader_id"):
        answer = everywhere(answer, name, lambda number: number + 100 if number >= 0 else number)
    for name in ("replica_nodes", "isr_nodes", "offline_replicas"):
        answer = everywhere(answer, name, lambda numbers: tuple(number + 100 for number in numbers))
    return answer


def _another_broker(answer: Any) -> Any:
    return but(answer, brokers=(*answer.brokers, but(answer.brokers[0], node_id=777))) if answer.brokers else answer


def _more_epochs(answer: Any) -> Any:
    return everywhere(answer, "leader_epoch", lambda epoch: epoch + EPOCHS_BEFORE if epoch >= 0 else epoch)


def _fewer_epochs(asked: Asked, _memory: Memory) -> Asked:
    if asked.api not in ("list_offsets", "fetch", "offset_for_leader_epoch"):
        return asked

    def fewer(epoch: int) -> int:
        return epoch - EPOCHS_BEFORE if epoch >= EPOCHS_BEFORE else epoch

    def change(entry: Any) -> Any:
        names = ("current_leader_epoch", "leader_epoch", "last_fetched_epoch")
        known = {name: getattr(entry, name) for name in names if hasattr(entry, name)}
        return but(entry, **{name: fewer(epoch) for name, epoch in known.items()})

    request = change_questions(asked, change)
    return asked if request == asked.request else asked.bent(request)


def _declined(about: About, told: Told) -> Told:
    optional = (MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD)
    if told.error_code or about.time not in {spec.timestamp for spec in optional}:
        return told
    return but(told, error_code=UNSUPPORTED_VERSION, offset=-1, timestamp=-1, leader_epoch=-1)


def _newest_readable(about: About, told: Told) -> Told:
    if about.time != MAX_TIMESTAMP.timestamp or not 0 <= told.offset < about.log.start:
        return told
    return at(told, max(about.log.records, key=lambda record: (record[1], -record[0]), default=None))


def _unknown_first(about: About, told: Told) -> Told:
    unknown = about.entry.place not in about.memory.logs
    if unknown and told.error_code in (UNSUPPORTED_VERSION, INVALID_REQUEST):
        return but(told, error_code=UNKNOWN_TOPIC_OR_PARTITION)
    return told


def _two_entries_for_a_duplicate(answer: Any) -> Any:
    def doubled(topic: Any) -> Any:
        if len(topic.partitions) == 1 and topic.partitions[0].error_code == INVALID_REQUEST:
            return but(topic, partitions=topic.partitions * 2)
        return topic

    return but(answer, topics=tuple(doubled(topic) for topic in answer.topics))


def _isolation_not_looked_at(asked: Asked, _memory: Memory) -> Asked:
    if asked.api != "list_offsets" or getattr(asked.request, "isolation_level", 0) <= 1:
        return asked
    return asked.bent(but(asked.request, isolation_level=0))


def _one_batch(_about: About, told: Told) -> Told:
    batches = _batches(bytes(told.records or b""))
    return but(told, records=batches[0]) if batches else told


def _half_a_batch_more(_about: About, told: Told) -> Told:
    batches = _batches(bytes(told.records or b""))
    return but(told, records=b"".join(batches) + batches[-1][:40]) if batches else told


FLEXIBLE_ORDER = "Entries are found by topic and partition; the protocol promises no order."
TAGS = "KIP-482: clients pass over tagged fields that they do not know."
HONEST = "A broker advertises what it has, and a client speaks what both have."

VARIATIONS: tuple[Bending, ...] = (
    Bending("topics-and-partitions-are-reversed", FLEXIBLE_ORDER, _answers(_reversed_topics, "list_offsets")),
    Bending("answers-carry-unknown-tags", TAGS, deliver=_with_tags),
    Bending("headers-carry-unknown-tags", TAGS, deliver=_with_header_tags),
    Bending(
        "clients-are-throttled",
        "KIP-124: the time is for the client to wait, and says nothing of the answer.",
        _answers(lambda answer: but(answer, throttle_time=timedelta(milliseconds=7)), *OFFSET_APIS, "metadata"),
    ),
    Bending("answers-are-slow", "No answer is promised within milliseconds.", deliver=_slowly, alone=True),
    Bending("answers-come-in-pieces", "TCP keeps order, not packets.", deliver=_in_pieces),
    Bending(
        "no-epochs-are-told",
        "KIP-320: -1 is a leader epoch that is not known.",
        _answers(lambda answer: everywhere(answer, "leader_epoch", lambda _epoch: -1), "list_offsets"),
        alone=True,
    ),
    Bending(
        "the-leader-changed-five-times-before",
        "Epochs count from wherever the partition's history begins.",
        _answers(_more_epochs, "list_offsets", "metadata", "offset_for_leader_epoch"),
        ask=_fewer_epochs,
    ),
    Bending(
        "list-offsets-up-to-v7",
        HONEST,
        _advertised({"list_offsets": 7}),
        ask=_refused_above({"list_offsets": 7}),
        alone=True,
    ),
    Bending(
        "list-offsets-up-to-v3",
        HONEST,
        _advertised({"list_offsets": 3}),
        ask=_refused_above({"list_offsets": 3}),
        alone=True,
    ),
    Bending("other-apis-are-older", HONEST, _advertised(OLDER), ask=_refused_above(OLDER), alone=True),
    Bending(
        "apis-are-listed-in-another-order",
        "KIP-35: a client looks for the keys that it knows.",
        _answers(_apis_in_another_order, "api_versions"),
    ),
    Bending(
        "optional-specs-are-declined",
        "UNSUPPORTED_VERSION is an honest no to -3 and below.",
        {"list_offsets": per_partition(_declined)},
        alone=True,
    ),
    Bending(
        "brokers-have-other-ids",
        "A broker's id is its own affair.",
        _answers(_other_broker_ids, "metadata", "find_coordinator"),
    ),
    Bending(
        "the-broker-is-called-localhost",
        "A broker names itself by name or by address.",
        _answers(
            lambda answer: everywhere(answer, "host", lambda host: host and "localhost"), "metadata", "find_coordinator"
        ),
    ),
    Bending(
        "there-is-another-broker",
        "A cluster may have brokers that lead nothing.",
        _answers(_another_broker, "metadata"),
    ),
    Bending(
        "topics-have-no-id",
        "KIP-516: an id of zeros is none.",
        _answers(lambda answer: everywhere(answer, "topic_id", lambda _id: None), "metadata"),
    ),
    Bending(
        "the-cluster-has-another-name-and-no-controller",
        "Neither is of use to a client that asks for offsets.",
        _answers(lambda answer: but(answer, cluster_id="another", controller_id=-1), "metadata"),
    ),
    Bending(
        "the-newest-record-is-one-that-can-be-read",
        "Kafka still names deleted records; a broker need not.",
        {"list_offsets": per_partition(_newest_readable)},
    ),
    Bending(
        "an-unknown-partition-is-refused-first",
        "The order in which a request is checked is free.",
        {"list_offsets": per_partition(_unknown_first)},
    ),
    Bending(
        "a-duplicate-is-refused-per-entry",
        "Kafka 3.x does so.",
        _answers(_two_entries_for_a_duplicate, "list_offsets"),
    ),
    Bending(
        "an-invalid-isolation-is-not-looked-at",
        "Nothing says what an isolation level beyond the second means.",
        ask=_isolation_not_looked_at,
    ),
    Bending(
        "fetch-answers-one-batch-at-a-time",
        "A Fetch may return as little as one batch.",
        {"fetch": per_partition(_one_batch)},
        alone=True,
    ),
    Bending(
        "fetch-ends-in-half-a-batch",
        "A Fetch may be cut off anywhere after its first batch.",
        {"fetch": per_partition(_half_a_batch_more)},
    ),
)
"""In the order in which they are reported."""
