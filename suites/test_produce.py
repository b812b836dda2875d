"""Produce: the offsets that an acknowledgement names."""

from __future__ import annotations

from conformance.answers import Accepted, answer
from conformance.batches import Record, encode_batch
from conformance.catalogue import scenario
from conformance.partition import Partition
from conformance.specs import LATEST, T

DUPLICATE_SEQUENCE_NUMBER = 46


@scenario("produce.duplicate", impact="Records are doubled by every producer that tries again after a lost answer.")
def test_a_batch_that_is_sent_again_keeps_its_offset(partition: Partition) -> None:
    partition.produce(7)
    producer = partition.cluster.start_idempotent_producer()
    batch = encode_batch([Record(T + 8000), Record(T + 9000)], producer=producer, base_sequence=0)
    first = partition.try_produce(batch)
    partition.check("first", "Produce two records", first, Accepted({"error": 0, "base_offset": 7}))
    known = Accepted({"error": DUPLICATE_SEQUENCE_NUMBER}).legal("clients take it for an acknowledgement")
    again = partition.try_produce(batch)
    partition.check("again", "Produce the same batch again", again, Accepted({"error": 0, "base_offset": 7}), known)
    partition.expect(LATEST, answer(offset=9))
