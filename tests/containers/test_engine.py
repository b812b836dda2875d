"""What is said where there is no engine, or none for us: one sentence each, which says what to do."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from backends.engine import connect
from backends.running import DidNotStart


def objection() -> str:
    with pytest.raises(DidNotStart) as refusal:
        connect()
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_no_engine_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    assert objection() == f"no Docker engine answers at unix://{tmp_path}/docker.sock: start one, or set DOCKER_HOST"


def test_an_engine_that_this_user_may_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    # A temporary directory of pytest is closed to other users, and its name too long for a socket.
    place = Path(f"/tmp/offsets-{os.getpid()}.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        place.chmod(0)
        listener.listen()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{place}")
        root = os.geteuid() == 0
        try:
            if root:  # who may do everything
                os.seteuid(65534)
            said = objection()
        finally:
            if root:
                os.seteuid(0)
            place.unlink()
    assert (
        said == f"no permission to use the Docker engine at unix://{place}: join the group that its socket belongs to"
    )
