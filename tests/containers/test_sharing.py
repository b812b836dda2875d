"""What the workers of one run share: state that all see, and turns with a broker that one of them wants to hurt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from whole_runs import ROOT

from backends import sharing
from backends.processes import OWNER, Owner
from backends.sharing import Session, Shared
from conformance.cluster import StepFailed
from conformance.waiting import eventually


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return Session()


def test_what_one_leaves_the_next_finds(session: Session) -> None:
    with Shared(session, "a broker").locked() as state:
        state["port"] = 9092
    with Shared(session, "a broker").locked() as state:
        assert state["port"] == 9092
    with Shared(session, "another broker").locked() as state:
        assert "port" not in state


def test_users_that_died_are_none(session: Session) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(30)
    with Shared(session, "a broker").locked() as state:
        state["users"] = [ended.pid, Owner.this_process().pid]
    with Shared(session, "a broker").locked() as state:
        assert state["users"] == [Owner.this_process().pid]


def test_the_directory_names_its_owner_and_goes_with_the_session(session: Session) -> None:
    with Shared(session, "a broker").locked():
        assert Owner.from_json((session.directory / OWNER).read_text()).lives()
    session.forget()
    assert not session.directory.exists()


def refused(session: Session, *, alone: bool) -> bool:
    """Whether one more user waits in vain for a turn with the broker."""
    try:
        with Shared(session, "a broker").turn(alone=alone):
            return False
    except StepFailed as error:
        return "a turn with the broker" in str(error)


def test_stories_that_do_no_harm_share_and_one_that_does_waits(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "TURN_SECONDS", 0.2)
    with Shared(session, "a broker").turn(alone=False):
        assert not refused(session, alone=False)
        assert refused(session, alone=True)
    with Shared(session, "a broker").turn(alone=True), Shared(session, "another broker").turn(alone=True):
        assert refused(session, alone=False)
        assert refused(session, alone=True)


def test_the_turn_of_a_worker_that_was_killed_ends_with_it(session: Session, tmp_path: Path) -> None:
    held = tmp_path / "held"
    code = (
        "import tempfile, sys, time, pathlib\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "from backends.sharing import Session, Shared\n"
        f"with Shared(Session({session.id!r}), 'a broker').turn(alone=True):\n"
        f"    pathlib.Path({str(held)!r}).touch()\n"
        "    time.sleep(600)\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    eventually(held.exists, bool, reason="the worker to have its turn", seconds=60)
    worker.kill()
    worker.wait(30)
    with Shared(session, "a broker").turn(alone=True):
        pass
