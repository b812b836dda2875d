"""Live progress of a run: per backend, how many stories are told and how they ended.

On a terminal one line is rewritten as stories end; elsewhere, in a CI log for one, each backend gets a line
when it begins, at every quarter, and when it is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TextIO

import pytest

QUARTERS = 4

SHOWN_ON_ONE_LINE = 100
"""A narrower terminal would wrap the line, and a wrapped line cannot be rewritten."""


@dataclass
class Tale:
    """How far one backend has come."""

    total: int = 0
    done: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.most_common())
        return f"{self.done}/{self.total}" + (f" ({counts})" if counts else "")


class Progress:
    """A pytest plugin for the process that a person looks at; workers of pytest-xdist report to it."""

    def __init__(self, screen: TextIO, backends: Sequence[str]) -> None:
        self._screen = screen
        self._backends = backends
        self._live = screen.isatty()
        self._tales: dict[str, Tale] = {}
        self._verdicts: dict[str, str] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._expect([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if not self._tales:  # every worker collects the same
            self._expect(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        verdict = getattr(report, "verdict", None) or ("broken" if report.failed else None)
        if verdict:
            self._verdicts[report.nodeid] = verdict
        if report.when != "teardown":
            return
        backend = backend_of(report.nodeid, self._backends)
        tale = self._tales.setdefault(backend, Tale())
        tale.done += 1
        tale.verdicts[self._verdicts.pop(report.nodeid, "broken")] += 1
        if self._live:
            self._rewrite()
        elif tale.done == 1 or tale.done == tale.total or tale.done % max(1, tale.total // QUARTERS) == 0:
            self._screen.write(f"  {backend}: {tale}\n")
            self._screen.flush()

    def pytest_sessionfinish(self) -> None:
        if self._live:
            self._screen.write("\r\x1b[K")
            for backend, tale in self._tales.items():
                self._screen.write(f"  {backend}: {tale}\n")
            self._screen.flush()

    def _expect(self, ids: list[str]) -> None:
        for nodeid in ids:
            self._tales.setdefault(backend_of(nodeid, self._backends), Tale()).total += 1

    def _rewrite(self) -> None:
        started = {backend: tale for backend, tale in self._tales.items() if tale.done}
        line = "  ".join(f"{backend} {tale.done}/{tale.total}" for backend, tale in started.items())
        self._screen.write(f"\r\x1b[K{line[-SHOWN_ON_ONE_LINE:]}")
        self._screen.flush()


def backend_of(nodeid: str, backends: Sequence[str]) -> str:
    """The backend in a test's id: the longest name that its parameters begin with."""
    parameters = nodeid.partition("[")[2]
    return max((backend for backend in backends if parameters.startswith(backend)), key=len, default="other tests")
