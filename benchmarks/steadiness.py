"""Does any check ever change its mind? `python -m benchmarks.steadiness` runs the suites twenty times and compares.

Every fifth run uses four workers beside a core that is kept busy. A check differs when its verdict does, or the
error or offset that was observed; timestamps that a broker stamps are its clock's. Ends with 1 if any differs.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.results import read_checks

ROOT = Path(__file__).parents[1]

RUN_SECONDS = 600.0
"""A run takes twenty seconds, and minutes on a young Kafka 3.5 to 3.7."""

BUSY = "while True: pass"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steadiness", description=__doc__)
    parser.add_argument("--backend", default="apache-kafka@4.3.1", metavar="NAME[@VERSION]")
    parser.add_argument("--runs", type=int, default=20, metavar="N")
    options = parser.parse_args()
    seen: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    asked: dict[str, int] = defaultdict(int)
    for number in range(1, options.runs + 1):
        crowded = number % 5 == 0
        with tempfile.TemporaryDirectory() as results:
            with _busy_core() if crowded else contextlib.nullcontext():
                summary = _run(options.backend, results, ["-n", "4"] if crowded else [])
            for line in read_checks(sorted(Path(results).glob("*.ndjson"))):
                observed = line["observed"] or {}
                seen[line["check"]].add((line["verdict"], observed.get("error"), observed.get("offset")))
                asked[line["check"]] += 1
        print(f"run {number}{', -n 4 beside a busy core' if crowded else ''}: {summary}", file=sys.stderr)
    differing = {check: answers for check, answers in seen.items() if len(answers) > 1 or asked[check] != options.runs}
    for check, answers in differing.items():
        print(f"{check}: asked {asked[check]} times, {len(answers)} outcomes: {sorted(answers, key=str)}")
    print(f"{options.backend}: {len(seen)} checks in {options.runs} runs, {len(differing)} of them differ")
    return 1 if differing else 0


def _run(backend: str, results: str, more: list[str]) -> str:
    command = [sys.executable, "-m", "pytest", str(ROOT / "suites"), f"--backend={backend}", f"--results={results}"]
    done = subprocess.run(
        [*command, "-q", "-rN", "--tb=no", "-p", "no:cacheprovider", *more],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    return (done.stdout.strip().splitlines() or ["pytest said nothing"])[-1]


@contextlib.contextmanager
def _busy_core() -> Iterator[None]:
    busy = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


if __name__ == "__main__":
    sys.exit(main())
