"""What ingest storage relies on: the two stories of seed 000, told step by step with every API asked.

The seed is the design document of Grafana Mimir's ingest storage, sections "Last produced offset" and
"Partition start offset".
"""

from __future__ import annotations

import itertools

from conformance.answers import Accepted, Observation, answer
from conformance.batches import Record, encode_batch
from conformance.catalogue import scenario
from conformance.cluster import Question
from conformance.partition import OFFSET_OUT_OF_RANGE, Partition
from conformance.specs import EARLIEST, LATEST, T

SEED = "seed 000, Ingest storage design"


@scenario(
    "ingest.last-produced",
    impact="Mimir takes latest - 1 for the last record: off by one, a strong read misses a sample or never ends.",
    sources=(f"{SEED}, Last produced offset",),
)
def test_last_produced_offset(partition: Partition) -> None:
    partition.expect(LATEST, answer(offset=0), check="empty")
    first = partition.produce(1)
    partition.check("first-record", "Write 1st record", first, Accepted({"error": 0, "base_offset": 0}))
    partition.expect(LATEST, answer(offset=1), check="one-record")
    second = partition.produce(1)
    partition.check("second-record", "Write 2nd record", second, Accepted({"error": 0, "base_offset": 1}))
    partition.expect(LATEST, answer(offset=2), check="two-records")


@scenario(
    "agree.after-each-step",
    impact="An ingester that restarts after retention replays from 0, or fails with OFFSET_OUT_OF_RANGE.",
    sources=(f"{SEED}, Partition start offset",),
)
def test_partition_start_offset(partition: Partition) -> None:
    partition.expect(EARLIEST, answer(offset=0), check="nothing-written")
    _all_apis_agree(partition, "nothing-written", start=0, end=0)
    first = partition.produce(1)
    partition.check("first-record", "Write 1st record", first, Accepted({"error": 0, "base_offset": 0}))
    partition.expect(EARLIEST, answer(offset=0), check="one-record")
    _all_apis_agree(partition, "one-record", start=0, end=1)
    second = partition.produce(1)
    partition.check("second-record", "Write 2nd record", second, Accepted({"error": 0, "base_offset": 1}))
    partition.expect(EARLIEST, answer(offset=0), check="two-records")
    _all_apis_agree(partition, "two-records", start=0, end=2)
    partition.expire_everything()
    partition.expect(EARLIEST, answer(offset=2), check="retention-emptied")
    _all_apis_agree(partition, "retention-emptied", start=2, end=2)
    third = partition.produce(1)
    partition.check("third-record", "Write 3rd record", third, Accepted({"error": 0, "base_offset": 2}))
    partition.expect(EARLIEST, answer(offset=2), check="third-written")
    _all_apis_agree(partition, "third-written", start=2, end=3)


def _all_apis_agree(partition: Partition, step: str, *, start: int, end: int) -> None:
    """Latest, and what Fetch says of both ends, after a step of the story."""
    partition.expect(LATEST, answer(offset=end), check=f"{step}-latest")
    fetched = partition.fetch(end)
    ends = {"error": fetched.error, "high_watermark": fetched.high_watermark, "log_start": fetched.log_start_offset}
    wanted = Accepted({"error": 0, "high_watermark": end, "log_start": start})
    partition.check(f"{step}-fetch", f"Fetch from offset {end}", Observation(ends), wanted)


@scenario("ingest.start-empty", impact="A reader of an emptied partition waits for a record that will never come.")
def test_a_start_above_the_last_produced_offset_means_empty(partition: Partition) -> None:
    partition.produce(2)
    partition.expire_everything()
    start = partition.ask(EARLIEST).fields.get("offset", -9)
    last = partition.ask(LATEST).fields.get("offset", -9) - 1
    asked = "earliest, and latest - 1, of a partition that retention emptied at 2"
    observed = Observation({"start": start, "last_produced": last})
    partition.check("empty", asked, observed, Accepted({"start": 2, "last_produced": 1}))


@scenario("ingest.start-after-delete", impact="A reader starts at a record that was deleted.")
def test_the_start_follows_deletion(partition: Partition) -> None:
    partition.produce(2)
    partition.delete_records(1)
    partition.expect(EARLIEST, answer(offset=1))


@scenario("ingest.many-topics-one-request", impact="Mimir asks for all its partitions at once and fails on a gap.")
def test_several_topics_are_answered_in_one_request(partition: Partition) -> None:
    written = {0: (2, 1), 1: (1, 0)}
    topics = [partition.another_topic(partitions=2) for _ in written]
    for number, counts in written.items():
        for index, count in enumerate(counts):
            if count:
                batch = encode_batch([Record(T + each) for each in range(count)])
                partition.cluster.produce(topics[number], index, batch)
    questions = [Question(topic, index, LATEST) for topic in topics for index in range(2)]
    seen = partition.cluster.list_offsets_together(questions)
    for number, counts in written.items():
        for index, count in enumerate(counts):
            entries = seen.get((topics[number], index), [])
            observed = entries[0] if len(entries) == 1 else Observation({"entries": len(entries)})
            asked = "ListOffsets latest of four partitions in two topics"
            partition.check(f"topic-{number}-partition-{index}", asked, observed, answer(offset=count))


@scenario("ingest.strong-read", impact="A query right after a write does not see it.")
def test_a_read_up_to_latest_sees_what_was_acknowledged(partition: Partition) -> None:
    offset = partition.produce(3).fields["base_offset"]
    latest = partition.expect(LATEST, answer(offset=3)).fields.get("offset", 0)
    offsets = [record.offset for record in partition.read_all() if record.offset < latest]
    observed = Observation({"last_read": offsets[-1] if offsets else -1, "records": len(offsets)})
    partition.check("read", f"Fetch up to {latest}", observed, Accepted({"last_read": offset, "records": 3}))


@scenario("ingest.out-of-range-behind", impact="A reader that fell behind retention reads nothing and nobody tells it.")
def test_a_fetch_below_the_start_is_out_of_range(partition: Partition) -> None:
    partition.produce(10)
    partition.delete_records(5)
    observed = Observation({"error": partition.fetch(3).error})
    partition.check("fetch", "Fetch from 3, the start being 5", observed, Accepted({"error": OFFSET_OUT_OF_RANGE}))


@scenario("ingest.out-of-range-ahead", impact="A reader that is ahead of the log reads what it did not ask for.")
def test_a_fetch_above_the_end_is_out_of_range(partition: Partition) -> None:
    partition.produce(3)
    observed = Observation({"error": partition.fetch(7).error})
    partition.check("fetch", "Fetch from 7, the end being 3", observed, Accepted({"error": OFFSET_OUT_OF_RANGE}))


@scenario("ingest.hw-in-fetch", impact="Mimir's concurrent fetchers ask beyond the end, or stop short of it.")
def test_fetch_tells_the_high_watermark(partition: Partition) -> None:
    partition.produce(10)
    observed = Observation({"high_watermark": partition.fetch(0).high_watermark})
    partition.check("fetch", "Fetch from 0", observed, Accepted({"high_watermark": 10}))


@scenario("ingest.gap-is-loss", impact="Mimir counts every gap as missed records and alerts.")
def test_offsets_of_consecutive_records_have_no_gaps(partition: Partition) -> None:
    partition.produce(10)
    offsets = [record.offset for record in partition.read_all()]
    gaps = sum(later - earlier != 1 for earlier, later in itertools.pairwise(offsets))
    observed = Observation({"records": len(offsets), "gaps": gaps})
    partition.check("gaps", "Fetch ten records", observed, Accepted({"records": 10, "gaps": 0}))
