"""`offsets smoke`: does a backend boot, answer, and have the capabilities that it declares?

One short scenario per capability. Whether its answers are right is not asked here: a scenario that could be told
to its end shows that the capability is there.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tabulate import tabulate

from backends.registry import Backend
from conformance.results import new_run_id, read_checks
from offsets.exits import CommandFailed, Exit
from offsets.progress import Progress
from offsets.run import chosen, external_column, run_suites, security

ANSWERS = "answers"

PROBES: Mapping[str, str] = {
    ANSWERS: "ingest.last-produced",
    "timestamps": "ts.exact",
    "batch": "ts.within-batch",
    "retention": "ret.emptied",
    "delete-records": "delete.to-offset",
    "logappendtime": "ts.log-append-time-batch",
    "compaction": "tour.compacted",
    "transactions": "txn.open-rc",
    "restart": "restart.crash-acked",
    "pause": "restart.pause",
    "network-cut": "restart.network-cut",
    "clock-step": "restart.clock-back",
    "disk-full": "restart.disk-full",
    "tiered": "tier.latest-inclusive",
}
"""The scenario that shows a capability; `answers` is what every broker must do. What a broker's version ranges
say by themselves (`legacy`) needs no probe."""

THERE = frozenset({"conforms", "deviates"})
"""Verdicts on an answer. Every other verdict means that there was none."""


def perform(names: Sequence[str], bootstraps: Sequence[str], client_config: str | None = None) -> Exit:
    security(client_config)
    backends = chosen(names, bootstraps)
    if not backends:
        raise CommandFailed("which backend? Give -b NAME[@VERSION] or --bootstrap HOST:PORT", Exit.USAGE)
    return max(_smoke(backend, bootstraps, client_config) for backend in backends)


def _smoke(backend: Backend, bootstraps: Sequence[str], client_config: str | None) -> Exit:
    run_id = new_run_id()
    address = next((each for each in bootstraps if external_column(each) == backend.column), None)
    arguments = [
        f"--bootstrap={address}" if address else f"--backend={backend.column}",
        *(f"--scenario={scenario}" for scenario in PROBES.values()),
        *((f"--client-config={client_config}",) if client_config else ()),
    ]
    with tempfile.TemporaryDirectory() as scratch:
        results, log = Path(scratch), Path(scratch) / "log"
        code = run_suites(arguments, run_id, results, log, [Progress(sys.stderr, [backend.column])])
        if code is pytest.ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        verdicts: dict[str, list[Mapping[str, object]]] = {}
        for line in read_checks(sorted(results.glob("*.ndjson"))):
            verdicts.setdefault(line["scenario"], []).append(line)
        if not verdicts:
            raise CommandFailed(f"{backend.column} did not run: {_reason(log)}")
    missing = 0
    rows = []
    for capability, scenario in PROBES.items():
        declared = capability == ANSWERS or capability in backend.capabilities
        absent = [line for line in verdicts.get(scenario, []) if line["verdict"] not in THERE]
        shown = scenario in verdicts and not absent
        missing += declared and not shown
        word = "there" if shown else "NOT THERE" if declared else "not declared"
        reason = str(absent[0]["reason"]) if absent and declared else ""
        rows.append([capability, word, scenario, reason])
    print(f"{backend.column}\n\n{tabulate(rows, ['capability', 'is', 'as shown by', 'why not'], tablefmt='simple')}")
    return Exit.DEVIATION if missing else Exit.AS_EXPECTED


def _reason(log: Path) -> str:
    words = log.read_text(encoding="utf-8", errors="replace")
    told = [line for line in words.splitlines() if "not run:" in line]
    return told[0].partition("not run:")[2].strip() if told else "pytest did not get as far as a question"
