"""`--client-config`: a Kafka that wants TLS and SCRAM is asked like any other, and no secret is seen afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from secured_kafka import PASSWORD, Secured, make_certificates, secured_kafka
from whole_runs import RUN_SECONDS, ended, lines_in, offsets, suites

from conformance.batches import Record, encode_batch
from conformance.cluster import Cluster
from conformance.second_client import SecondClient
from conformance.security import read_client_config
from conformance.specs import LATEST
from conformance.wire import NotAllowedIn


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_kafka(tmp_path_factory.mktemp("secured")) as kafka:
        yield kafka


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_both_clients_are_let_in_and_agree(secured: Secured, mechanism: str) -> None:
    security = read_client_config(secured.client_config(sasl_mechanism=mechanism))
    topic = f"secured-{mechanism}"
    with Cluster(secured.address, security=security) as cluster:
        cluster.create_topic(topic)
        cluster.produce(topic, 0, encode_batch([Record(0)]))
    assert SecondClient(secured.address, security).list_offsets(topic, 0, LATEST).fields["offset"] == 1


def test_the_suites_run_and_no_secret_is_in_anything_they_leave(secured: Secured, tmp_path: Path) -> None:
    config = secured.client_config()
    out = tmp_path / "out"
    chosen = ["--bootstrap", secured.address, "--client-config", str(config)]
    ran = offsets("run", *chosen, "--scenario=latest.*", "--scenario=agree.*", f"--out={out}", seconds=RUN_SECONDS)
    assert ran.code == 0, ran.err
    checks = [line for line in lines_in(out / "results") if line["kind"] == "check"]
    assert {line["verdict"] for line in checks} == {"conforms"}
    assert any(line["scenario"].startswith("agree.") for line in checks)
    left = [path for path in out.rglob("*") if path.is_file()]
    assert len(left) > 3
    for path in left:
        assert PASSWORD.encode() not in path.read_bytes(), path
        assert b"sasl_authenticate" not in path.read_bytes(), path
    assert PASSWORD not in ran.out + ran.err


def test_a_wrong_password_ends_in_one_sentence_without_it(secured: Secured, tmp_path: Path) -> None:
    config = secured.client_config(sasl_password="wrong-horse-5512")
    code, said = ended(
        suites(tmp_path, f"--bootstrap={secured.address}", f"--client-config={config}", "--scenario=latest.one-record")
    )
    assert code == 1, said
    (reason,) = [line["reason"] for line in lines_in(tmp_path) if line["kind"] == "not-run"]
    assert "user 'alice' is not let in with SCRAM-SHA-512" in reason
    assert "check sasl.username, sasl.password and sasl.mechanism" in reason
    assert "\n" not in reason
    assert "wrong-horse-5512" not in said + reason
    ran = offsets("get", "orders", "--bootstrap", secured.address, "--client-config", str(config))
    assert (ran.code, len(ran.err.splitlines())) == (4, 1)
    assert "is not let in" in ran.err
    assert "wrong-horse-5512" not in ran.err


def test_offsets_get_is_let_in(secured: Secured) -> None:
    security = read_client_config(secured.client_config())
    with Cluster(secured.address, security=security) as cluster:
        cluster.create_topic("got")
    ran = offsets("get", "got", "--bootstrap", secured.address, "--client-config", str(secured.client_config()))
    assert (ran.code, ran.out) == (0, "got:0:0\n"), ran.err


def test_a_certificate_of_somebody_else_is_not_trusted(secured: Secured, tmp_path: Path) -> None:
    make_certificates(tmp_path)
    security = read_client_config(secured.client_config(ssl_ca_location=str(tmp_path / "ca.pem")))
    with pytest.raises(NotAllowedIn, match="its certificate is not trusted"):
        Cluster(secured.address, security=security)


def test_a_client_without_tls_is_told_what_to_look_at(secured: Secured, tmp_path: Path) -> None:
    code, said = ended(suites(tmp_path, f"--bootstrap={secured.address}", "--scenario=latest.one-record"))
    assert code == 1, said
    (reason,) = [line["reason"] for line in lines_in(tmp_path) if line["kind"] == "not-run"]
    assert "--client-config FILE" in reason
