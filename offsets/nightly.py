"""`offsets nightly`: run, add to history, and tell a person in ten lines what changed since the last good night."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from conformance.baselines import Baseline
from offsets import diff, report
from offsets.check import read_baseline, worst_exit
from offsets.exits import Exit
from offsets.run import run_backends, selection
from reports.model import NOT_RUN, Change, Report
from reports.profiles import YES
from reports.summary import headline
from reports.terminal import worse
from reports.words import NAME_LENGTH, TEXT_LENGTH, clean

LINES = 10
"""What fits in the preview of a mail, and is read."""


def perform(options: Namespace) -> Exit:
    baselines = [read_baseline(str(file)) for file in sorted(Path(options.baselines).glob("*.toml"))]
    chosen = selection(options.scenario, options.profile)
    files = run_backends(options.backend, options.bootstrap, chosen, options.out, options.jobs)
    history = options.history or f"{options.out}/history"
    built = report.build(files, options.out, options.master, history)
    code, news = judge(built, baselines)
    print("\n".join(ten_lines(built, news, f"{options.out}/report")))
    return code


def judge(built: Report, baselines: Sequence[Baseline]) -> tuple[Exit, list[Change]]:
    """The exit code of a night, and the changes that no baseline expects."""
    assert built.history is not None
    versions = {column.backend: column.version or column.build or "" for column in built.matrix.columns}
    news = [change for change in built.history.changes if not _expected(change, baselines, versions)]
    oracle, _ = report.conclusion(built.matrix)
    absent = [Exit.ENVIRONMENT for column in built.matrix.columns if column.status == NOT_RUN]
    return worst_exit([oracle, *absent, *(diff.EXITS[change.outcome] for change in news)]), news


def _expected(change: Change, baselines: Sequence[Baseline], versions: Mapping[str, str]) -> bool:
    for baseline in baselines:
        if baseline.is_for(change.backend):
            known = baseline.entry(change.check, versions.get(change.backend, ""))
            return known is not None and known.verdict in (change.after, "flaky")
    return False


def ten_lines(built: Report, news: Sequence[Change], place: str) -> list[str]:
    """At most ten lines: how the night went, what broke, who did not run, who is safe, and where to read on."""
    assert built.history is not None
    columns = built.matrix.columns
    ran = [column for column in columns if column.status != NOT_RUN]
    lines = [f"Night of {max(column.run_id for column in columns)}: {len(ran)} of {len(columns)} backends ran."]
    lines += [
        f"NOT RUN {clean(column.backend, NAME_LENGTH)}: {clean('; '.join(column.reasons), TEXT_LENGTH)}"
        for column in columns
        if column.status == NOT_RUN
    ][:2]
    lines.append(f"Changed: {headline(built.history)}.")
    safe = sum(verdict.safe == YES for verdict in built.profiles)
    foot = [
        f"Safe: {safe} of {len(built.profiles)} pairs of backend and profile.",
        f"Flaky: {len(built.history.flakes)}. Malformed lines: {built.matrix.malformed}.",
        f"Read on: {place}/summary.md",
    ]
    broke = [f"{change.outcome}: {clean(change.backend, NAME_LENGTH)} {text}" for change, text in worse(news)]
    room = LINES - len(lines) - len(foot)
    shown = broke if len(broke) <= room else [*broke[: room - 1], f"and {len(broke) - room + 1} more"]
    return [*lines, *shown, *foot]
