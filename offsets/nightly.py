"""`offsets nightly`: run, add to history, and tell a person in ten lines what changed since the last good night."""

from __future__ import annotations

from argparse import Namespace

from offsets import diff, report
from offsets.check import worst_exit
from offsets.exits import Exit
from offsets.run import run_backends, selection
from reports.model import NOT_RUN, Report
from reports.profiles import YES
from reports.summary import headline
from reports.terminal import worse
from reports.words import NAME_LENGTH, TEXT_LENGTH, clean

LINES = 10
"""What fits in the preview of a mail, and is read."""


def perform(options: Namespace) -> Exit:
    chosen = selection(options.scenario, options.profile, options.client_config)
    files = run_backends(options.backend, options.bootstrap, chosen, options.out, options.jobs)
    history = options.history or f"{options.out}/history"
    built = report.build(files, options.out, options.master, history, options.baselines)
    print("\n".join(ten_lines(built, f"{options.out}/report")))
    return verdict(built)


def verdict(built: Report) -> Exit:
    """The exit code of a night."""
    assert built.history is not None
    oracle, _ = report.conclusion(built.matrix)
    absent = [Exit.ENVIRONMENT for column in built.matrix.columns if column.status == NOT_RUN]
    return worst_exit([oracle, *absent, *(diff.EXITS[change.outcome] for change in built.history.changes)])


def ten_lines(built: Report, place: str) -> list[str]:
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
    safe = sum(each.safe == YES for each in built.profiles)
    foot = [
        f"Safe: {safe} of {len(built.profiles)} pairs of backend and profile.",
        f"Flaky: {len(built.history.flakes)}. Malformed lines: {built.matrix.malformed}.",
        f"Read on: {place}/index.html",
    ]
    broke = [
        f"{change.outcome}: {clean(change.backend, NAME_LENGTH)} {text}"
        for change, text in worse(built.history.changes)
    ]
    room = LINES - len(lines) - len(foot)
    shown = broke if len(broke) <= room else [*broke[: room - 1], f"and {len(broke) - room + 1} more"]
    return [*lines, *shown, *foot]
