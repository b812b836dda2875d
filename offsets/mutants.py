"""`offsets mutants`: can the suite fail, and is it fair? The matrix of mutants and scenarios on one backend."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tabulate import tabulate

from backends import registry
from backends.presets import prepare
from backends.processes import sweep
from backends.running import DidNotStart
from conformance.results import now, suite_revision
from mutants.bugs import MUTANTS
from mutants.matrix import run
from mutants.proxy import ProxyThread
from mutants.score import Score, as_json, objections, score
from mutants.stories import tales
from mutants.variations import VARIATIONS
from offsets.exits import CommandFailed, Exit
from offsets.listing import told_functions

NAMES_SHOWN = 3
"""Scenarios named beside a mutant in the terminal; all of them are in the file."""

PROGRESS_SECONDS = 5.0


def perform(name: str, scenarios: Sequence[str], mutants: Sequence[str], out: str) -> Exit:
    try:
        backend = registry.choose(name)
    except registry.UnknownBackend as error:
        raise CommandFailed(str(error), Exit.USAGE) from error
    stories = [tale for tale in tales(told_functions()) if _chosen(tale.scenario.id, scenarios)]
    bugs = [bending for bending in MUTANTS if _chosen(bending.name, mutants)]
    liberties = [bending for bending in VARIATIONS if _chosen(bending.name, mutants)]
    if not stories or not (bugs or liberties):
        raise CommandFailed("nothing matches: offsets list scenarios, offsets list mutants", Exit.USAGE)
    for polite in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(polite, signal.default_int_handler)  # so that the broker is stopped, as on Ctrl-C
    sweep()
    started, before = now(), time.monotonic()
    try:
        with prepare(backend) as broker, ProxyThread() as proxies:
            build = broker.build
            matrix = run(broker, proxies, stories, bugs, liberties, _Progress())
    except DidNotStart as error:
        raise CommandFailed(f"{backend.column} did not start: {error}") from error
    result = score(matrix, bugs, liberties, backend.capabilities)
    wrong = objections(result, all_mutants=not mutants, all_scenarios=not scenarios)
    seconds = time.monotonic() - before
    header = {
        "backend": backend.column,
        "build": build,
        "started": started,
        "seconds": round(seconds, 1),
        "suite_revision": suite_revision(),
        "tellings": matrix.tellings,
        "objections": wrong,
    }
    path = Path(out) / "mutants.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(header | as_json(result), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    _print(result)
    caught = sum(bool(each.caught) for each in result.mutants)
    passed = sum(not each.caught and not each.unclear for each in result.variations)
    useful = sum(bool(each.caught) for each in result.scenarios)
    print(
        f"\n{backend.column}: {caught} of {len(result.mutants)} mutants caught, {useful} of {len(result.scenarios)} "
        f"scenarios catch at least one, {passed} of {len(result.variations)} legal variations pass; "
        f"{matrix.tellings} stories in {seconds:.0f} s. Everything is in {path}."
    )
    for sentence in wrong:
        print(f"offsets mutants: {sentence}", file=sys.stderr)
    return Exit.DEVIATION if wrong else Exit.AS_EXPECTED


def _chosen(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _print(result: Score) -> None:
    rows = [
        [
            each.bending.name,
            f"{len(each.caught)} of {len(each.told)}",
            _some(list(each.caught)) or ("SURVIVES" if each.told else "nobody met it"),
        ]
        for each in result.mutants
    ]
    print(tabulate(rows, ["mutant", "caught by", "scenarios that met it, among them"], tablefmt="simple"))
    rows = [
        [each.bending.name, str(len(each.told)), _some([*each.caught, *each.unclear]) or "nobody"]
        for each in result.variations
    ]
    print("\n" + tabulate(rows, ["legal variation", "met by", "called a deviation by"], tablefmt="simple"))
    rows = [
        [each.scenario, f"{len(each.caught)} of {len(each.could)}", _some(list(each.caught)) or "NOTHING"]
        for each in result.scenarios
    ]
    print("\n" + tabulate(rows, ["scenario", "catches", "mutants that it meets, among them"], tablefmt="simple"))
    if result.absent:
        print(f"\nNot told, because this backend cannot have them: {', '.join(result.absent)}.")
    if result.beyond:
        print(f"\nNot tried, for the same reason: {', '.join(each.name for each in result.beyond)}.")


def _some(names: list[str]) -> str:
    return ", ".join(names[:NAMES_SHOWN]) + (", ..." if len(names) > NAMES_SHOWN else "")


class _Progress:
    """A line on stderr now and then."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, doing: str, done: int, of: int) -> None:
        if time.monotonic() - self._last > PROGRESS_SECONDS or done == of:
            self._last = time.monotonic()
            print(f"{doing}: {done} of {of}", file=sys.stderr)
