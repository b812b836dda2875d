"""A broker's own clock: libfaketime gives one process another time than the rest of the machine."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from importlib import resources

from conformance.partition import FaultNotApplied


def with_clock(seconds: int) -> Mapping[str, str]:
    """What to add to the environment of a process so that its clock is this far from the true one; 0 adds nothing.

    Only the time of day moves: waits and deadlines of the process are measured by a clock that is left alone.
    """
    if not seconds:
        return {}
    return {
        "LD_PRELOAD": _library(),
        "FAKETIME": f"{seconds:+d}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # By itself it mends waits that it takes for broken, and Java's then end at once.
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }


def _library() -> str:
    """The library, if it can be loaded here: its package has one for Linux on x86-64 and calls it good for all."""
    library = str(resources.files("libfaketime") / "vendor" / "libfaketime" / "src" / "libfaketime.so.1")
    try:
        ctypes.CDLL(library)
    except OSError as error:
        raise FaultNotApplied(f"libfaketime, which moves a broker's clock, does not load here: {error}") from error
    return library
