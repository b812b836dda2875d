"""`python -m broker` as a person or a parent process meets it."""

from __future__ import annotations

import json
import re
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from hostile_client import API_VERSIONS, METADATA, answer, connect, is_alive, request
from running_broker import start

Run = Callable[..., "subprocess.CompletedProcess[str]"]

SECONDS = 15.0


def test_help_names_every_option_and_setting(run_broker: Run) -> None:
    done = run_broker("--help")
    assert done.returncode == 0
    for word in ("--listen", "--advertise", "--config", "--metrics", "--tls-cert", "--sasl-users", "log.retention.ms"):
        assert word in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--listen", "nowhere"], "not HOST:PORT"),
        (["--listen", "127.0.0.1:99999"], "not HOST:PORT"),
        (["--config", "nothing"], "not NAME=VALUE"),
        (["--config", "no.such=1"], "known are"),
        (["--config", "log.retention.ms=soon"], "not a long"),
        (["--tls-cert", "/no/such/file"], "No such file"),
        (["--sasl-users", "/no/such/file"], "No such file"),
    ],
)
def test_a_command_line_that_cannot_be_is_refused_in_one_line(
    run_broker: Run, arguments: list[str], words: str
) -> None:
    done = run_broker(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_port_that_is_taken_is_said_so(run_broker: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run_broker("--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert done.returncode == 3
    assert "cannot listen" in done.stderr


def test_one_line_says_where_it_listens(tmp_path: Path) -> None:
    with start(tmp_path) as broker:
        assert re.fullmatch(r"listening on 127\.0\.0\.1:\d+", broker.announcement)
        assert is_alive(broker.host_and_port)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_order(tmp_path: Path, how: signal.Signals) -> None:
    with start(tmp_path) as broker, connect(broker.host_and_port) as idle:
        started = time.monotonic()
        broker.process.send_signal(how)
        assert broker.process.wait(5) == 0
        assert time.monotonic() - started < 2
        assert answer(idle) is None
        assert "Traceback" not in broker.log.read_text()


def test_logs_are_lines_of_json(tmp_path: Path) -> None:
    with start(tmp_path) as broker, connect(broker.host_and_port) as connection:
        connection.sendall(request(999, 0))
        assert answer(connection) is None
        lines = [json.loads(line) for line in broker.log.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["started", "connection closed"]
    assert lines[1]["reason"] == "api key 999 is not one of this broker's"


def test_clients_are_told_the_advertised_address(tmp_path: Path) -> None:
    with start(tmp_path, "--advertise", "localhost:0") as broker:
        metadata = AdminClient({"bootstrap.servers": broker.address}).list_topics(timeout=SECONDS)
        (node,) = metadata.brokers.values()
        assert (node.host, node.port) == ("localhost", broker.host_and_port[1])


def test_settings_are_followed_and_shown(tmp_path: Path, topic: str) -> None:
    settings = {"auto.create.topics.enable": "false", "num.partitions": "3"}
    with start(tmp_path, settings=settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        assert admin.list_topics(topic, timeout=SECONDS).topics[topic].error is not None
    with start(tmp_path, settings={"num.partitions": "3"}) as broker:
        producer = Producer({"bootstrap.servers": broker.address})
        producer.produce(topic, b"creates the topic")
        assert producer.flush(SECONDS) == 0
        assert len(producer.list_topics(topic, timeout=SECONDS).topics[topic].partitions) == 3


def test_metrics_are_served_in_prometheus_form(tmp_path: Path) -> None:
    with start(tmp_path, "--metrics", "127.0.0.1:0") as broker:
        is_alive(broker.host_and_port)
        url = broker.announcement.split("metrics on ")[1]
        page = urllib.request.urlopen(url, timeout=5).read().decode()
        samples = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
        assert samples['broker_requests_total{api="api_versions"}'] == "1"
        assert float(samples["broker_sent_bytes_total"]) > 0
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(url.replace("/metrics", "/other"), timeout=5)


def test_tls_is_spoken_with_a_certificate(tmp_path: Path, tls_files: Path, topic: str) -> None:
    with start(tmp_path, "--tls-cert", str(tls_files / "server.pem")) as broker:
        config = {
            "bootstrap.servers": broker.address,
            "security.protocol": "SSL",
            "ssl.ca.location": str(tls_files / "authority.pem"),
        }
        producer = Producer(config)
        producer.produce(topic, b"secret")
        assert producer.flush(SECONDS) == 0
        with connect(broker.host_and_port) as plain:
            plain.sendall(request(API_VERSIONS, 0))
            assert b"\x00\x00\x00\x07" not in plain.recv(1000)  # an alert of TLS, or nothing; no answer
        context = ssl.create_default_context(cafile=str(tls_files / "authority.pem"))
        with context.wrap_socket(connect(broker.host_and_port), server_hostname="localhost") as secret:
            secret.sendall(request(API_VERSIONS, 0))
            assert answer(secret) is not None


def test_with_users_only_those_with_a_password_are_served(tmp_path: Path, topic: str) -> None:
    users = tmp_path / "users"
    users.write_text("alice:wonder:land\nbob:builder\n")
    with start(tmp_path, "--sasl-users", str(users)) as broker:
        config = {
            "bootstrap.servers": broker.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "log_level": 0,
        }
        producer = Producer(config | {"sasl.password": "wonder:land"})
        producer.produce(topic, b"hello")
        assert producer.flush(SECONDS) == 0
        stranger = Consumer(config | {"sasl.password": "guess", "group.id": "g"})
        with pytest.raises(KafkaException):
            stranger.list_topics(timeout=3)
        stranger.close()
        with connect(broker.host_and_port) as anonymous:
            anonymous.sendall(request(API_VERSIONS, 0))
            assert answer(anonymous) is not None
            anonymous.sendall(request(METADATA, 1, b"\xff\xff\xff\xff"))
            assert answer(anonymous) is None
