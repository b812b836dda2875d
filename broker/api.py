"""What one module of `broker.apis` is made of, and the few things that several of them share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from broker.broker import Broker
from broker.codec import Fields
from broker.refusal import Refusal

OK = ErrorCode.none

ALL_TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
ALL_CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
ALL_GROUP_OPERATIONS = sum(1 << operation for operation in (3, 6, 8))
"""KIP-430's bits of what a client may do: everything, since nobody is kept from anything here."""


@dataclass(slots=True)
class Peer:
    """What is known of the client at the other end of a connection."""

    host: str
    client_id: str = ""
    user: str | None = None
    mechanism: str | None = None
    """The SASL mechanism that was agreed on, until the client has used it."""


class Call(NamedTuple):
    """One request in the hands of an API: everything about it but its body."""

    key: int
    version: int
    peer: Peer
    broker: Broker


Handle = Callable[[Any, Call], Awaitable[Fields | None]]
"""From a request, with kio's field names, to the answer; None where the protocol has none (Produce with acks=0)."""


@dataclass(frozen=True, slots=True)
class Api:
    """One API: which versions are honoured, and what answers them."""

    key: int
    name: str
    versions: range
    handle: Handle


def check_leader_epoch(known: int, current: int) -> None:
    """KIP-320: the epoch that a client believes in, -1 meaning none, against the one that is."""
    if known == -1 or known == current:
        return
    if known < current:
        raise Refusal(ErrorCode.fenced_leader_epoch, f"epoch {known} is older than the leader's {current}")
    raise Refusal(ErrorCode.unknown_leader_epoch, f"epoch {known} is newer than the leader's {current}")
