"""Latest (-1): the offset that the next record will get."""

from __future__ import annotations

from conformance.answers import Accepted, Observation, answer, at_least
from conformance.batches import Codec, Record, encode_batch
from conformance.catalogue import scenario
from conformance.cluster import Cluster, NotSupported, Question
from conformance.partition import Partition
from conformance.specs import EARLIEST, LATEST, NO_TIMESTAMP, T

STRONG_READS = "A strongly consistent read waits for this offset: too low and it misses acknowledged samples."


@scenario("latest.empty-partition", impact="An ingester that starts on a new partition waits for a record for ever.")
def test_latest_of_a_partition_nobody_wrote_to_is_zero(partition: Partition) -> None:
    partition.expect(LATEST, answer(offset=0))


@scenario("latest.one-record", impact=STRONG_READS)
def test_latest_after_one_record_is_one(partition: Partition) -> None:
    partition.produce(1)
    partition.expect(LATEST, answer(offset=1))


@scenario("latest.n-records-one-batch", impact=STRONG_READS)
def test_a_batch_of_five_moves_latest_by_five(partition: Partition) -> None:
    partition.produce_batch(1000, 2000, 3000, 4000, 5000)
    partition.expect(LATEST, answer(offset=5))


@scenario("latest.compressed-batch", impact=STRONG_READS)
def test_a_compressed_batch_moves_latest_by_its_records(partition: Partition) -> None:
    for count, codec in enumerate((Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD), start=1):
        partition.produce_batch(1000, 2000, 3000, 4000, 5000, codec=codec)
        partition.expect(LATEST, answer(offset=5 * count), check=f"latest-after-{codec.name.lower()}")


@scenario("latest.is-next-base-offset", impact=STRONG_READS)
def test_the_next_record_gets_the_offset_that_latest_promised(partition: Partition) -> None:
    partition.produce(3)
    promised = partition.expect(LATEST, answer(offset=3)).fields.get("offset", 0)
    written = partition.produce(1)
    partition.check("produce", "Produce one record", written, Accepted({"error": 0, "base_offset": promised}))


@scenario("latest.gt-last-record", impact="A reader that stops at latest - 1 never reads the last record.")
def test_latest_is_greater_than_every_readable_offset(partition: Partition) -> None:
    partition.produce(3)
    last = max(record.offset for record in partition.read_all())
    partition.expect(LATEST, answer(offset=at_least(last + 1)))


@scenario("latest.timestamp-minus-one", impact="Clients take a timestamp for that of a record and seek by it.")
def test_latest_carries_no_timestamp(partition: Partition) -> None:
    partition.produce(3)
    partition.expect(LATEST, answer(timestamp=NO_TIMESTAMP))


@scenario(
    "latest.v1v3-no-epoch",
    revision=2,
    impact="Old clients misread every answer of a partition that carries more fields.",
)
def test_versions_without_leader_epochs_still_answer_latest(partition: Partition) -> None:
    partition.produce(3)
    lowest, highest = partition.story.facts.list_offsets
    versions = range(max(lowest, 1), min(highest, 3) + 1)
    if not versions:
        raise NotSupported(f"the broker advertises ListOffsets from v{lowest} on")
    for version in versions:
        partition.expect(LATEST, answer(offset=3), version=version, check=f"v{version}")


@scenario("latest.after-delete-all", impact="Offsets start over: consumers' committed offsets point into the future.")
def test_deleting_all_records_does_not_move_latest(partition: Partition) -> None:
    partition.produce(10)
    partition.delete_records(-1)
    partition.expect(LATEST, answer(offset=10))


@scenario(
    "latest.after-retention-all",
    impact="An ingester that restarts after retention seeks to 0 and replays, or fails with OFFSET_OUT_OF_RANGE.",
)
def test_retention_that_empties_the_log_does_not_move_latest(partition: Partition) -> None:
    partition.produce(2)
    partition.expire_everything()
    partition.expect(LATEST, answer(offset=2))


@scenario("latest.read-your-writes", impact=STRONG_READS)
def test_an_acknowledged_record_is_below_latest_at_once(partition: Partition) -> None:
    for count in range(1, 21):
        partition.produce(1)
        seen = partition.ask(LATEST)
        if seen.fields.get("offset") != count or count == 20:
            asked = f"ListOffsets latest at once after acknowledgement {count} of 20"
            partition.check("latest", asked, seen, answer(offset=at_least(count)))
            break


@scenario("latest.independent-partitions", impact="One busy tenant moves the offsets of all the others.")
def test_writing_to_one_partition_does_not_move_another(partition: Partition) -> None:
    topic = partition.another_topic(partitions=2)
    batch = encode_batch([Record(T)])
    written = partition.cluster.produce(topic, 0, batch)
    partition.check("produce", "Produce to partition 0", written, Accepted({"error": 0, "base_offset": 0}))
    partition.point_at(topic, 1)
    partition.expect(LATEST, answer(offset=0))


@scenario("latest.idempotent-read", impact=STRONG_READS)
def test_asking_twice_without_a_write_gives_the_same_answer(partition: Partition) -> None:
    partition.produce(3)
    first = partition.expect(LATEST, answer(offset=3), check="first")
    second = partition.ask(LATEST)
    asked = "ListOffsets latest again, nothing written in between"
    partition.check("second", asked, second, Accepted(first.fields))


@scenario("latest.monotonic", impact="A reader that remembers a larger offset than the log has reads nothing any more.")
def test_latest_never_goes_back_between_connections(partition: Partition) -> None:
    partition.produce(5)
    highest = 0
    for _ in range(10):
        with Cluster(partition.broker.bootstrap, security=partition.broker.security) as other:
            seen = other.observe(lambda other=other: other.list_offsets(Question(partition.topic, 0, LATEST)))
        partition.produce(1)
        if seen.fields.get("offset", -1) < highest:
            break
        highest = seen.fields["offset"]
    asked = "ListOffsets latest on ten new connections, a record written after each"
    partition.check("latest", asked, seen, answer(offset=at_least(max(highest, 5))))


@scenario("latest.failed-produce-no-advance", impact="A refused write leaves a hole that readers report as data loss.")
def test_a_batch_with_a_wrong_checksum_does_not_move_latest(partition: Partition) -> None:
    partition.produce(3)
    spoilt = bytearray(encode_batch([Record(T + 4000)]))
    spoilt[-2] ^= 0xFF
    refusal = partition.cluster.observe(lambda: partition.try_produce(bytes(spoilt)))
    asked = "Produce one batch whose checksum does not match"
    corrupt, invalid = Accepted({"error": 2}), Accepted({"error": 87}).legal("INVALID_RECORD also refuses it")
    partition.check("refused", asked, refusal, corrupt, invalid)
    partition.expect(LATEST, answer(offset=3))


@scenario("latest.sum-equals-count", impact="Lag and record counts on dashboards are wrong.")
def test_latest_minus_earliest_counts_the_records(partition: Partition) -> None:
    topic = partition.another_topic(partitions=4)
    for index in range(4):
        batch = encode_batch([Record(T + each) for each in range(index + 1)])
        partition.cluster.produce(topic, index, batch)
    total = 0
    for index in range(4):
        partition.point_at(topic, index)
        total += partition.ask(LATEST).fields.get("offset", 0) - partition.ask(EARLIEST).fields.get("offset", 0)
    asked = "latest - earliest, summed over four partitions that hold 1, 2, 3 and 4 records"
    partition.check("sum", asked, Observation({"records": total}), Accepted({"records": 10}))
