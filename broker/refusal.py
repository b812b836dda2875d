"""How the broker says no."""

from __future__ import annotations

from kio.schema.errors import ErrorCode


class Refusal(Exception):
    """A request, or one entry of it, that is answered with an error code and a sentence for the client's log."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class CloseConnection(Exception):
    """The peer does not speak the protocol, or not the part of it that is allowed here: there is no answer to give."""
