"""`offsets report`: result files in, the matrix in the terminal and the report under DIR/report out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from backends.java_runtime import find_java
from backends.user_cache import SetupError
from conformance import baselines, profiles
from conformance.baselines import Baseline
from offsets.check import read_baseline
from offsets.exits import CommandFailed, Exit
from reports import job, terminal
from reports.model import NOT_RUN, Change, Column, Matrix, Report
from reports.session import JavaDidNotStart


def perform(results: Sequence[str], out: str, master: str, history: str | None, known: str | None) -> Exit:
    report = build(results, out, master, history, known)
    print(terminal.render(report), end="")
    print(f"\nWritten to {out}/report: {', '.join(job.FILES)} and badges", file=sys.stderr)
    code, sentence = conclusion(report.matrix)
    if sentence:
        print(f"offsets: {sentence}", file=sys.stderr)
    return code


def build(results: Sequence[str], out: str, master: str, history: str | None, known: str | None) -> Report:
    """Fold, keep and write. `known` is a directory of baselines, if any: what they list is no news."""
    listed = [read_baseline(str(file)) for file in sorted(Path(known).glob("*.toml"))] if known else []
    rules = {str(profile): profile.rules for profile in profiles.newest()}
    try:
        files = job.result_files(results)
        print("Folding the results into the matrix with Spark", file=sys.stderr)
        return job.build(files, out, master, str(find_java().home), history, rules, partial(_expected, listed))
    except (SetupError, JavaDidNotStart, job.NothingToReport, job.LinesUnaccounted, OSError) as error:
        raise CommandFailed(str(error)) from error


def _expected(listed: Sequence[Baseline], change: Change, column: Column) -> bool:
    version = baselines.version_in(column.version, column.build or "")
    entries = (each.entry(change.check, version) for each in listed if each.is_for(column.backend))
    return any(entry and entry.verdict in (change.after, baselines.FLAKY) for entry in entries)


def conclusion(matrix: Matrix) -> tuple[Exit, str]:
    """The exit code of a run and, where it is not 0, why.

    About the run, not about the brokers: their deviations are what a matrix is for, and holding them against an
    expectation is another command's work. Apache Kafka is expected to conform, because it is what the
    expectations are taken from.
    """
    if all(column.status == NOT_RUN for column in matrix.columns):
        return Exit.ENVIRONMENT, "no backend ran; the notes above say why"
    outcomes = {
        cell.outcome
        for row in matrix.rows
        for column, cell in zip(matrix.columns, row.cells, strict=True)
        if column.oracle
    }
    if "deviates" in outcomes:
        return Exit.DEVIATION, "Apache Kafka itself deviates from a scenario, which is therefore in doubt"
    if outcomes & {"inconclusive", "broken"}:
        return Exit.INCONCLUSIVE, "Apache Kafka itself gave no answer that could be judged; see the matrix"
    return Exit.AS_EXPECTED, ""
