"""Committed offsets: where a consumer group goes on."""

from __future__ import annotations

from conformance.answers import Accepted
from conformance.catalogue import scenario
from conformance.partition import Partition


@scenario("commit.none", impact="A new group reads the whole topic, whatever its reset policy says.")
def test_a_group_that_never_committed_has_no_offset(partition: Partition) -> None:
    partition.produce(3)
    group = partition.unused_topic_name()
    seen = partition.cluster.committed_offset(group, partition.topic, 0)
    partition.check("offset", "OffsetFetch of a new group", seen, Accepted({"error": 0, "committed_offset": -1}))
