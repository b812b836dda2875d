"""The one way to wait: ask again until it holds, or until a deadline passes and says what was seen last."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

V = TypeVar("V")

POLL_SECONDS = 0.001
"""Between two looks at first: about as long as a broker takes to answer one."""

SLOWEST_POLL_SECONDS = 0.1
"""Between two looks after a while: what takes seconds need not be seen to the millisecond."""


class DeadlinePassed(Exception):
    """A condition did not come true in time. What was wanted, how long, and the last value are in the text."""


def eventually(look: Callable[[], V], holds: Callable[[V], bool], *, reason: str, seconds: float) -> V:
    """The first value of `look` for which `holds`; `DeadlinePassed` if none comes within `seconds`.

    `look` is called at least once. An exception of `look` is not swallowed: a look that may fail says so
    in its value.
    """
    deadline = time.monotonic() + seconds
    pause = POLL_SECONDS
    while True:
        value = look()
        if holds(value):
            return value
        if time.monotonic() >= deadline:
            raise DeadlinePassed(f"{reason}: not within {seconds:g} s; last seen: {value}")
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(pause * 1.5, SLOWEST_POLL_SECONDS)
