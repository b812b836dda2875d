"""AddPartitionsToTxn: v0-v3. Later versions are what brokers say to each other (KIP-890)."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from broker.api import OK, Call
from broker.broker import now_ms
from broker.codec import Fields
from broker.refusal import Refusal

VERSIONS = range(4)


async def handle(request: Any, call: Call) -> Fields:
    asked = {(topic.name, partition) for topic in request.v3_and_below_topics for partition in topic.partitions}
    unknown = {each for each in asked if call.broker.topics.log(*each) is None}
    code = OK
    if unknown:
        code = ErrorCode.operation_not_attempted  # all or nothing
    else:
        try:
            call.broker.transactions.add_partitions(
                request.v3_and_below_transactional_id,
                request.v3_and_below_producer_id,
                request.v3_and_below_producer_epoch,
                asked,
                now_ms(),
            )
        except Refusal as refusal:
            code = call.broker.transactions.fencing_error(refusal.code, call.version >= 2)
    return {
        "results_by_topic_v3_and_below": [
            {
                "name": topic.name,
                "results_by_partition": [
                    {
                        "partition_index": partition,
                        "partition_error_code": (
                            ErrorCode.unknown_topic_or_partition if (topic.name, partition) in unknown else code
                        ),
                    }
                    for partition in topic.partitions
                ],
            }
            for topic in request.v3_and_below_topics
        ]
    }
