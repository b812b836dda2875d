"""How a client is let in: TLS and SASL, from a file with librdkafka's property names.

The same properties serve the suite's own client and the second one. No secret leaves this module but to the broker:
an object that holds one does not show it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PROTOCOLS = {
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}
"""Whether each speaks TLS and SASL."""

SCRAM_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = ("PLAIN", *SCRAM_HASHES)

SECRETS = ("sasl.password", "ssl.key.password")

KNOWN = frozenset(
    {
        "security.protocol",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        "enable.ssl.certificate.verification",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.username",
        "sasl.password",
    }
)
"""Both clients must understand the same, so what only librdkafka knows is refused."""

MOST_ITERATIONS = 1_000_000
"""Kafka's users have 4096 to 16384; a broker that asks for more than this wants to keep the client busy."""


class BadClientConfig(Exception):
    """A client configuration that cannot be used. The text says which line or name to change."""


class NotLetIn(Exception):
    """What the broker answered does not let this client in, or does not prove that it is the broker."""


@dataclass(frozen=True)
class Security:
    """The properties of a client configuration; none at all is plain text without a login."""

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def tls(self) -> bool:
        return PROTOCOLS[self._protocol][0]

    @property
    def mechanism(self) -> str:
        """The SASL mechanism; empty without SASL."""
        if not PROTOCOLS[self._protocol][1]:
            return ""
        return self.properties.get("sasl.mechanism") or self.properties.get("sasl.mechanisms", "")

    @property
    def user(self) -> str:
        return self.properties.get("sasl.username", "")

    @property
    def password(self) -> str:
        return self.properties.get("sasl.password", "")

    @property
    def _protocol(self) -> str:
        return self.properties.get("security.protocol", "PLAINTEXT").upper()

    def tls_context(self) -> ssl.SSLContext:
        """As librdkafka has it: the broker's certificate is verified, and its name too unless told otherwise."""
        context = ssl.create_default_context(cafile=self.properties.get("ssl.ca.location"))
        if self.properties.get("ssl.endpoint.identification.algorithm", "https") == "none":
            context.check_hostname = False
        if self.properties.get("enable.ssl.certificate.verification", "true") == "false":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate = self.properties.get("ssl.certificate.location")
        if certificate:
            # An empty password instead of none: OpenSSL would ask the terminal for one.
            password = self.properties.get("ssl.key.password", "")
            context.load_cert_chain(certificate, self.properties.get("ssl.key.location"), password)
        return context

    def hide(self, words: str) -> str:
        """Words without the secrets of this configuration."""
        for name in SECRETS:
            secret = self.properties.get(name)
            words = words.replace(secret, "…") if secret else words
        return words


PLAINTEXT = Security()


def read_client_config(path: Path) -> Security:
    """The properties of a file: a line NAME=VALUE each; empty lines and those that begin with # say nothing."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise BadClientConfig(f"--client-config {path} cannot be read ({error})") from error
    properties = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise BadClientConfig(f"line {number} of {path} is no NAME=VALUE")
        if name.strip() not in KNOWN:
            raise BadClientConfig(
                f"line {number} of {path} names {name.strip()!r}; known are {', '.join(sorted(KNOWN))}"
            )
        properties[name.strip()] = value.strip()
    return _checked(Security(properties), path)


def _checked(security: Security, path: Path) -> Security:
    protocol = security.properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise BadClientConfig(f"{path}: security.protocol is one of {', '.join(PROTOCOLS)}, not {protocol!r}")
    if PROTOCOLS[protocol][1]:
        if security.mechanism not in MECHANISMS:
            raise BadClientConfig(f"{path}: sasl.mechanism is one of {', '.join(MECHANISMS)}")
        if not (security.user and security.password):
            raise BadClientConfig(f"{path}: {protocol} needs sasl.username and sasl.password")
    elif security.user or security.password:
        raise BadClientConfig(f"{path}: a user is for SASL_PLAINTEXT and SASL_SSL, not for {protocol}")
    if security.tls:
        try:
            security.tls_context()
        except (OSError, ssl.SSLError) as error:
            raise BadClientConfig(f"{path}: its certificates cannot be used ({security.hide(str(error))})") from error
    return security


def plain_message(security: Security) -> bytes:
    """RFC 4616: no authorisation id, user, password."""
    return b"\0" + security.user.encode() + b"\0" + security.password.encode()


class Scram:
    """The client's side of RFC 5802 without channel binding: two messages out, two in, both sides proved."""

    def __init__(self, security: Security, *, nonce: str = "") -> None:
        self._hash = SCRAM_HASHES[security.mechanism]
        self._password = security.password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        user = security.user.replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={user},r={self._nonce}"

    def first(self) -> bytes:
        return f"n,,{self._first}".encode()

    def final(self, challenge: bytes) -> bytes:
        """The proof for a challenge, which must go on from this client's own nonce."""
        told = _fields(challenge)
        try:
            nonce, salt, iterations = told["r"], base64.b64decode(told["s"], validate=True), int(told["i"])
        except (KeyError, ValueError) as error:
            raise NotLetIn("the broker's SCRAM challenge is malformed") from error
        if not nonce.startswith(self._nonce) or not 0 < iterations <= MOST_ITERATIONS:
            raise NotLetIn("the broker's SCRAM challenge does not belong to this login")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._mac(salted, b"Client Key")
        without_proof = f"c=biws,r={nonce}"
        signed = f"{self._first},{challenge.decode()},{without_proof}".encode()
        signature = self._mac(hashlib.new(self._hash, client_key).digest(), signed)
        self._expected = self._mac(self._mac(salted, b"Server Key"), signed)
        proof = bytes(ours ^ theirs for ours, theirs in zip(client_key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, answer: bytes) -> None:
        """The broker must prove that it knows the user too."""
        told = _fields(answer)
        if "e" in told:
            raise NotLetIn(f"the broker says {told['e']}")
        if not hmac.compare_digest(told.get("v", ""), base64.b64encode(self._expected).decode()):
            raise NotLetIn("the broker does not prove that it knows this user")

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._hash).digest()


def _fields(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError as error:
        raise NotLetIn("the broker's SCRAM message is malformed") from error
    return {name: value for name, _, value in (part.partition("=") for part in parts)}
