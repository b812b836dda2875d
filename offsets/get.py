"""`offsets get`: the offset of each partition for one spec, from any broker, one line each.

KIP-1005's tool for every broker that speaks Kafka. Lines go to standard output and nothing else does, so that
scripts can read them; what could not be answered goes to standard error, a sentence each, and ends in exit code 4.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

# Where Hypothesis is installed, the codec tells it how to make values of its types, which takes longer than to ask.
sys.modules["hypothesis"] = None  # type: ignore[assignment]

from conformance.cluster import Cluster, NotSupported, Question, StepFailed  # noqa: E402
from conformance.security import PLAINTEXT, BadClientConfig, read_client_config  # noqa: E402
from conformance.specs import NO_OFFSET, OffsetSpec, parse_spec  # noqa: E402
from conformance.wire import BadAddress, BrokerUnreachable, NotAllowedIn, WireError, error_name  # noqa: E402
from offsets.exits import CommandFailed, Exit  # noqa: E402


def perform(wanted: Sequence[str], time: str, bootstrap: str, client_config: str | None = None) -> Exit:
    try:
        spec = parse_spec(time)
        security = read_client_config(Path(client_config)) if client_config else PLAINTEXT
    except (ValueError, BadClientConfig) as error:
        raise CommandFailed(str(error), Exit.USAGE) from error
    topics = [_topic_and_partition(each) for each in wanted]
    try:
        cluster = Cluster(bootstrap, security=security)
    except BadAddress as error:
        raise CommandFailed(str(error), Exit.USAGE) from error
    except BrokerUnreachable as error:
        raise CommandFailed(f"no broker answers at {error}; check --bootstrap HOST:PORT") from error
    except NotAllowedIn as error:
        raise CommandFailed(f"{error} in --client-config FILE") from error
    except WireError as error:
        raise CommandFailed(f"what listens there does not answer like a Kafka ({error})") from error
    with cluster:
        try:
            return _print_offsets(cluster, topics, spec)
        except (WireError, NotSupported) as error:
            raise CommandFailed(f"the broker stopped answering: {error}") from error


def _topic_and_partition(text: str) -> tuple[str, int | None]:
    topic, colon, partition = text.partition(":")
    if colon and not partition.isdecimal():
        raise CommandFailed(f"{text!r} is no TOPIC:PARTITION: the partition is a number", Exit.USAGE)
    return topic, int(partition) if colon else None


def _print_offsets(cluster: Cluster, topics: Sequence[tuple[str, int | None]], spec: OffsetSpec) -> Exit:
    highest = cluster.highest("list_offsets")
    if spec.since > highest:
        raise CommandFailed(
            f"the broker cannot say: {spec.name} needs ListOffsets v{spec.since}, and it speaks up to v{highest}"
        )
    by_leader: dict[str, list[Question]] = defaultdict(list)
    for topic, wanted in topics:
        for partition, leader in _partitions(cluster, topic, wanted).items():
            by_leader[leader].append(Question(topic, partition, spec))
    offsets: dict[tuple[str, int], int] = {}
    complaints: list[str] = []
    for questions in by_leader.values():
        answers = cluster.list_offsets_together(questions)
        for place in ((question.topic, question.partition) for question in questions):
            match answers.get(place, []):
                case [answer] if answer.fields["error"]:
                    complaints.append(f"{_name(place)}: the broker refuses: {error_name(answer.fields['error'])}")
                case [answer]:
                    offsets[place] = answer.fields["offset"]
                case several:
                    complaints.append(f"{_name(place)}: the broker gave {len(several)} answers instead of one")
    for place, offset in sorted(offsets.items()):
        if offset != NO_OFFSET:
            print(f"{_name(place)}:{offset}")
    for complaint in complaints:
        print(f"offsets get: {complaint}", file=sys.stderr)
    return Exit.ENVIRONMENT if complaints else Exit.AS_EXPECTED


def _name(place: tuple[str, int]) -> str:
    return f"{place[0]}:{place[1]}"


def _partitions(cluster: Cluster, topic: str, wanted: int | None) -> dict[int, str]:
    try:
        leaders = cluster.partition_leaders(topic)
    except StepFailed as error:
        raise CommandFailed(f"{error}; check the topic's name") from error
    if wanted is not None:
        if wanted not in leaders:
            raise CommandFailed(f"topic {topic} has no partition {wanted}: it has {len(leaders)}, counted from 0")
        return {wanted: leaders[wanted]}
    return leaders
