"""A broker that somebody else started: used, never stopped, and left without the topics of the run."""

from __future__ import annotations

from backends.registry import Backend
from backends.running import DidNotStart, RunningBackend, await_ready
from conformance.cluster import reachable
from conformance.security import PLAINTEXT, Security

READY_SECONDS = 15.0


class External(RunningBackend):
    """The broker at `bootstrap`."""

    disposable = False

    def __init__(self, backend: Backend, bootstrap: str, *, security: Security = PLAINTEXT) -> None:
        super().__init__(backend, security=security)
        self._bootstrap = bootstrap

    def start(self) -> None:
        objection = reachable(self._bootstrap, self.security)
        if objection:
            raise DidNotStart(f"{self._bootstrap}: {objection}. Check --bootstrap HOST:PORT and --client-config FILE")
        await_ready(self._bootstrap, seconds=READY_SECONDS, alive=lambda: None, security=self.security)

    def stop(self) -> None:
        """Nothing: it is not ours."""

    @property
    def bootstrap(self) -> str:
        return self._bootstrap

    @property
    def build(self) -> str:
        return f"at {self._bootstrap}"
