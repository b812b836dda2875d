"""`offsets run`: the suites against several backends side by side, then the matrix of exactly this run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from backends import registry
from backends.registry import Backend
from conformance.results import new_run_id
from conformance.security import PLAINTEXT, BadClientConfig, Security, read_client_config
from offsets import report
from offsets.exits import CommandFailed, Exit
from offsets.listing import SUITES
from offsets.progress import Progress, backend_of


def perform(
    names: Sequence[str],
    bootstraps: Sequence[str],
    scenarios: Sequence[str],
    profile: str | None,
    out: str,
    jobs: int,
    client_config: str | None,
) -> Exit:
    files = run_backends(names, bootstraps, selection(scenarios, profile, client_config), out, jobs)
    return report.perform(files, out, "local[*]", history=None, known=None)


def run_backends(
    names: Sequence[str], bootstraps: Sequence[str], options: Sequence[str], out: str, jobs: int
) -> list[str]:
    """Run the suites against backends, the embedded defaults where none is named, and return the result files.

    `options` are pytest's own. A backend that does not start has a file that says so.
    """
    columns = [backend.column for backend in chosen(names, bootstraps) or registry.embedded_defaults()]
    run_id = new_run_id()
    results = Path(out) / "results"
    workers = min(jobs, len(columns))
    arguments = [
        *(f"--backend={column}" for column in columns if column not in map(external_column, bootstraps)),
        *(f"--bootstrap={address}" for address in bootstraps),
        *options,
        *(("-n", str(workers), "--dist", "loadscope", "--no-loadscope-reorder") if workers > 1 else ()),
    ]
    log = Path(out) / "logs" / f"{run_id}.log"
    print(f"Run {run_id}: {', '.join(columns)}", file=sys.stderr)
    plugins = [Progress(sys.stderr, columns), OneWorkerPerBackend(columns)]
    code = run_suites(arguments, run_id, results, log, plugins)
    files = sorted(str(path) for path in results.glob(f"{run_id}.*.ndjson"))
    if code is pytest.ExitCode.INTERRUPTED:
        raise CommandFailed(f"interrupted; `offsets report {' '.join(files)}` shows what was asked until then")
    if not files:
        raise CommandFailed(f"nothing was asked: {_last_line(log)}; the whole story is in {log}")
    return files


def selection(scenarios: Sequence[str], profile: str | None, client_config: str | None) -> list[str]:
    """The options of pytest that say what is asked, and how a client is let in."""
    security(client_config)  # a mistake in it is told before a broker is started
    return [
        *(f"--scenario={scenario}" for scenario in scenarios),
        *([f"--profile={profile}"] if profile else []),
        *([f"--client-config={client_config}"] if client_config else []),
    ]


def chosen(names: Sequence[str], bootstraps: Sequence[str]) -> list[Backend]:
    try:
        return [registry.choose(name) for name in names] + [registry.external(address) for address in bootstraps]
    except registry.UnknownBackend as error:
        raise CommandFailed(str(error), Exit.USAGE) from error


def security(client_config: str | None) -> Security:
    try:
        return read_client_config(Path(client_config)) if client_config else PLAINTEXT
    except BadClientConfig as error:
        raise CommandFailed(str(error), Exit.USAGE) from error


def external_column(bootstrap: str) -> str:
    return registry.external(bootstrap).column


def run_suites(arguments: Sequence[str], run_id: str, results: Path, log: Path, plugins: list[object]) -> int:
    """Run pytest in this process, so that whatever ends this process ends the run; its own words go to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    fixed = ["-q", "--tb=short", "--no-header", "-p", "no:cacheprovider", f"--run-id={run_id}", f"--results={results}"]
    with log.open("w", encoding="utf-8") as words, contextlib.redirect_stdout(words):
        return pytest.main([str(SUITES), *fixed, *arguments], plugins=plugins)


class OneWorkerPerBackend:
    """A pytest plugin: all stories of a backend go to one worker, so that its broker is started once.

    Groups of tests are pytest-xdist's own means for this, but those of 3.8 have no effect under pytest 9.2.
    """

    def __init__(self, backends: Sequence[str]) -> None:
        self._backends = backends

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> LoadScopeScheduling:
        backends = self._backends

        class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
            def _split_scope(self, nodeid: str) -> str:
                return backend_of(nodeid, backends)

        return Scheduling(config, log)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "pytest said nothing"
