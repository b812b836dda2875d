"""What the processes of one run share: a broker that the first of them starts and the last of them stops.

pytest-xdist runs a session in several workers. A container is too heavy to have one in each, so they use one
together; and a story that hurts the broker waits until it is alone with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from backends.processes import OWNER, PREFIX, Owner
from backends.running import DidNotStart
from conformance.cluster import StepFailed
from conformance.waiting import DeadlinePassed, eventually

START_SECONDS = 900.0
"""The first user may have to pull an image; the others wait for that."""

TURN_SECONDS = 300.0
"""How long a story may wait for those of the other workers: the longest takes a minute."""


@dataclass(frozen=True)
class Session:
    """One run of the suites: its id, and the process whose end is the end of it."""

    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    owner: Owner = field(default_factory=Owner.this_process)

    @property
    def directory(self) -> Path:
        """Where the processes of the run meet. It names its owner, so that a later run can sweep it."""
        return Path(tempfile.gettempdir()) / f"{PREFIX}run-{self.id}"

    def forget(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


class Shared:
    """One thing that several processes of a session use, by name."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._key = hashlib.sha256(name.encode()).hexdigest()[:16]

    @contextlib.contextmanager
    def locked(self) -> Iterator[dict[str, Any]]:
        """The state that all users see, theirs to change until the block ends; empty at first.

        Users that died without a word are no users any more.
        """
        directory = self._session.directory
        directory.mkdir(parents=True, exist_ok=True)
        (directory / OWNER).write_text(self._session.owner.as_json())
        try:
            lock = FileLock(directory / f"{self._key}.lock", timeout=START_SECONDS)
            with lock:
                path = directory / f"{self._key}.json"
                state: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
                state["users"] = [pid for pid in state.get("users", []) if psutil.pid_exists(pid)]
                try:
                    yield state
                finally:
                    path.write_text(json.dumps(state))
        except Timeout:
            raise DidNotStart(f"another worker has been starting it for more than {START_SECONDS:g} s") from None

    @contextlib.contextmanager
    def turn(self, *, alone: bool) -> Iterator[None]:
        """Hold the thing together with others, or alone. The operating system ends the turn of one that dies."""
        self._session.directory.mkdir(parents=True, exist_ok=True)
        with (self._session.directory / f"{self._key}.turn").open("w") as file:
            kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH

            def taken() -> bool:
                try:
                    fcntl.flock(file, kind | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
                return True

            try:
                eventually(taken, bool, reason="a turn with the broker", seconds=TURN_SECONDS)
            except DeadlinePassed as error:
                raise StepFailed(str(error)) from error
            yield
