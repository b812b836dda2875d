"""A broker as a process of its own, as a person starts it."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from running_broker import RunningBroker, start

QUICK = {
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "50",
    "log.cleaner.backoff.ms": "50",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One broker for all tests that leave it as it was. It must survive every one of them."""
    with start(tmp_path_factory.mktemp("broker"), settings=QUICK) as running:
        yield running
        assert running.process.poll() is None, "a test ended the broker that all tests share"


@pytest.fixture
def bootstrap(broker: RunningBroker) -> Iterator[str]:
    """The address of the shared broker, which may not log a failure while the test runs."""
    before = broker.log.stat().st_size
    yield broker.address
    assert "Traceback" not in broker.log.read_text()[before:], broker.log.read_text()[before:][-4000:]


@pytest.fixture
def topic() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def tls_files(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that is its own authority, with its key in the same file."""
    authority = trustme.CA()
    server = authority.issue_cert("127.0.0.1", "localhost")
    server.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    return tmp_path


@pytest.fixture
def run_broker() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `python -m broker` to its end, for command lines that it refuses."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "broker", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)

    return run
