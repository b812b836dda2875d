"""librdkafka's mock cluster, in this process: what client tests all over the world run against."""

from __future__ import annotations

import confluent_kafka

from backends.registry import Backend
from backends.running import DidNotStart, RunningBackend, await_ready

START_SECONDS = 10.0


class LibrdkafkaMock(RunningBackend):
    """One mock broker. It lives as long as the client that asked for it."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._client: confluent_kafka.Producer | None = None

    def start(self) -> None:
        self._client = confluent_kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
        try:
            nodes = self._client.list_topics(timeout=START_SECONDS).brokers
        except confluent_kafka.KafkaException as error:
            raise DidNotStart(f"librdkafka's mock cluster does not answer: {error}") from error
        node = next(iter(nodes.values()))
        self._address = f"{node.host}:{node.port}"
        await_ready(self._address, seconds=START_SECONDS, alive=lambda: None)

    def stop(self) -> None:
        self._client = None

    @property
    def bootstrap(self) -> str:
        return self._address

    @property
    def build(self) -> str:
        return f"librdkafka {confluent_kafka.libversion()[0]} in confluent-kafka {confluent_kafka.version()}"
