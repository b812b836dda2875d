"""Version 0 of ListOffsets, gone in Kafka 4: a list of segment boundaries instead of one offset.

Only brokers that advertise it are asked. Everything here is optional, so a wrong answer is one that would break
the parsing of an old client.
"""

from __future__ import annotations

from conformance.answers import Accepted, Between, Judgement, Observation, Verdict
from conformance.catalogue import scenario
from conformance.partition import Partition
from conformance.specs import EARLIEST, LATEST, OffsetSpec

OLD_CLIENTS = "Clients from before 2016 start in the wrong place."


@scenario("v0.latest", impact=OLD_CLIENTS)
def test_version_0_lists_segments_newest_first(partition: Partition) -> None:
    partition.created_with({"segment.ms": "500"})
    partition.produce(4)
    _expect(partition, LATEST, most=15, offset=4, count=5)


@scenario("v0.max-one", impact=OLD_CLIENTS)
def test_version_0_lists_no_more_than_was_asked(partition: Partition) -> None:
    partition.created_with({"segment.ms": "500"})
    partition.produce(4)
    _expect(partition, LATEST, most=1, offset=4, count=1)


@scenario("v0.earliest", impact=OLD_CLIENTS)
def test_version_0_lists_the_start_alone_for_earliest(partition: Partition) -> None:
    partition.created_with({"segment.ms": "500"})
    partition.produce(4)
    _expect(partition, EARLIEST, most=10, offset=0, count=1)


def _expect(partition: Partition, spec: OffsetSpec, *, most: int, offset: int, count: int) -> None:
    if partition.story.facts.list_offsets[0] > 0:
        reason = f"the broker advertises ListOffsets from v{partition.story.facts.list_offsets[0]} on"
        partition.story.add(spec.name, "", (), None, Judgement(Verdict.UNSUPPORTED, reason=reason))
        return
    question = partition.question(spec)
    seen: Observation = partition.cluster.observe(lambda: partition.cluster.list_offsets_v0(question, most=most))
    otherwise = Accepted({"error": 0, "count": Between(0, most)}).legal("version 0 is optional")
    asked = f"ListOffsets v0 {spec.name}, at most {most} offsets"
    partition.check(spec.name, asked, seen, Accepted({"error": 0, "offset": offset, "count": count}), otherwise)
