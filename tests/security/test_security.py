"""What a client configuration may say, and SCRAM by the book."""

from __future__ import annotations

from pathlib import Path

import pytest
from whole_runs import offsets

from conformance.security import BadClientConfig, NotLetIn, Scram, Security, read_client_config

# The conversation of RFC 7677, section 3.
RFC = Security(
    {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "user",
        "sasl.password": "pencil",
    }
)
NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
PROOF_OF_THE_BROKER = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_scram_as_in_its_rfc() -> None:
    scram = Scram(RFC, nonce=NONCE)
    assert scram.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert scram.final(CHALLENGE) == FINAL
    scram.verify(PROOF_OF_THE_BROKER)


def test_a_broker_that_does_not_know_the_user_is_found_out() -> None:
    scram = Scram(RFC, nonce=NONCE)
    scram.final(CHALLENGE)
    with pytest.raises(NotLetIn, match="does not prove"):
        scram.verify(b"v=AAAA")
    with pytest.raises(NotLetIn, match="says invalid-proof"):
        scram.verify(b"e=invalid-proof")


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"\xff",
        b"r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        b"r=rOprNGfwEbeRWgbNEkqO1,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096000000",
        b"r=rOprNGfwEbeRWgbNEkqO1,s=!,i=1",
    ],
)
def test_a_challenge_that_makes_no_sense_is_refused(challenge: bytes) -> None:
    with pytest.raises(NotLetIn):
        Scram(RFC, nonce=NONCE).final(challenge)


def test_a_name_with_the_signs_of_scram_is_escaped() -> None:
    odd = Security({**RFC.properties, "sasl.username": "a=b,c"})
    assert Scram(odd, nonce="n").first() == b"n,,n=a=3Db=2Cc,r=n"


def test_a_configuration_does_not_show_its_secrets() -> None:
    assert "pencil" not in repr(RFC)
    assert RFC.hide("wrong pencil") == "wrong …"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("security.protocol", "line 1 of .* is no NAME=VALUE"),
        ("# note\nssl.engine=x", "line 2 of .* names 'ssl.engine'; known are "),
        ("security.protocol=SECURE", "security.protocol is one of PLAINTEXT, SSL, "),
        ("security.protocol=SASL_SSL\nsasl.mechanism=GSSAPI", "sasl.mechanism is one of PLAIN, SCRAM-SHA-256"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "needs sasl.username and sasl.password"),
        ("sasl.username=alice\nsasl.password=x", "a user is for SASL_PLAINTEXT and SASL_SSL"),
        ("security.protocol=SSL\nssl.ca.location=/nowhere.pem", "its certificates cannot be used"),
    ],
)
def test_a_configuration_that_cannot_be_used_says_what_to_change(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(text)
    with pytest.raises(BadClientConfig, match=words):
        read_client_config(path)


@pytest.mark.parametrize("command", [("get", "orders"), ("run",), ("smoke",)], ids=lambda command: command[0])
def test_a_file_that_is_not_there_is_a_mistake_on_the_command_line(command: tuple[str, ...]) -> None:
    ran = offsets(*command, "--bootstrap", "127.0.0.1:1", "--client-config", "nowhere.properties")
    assert ran.code == 5
    assert "--client-config nowhere.properties cannot be read" in ran.err
