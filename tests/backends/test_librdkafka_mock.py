"""librdkafka's mock cluster: in this process, on loopback, and gone when it is stopped."""

import psutil
import pytest

from backends.librdkafka_mock import LibrdkafkaMock
from backends.registry import choose
from conformance.cluster import Cluster
from conformance.partition import FaultNotApplied
from conformance.waiting import eventually


def listening() -> set[str]:
    """Addresses on which this process listens."""
    sockets = [each.laddr for each in psutil.Process().net_connections() if each.status == psutil.CONN_LISTEN]
    return {f"{address[0]}:{address[1]}" for address in sockets}


def test_it_listens_on_loopback_until_it_is_stopped() -> None:
    before = listening()
    mock = LibrdkafkaMock(choose("librdkafka-mock"))
    with mock:
        assert listening() - before == {mock.bootstrap}
        assert mock.bootstrap.startswith("127.0.0.1:")
        assert mock.build.startswith("librdkafka ")
        assert mock.facts.backend == "librdkafka-mock"
    eventually(lambda: listening() - before, lambda left: not left, reason="its socket to be closed", seconds=5)
    mock.stop()  # twice is once


def test_each_mock_is_one_of_its_own() -> None:
    with LibrdkafkaMock(choose("librdkafka-mock")) as one, LibrdkafkaMock(choose("librdkafka-mock")) as other:
        assert one.bootstrap != other.bootstrap
        with Cluster(one.bootstrap) as cluster, Cluster(other.bootstrap) as elsewhere:
            cluster.create_topic("mine")
            assert cluster.topic_exists("mine")
            assert not elsewhere.topic_exists("mine")


@pytest.mark.parametrize("lever", ["restart", "kill", "pause", "resume", "cut_network", "heal_network"])
def test_it_has_no_lever_to_be_hurt_with(lever: str) -> None:
    mock = LibrdkafkaMock(choose("librdkafka-mock"))
    with pytest.raises(FaultNotApplied, match="librdkafka-mock cannot be"):
        getattr(mock, lever)()
