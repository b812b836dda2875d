"""The one way to wait: until it holds, or until the deadline says what was seen last."""

import itertools
import time

import pytest

from conformance.waiting import SLOWEST_POLL_SECONDS, DeadlinePassed, eventually


def test_the_first_value_that_holds_is_returned() -> None:
    count = itertools.count()
    assert eventually(lambda: next(count), lambda seen: seen >= 3, reason="three", seconds=5) == 3
    assert next(count) == 4


def test_what_holds_at_once_is_not_waited_for() -> None:
    started = time.monotonic()
    assert eventually(lambda: "there", lambda _: True, reason="it", seconds=60) == "there"
    assert time.monotonic() - started < 1


def test_a_deadline_says_what_was_wanted_how_long_and_what_was_seen_last() -> None:
    with pytest.raises(DeadlinePassed, match=r"^the leader: not within 0\.05 s; last seen: nobody$"):
        eventually(lambda: "nobody", lambda seen: seen != "nobody", reason="the leader", seconds=0.05)


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_even_without_any_time_there_is_one_look(seconds: float) -> None:
    looks: list[int] = []
    with pytest.raises(DeadlinePassed):
        eventually(lambda: looks.append(1), lambda _: False, reason="nothing", seconds=seconds)
    assert looks == [1]


def test_the_deadline_is_kept_and_the_last_look_is_after_it() -> None:
    started, looks = time.monotonic(), []
    with pytest.raises(DeadlinePassed):
        eventually(lambda: looks.append(time.monotonic()), lambda _: False, reason="nothing", seconds=0.3)
    assert looks[-1] - started >= 0.3
    assert time.monotonic() - started < 0.3 + SLOWEST_POLL_SECONDS + 1  # a busy machine's slack


def test_looks_get_fewer_with_time() -> None:
    looks: list[int] = []
    with pytest.raises(DeadlinePassed):
        eventually(lambda: looks.append(1), lambda _: False, reason="nothing", seconds=0.3)
    assert 1 < len(looks) < 15  # one every 5 ms would be 60


def test_an_exception_of_a_look_is_not_swallowed() -> None:
    def look() -> int:
        raise KeyError("offset")

    with pytest.raises(KeyError):
        eventually(look, lambda _: True, reason="it", seconds=5)
