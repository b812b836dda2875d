"""A Kafka from its jars that lets nobody in without TLS and SCRAM, and certificates of a CA of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization

from backends.apache_kafka import CLUSTER_ID, JVM_FLAGS, SETTINGS
from backends.java_runtime import find_java
from backends.kafka_jars import kafka_classpath
from backends.processes import free_ports, last_lines, start_process, stop_process
from backends.running import await_ready
from conformance.security import read_client_config

VERSION = "4.3.1"
USER, PASSWORD = "alice", "open-sesame-7391"
SECONDS = 90.0


@dataclass(frozen=True)
class Secured:
    """Where the broker listens, and how to be let in."""

    address: str
    place: Path

    def client_config(self, **changed: str) -> Path:
        """A client configuration that works, but for what is `changed`; dots are underscores, empty is left out."""
        properties = {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.place / "ca.pem"),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        } | {name.replace("_", "."): value for name, value in changed.items()}
        lines = [f"{name}={value}\n" for name, value in properties.items() if value]
        path = self.place / f"client-{abs(hash(tuple(lines)))}.properties"
        path.write_text("# for tests\n\n" + "".join(lines))
        return path


@contextmanager
def secured_kafka(place: Path) -> Iterator[Secured]:
    make_certificates(place)
    java, port, controller = find_java(), *free_ports(2)
    classpath = ":".join(map(str, kafka_classpath(VERSION, java)))
    settings = SETTINGS | {
        "listeners": f"SASL_SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"SASL_SSL://127.0.0.1:{port}",
        "inter.broker.listener.name": "SASL_SSL",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "log.dirs": str(place / "data"),
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(place / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(place / "ca.pem"),
        "connection.failed.authentication.delay.ms": "0",
    }
    login = "org.apache.kafka.common.security.{}LoginModule required username={!r} password={!r} {};"
    for mechanism in ("scram-sha-256", "scram-sha-512"):
        settings[f"listener.name.sasl_ssl.{mechanism}.sasl.jaas.config"] = _quoted(
            login.format("scram.Scram", USER, PASSWORD, "")
        )
    settings["listener.name.sasl_ssl.plain.sasl.jaas.config"] = _quoted(
        login.format("plain.Plain", USER, PASSWORD, f"user_{USER}='{PASSWORD}'")
    )
    properties = place / "server.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    scram = [f"SCRAM-SHA-{bits}=[name={USER},password={PASSWORD}]" for bits in (256, 512)]
    run = [str(java.executable), *JVM_FLAGS, "-cp", classpath]
    tool = [*run, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
    tool += [argument for each in scram for argument in ("--add-scram", each)]
    subprocess.run(tool, check=True, capture_output=True, timeout=SECONDS)
    log = place / "broker.log"
    process = start_process([*run, "kafka.Kafka", str(properties)], log)
    try:
        secured = Secured(f"127.0.0.1:{port}", place)
        await_ready(
            secured.address,
            seconds=SECONDS,
            alive=lambda: None if process.poll() is None else f"Kafka exited: {last_lines(log)}",
            security=read_client_config(secured.client_config()),
        )
        yield secured
    finally:
        stop_process(process)


def _quoted(jaas: str) -> str:
    return jaas.replace("'", '"')


def make_certificates(place: Path) -> None:
    """A CA, and a certificate of it for 127.0.0.1 with its key in one PEM file, as Kafka wants it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(place / "ca.pem"))
    issued = authority.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    # Kafka reads keys in this form only.
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
    (place / "broker.pem").write_bytes(key.private_bytes(*form) + chain)
