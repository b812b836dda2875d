"""The matrix of bendings and scenarios on one backend: who can notice what, and who does.

Each scenario is told once without a bending, and what the proxy heard is kept. A scenario can notice a bending if the
bending changes anything in what was heard; only then is it told again, through that bending, for real. A story that
pulls a lever of the broker, as a restart, is told through all of them at once, so that it is pulled once for them all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TypeVar

from backends.running import RunningBackend
from conformance.answers import Verdict
from mutants.bending import UNBENT, Bending, together
from mutants.memory import Memory
from mutants.messages import Answered
from mutants.proxy import ProxyThread
from mutants.stories import Ending, Tale, Together, tell

SIDE_BY_SIDE = 16
"""Stories wait for the broker most of the time; so many keep two cores busy, and more make each other late."""

ROUND = 900
"""Stories for one life of a broker. Each leaves a topic or more, and Kafka looks through all of them for expired
records ten times a second: after some thousands it is busy with nothing else. A fresh one starts in two seconds."""

UNCLEAR = frozenset({Verdict.INCONCLUSIVE, Verdict.BROKEN})
"""Verdicts that may be about a busy machine rather than about a broker."""


@dataclass(frozen=True)
class Cell:
    """One telling of one scenario through one bending."""

    bending: Bending
    ending: Ending


@dataclass(frozen=True)
class Matrix:
    """`plain` are the endings without a bending; `cells` those of every telling that could notice one."""

    plain: tuple[Ending, ...]
    cells: tuple[Cell, ...]

    @property
    def tellings(self) -> int:
        """How many stories were told; one that was told through several legal variations counts once."""
        return len(self.plain) + len({id(cell.ending) for cell in self.cells})


Job = tuple[list[Bending], Tale]
"""A story to tell, and the bendings to tell it through: one, or several legal variations together."""

Work = TypeVar("Work")
Done = TypeVar("Done")

Progress = Callable[[str, int, int], None]
"""Told what is going on, how many tellings are done, and how many there are."""


def run(
    backend: RunningBackend,
    proxies: ProxyThread,
    stories: Sequence[Tale],
    mutants: Sequence[Bending],
    variations: Sequence[Bending],
    progress: Progress,
) -> Matrix:
    """Tell everything. The backend runs already; it is started anew between rounds, and where a story wants that.

    Legal variations that do not hide each other are told together, and one by one only where that is not conform. A
    story that a legal variation leaves unclear is told again with nothing beside it:
    a deadline that passed on a busy machine accuses nobody.
    """
    bendings = [*mutants, *variations]

    def plainly(tale: Tale) -> Ending:
        ending = tell(tale, backend, proxies, UNBENT, recording=True)
        if ending.verdict in UNCLEAR:
            return tell(tale, backend, proxies, UNBENT, recording=True)
        return ending

    def jobs(endings: Iterable[Ending]) -> list[Job]:
        wanted: list[Job] = []
        for ending in endings:
            if ending.verdict is Verdict.CONFORMS:
                met = [bending for bending in bendings if can_notice(bending, ending.heard)]
                company = [bending for bending in met if bending in variations and not bending.alone]
                wanted += [([bending], ending.tale) for bending in met if bending not in company]
                wanted += [(company, ending.tale)] if company else []
        return wanted

    def bent(job: Job, meeting: Together | None = None) -> list[Cell]:
        company, tale = job
        ending = tell(tale, backend, proxies, together(company), together=meeting)
        return [Cell(bending, ending) for bending in company]

    shared = [tale for tale in stories if not tale.levers & backend.backend.capabilities]
    plain = _side_by_side(plainly, shared, SIDE_BY_SIDE, "scenarios as they are", progress)
    mixed = jobs(plain)
    random.Random(len(mixed)).shuffle(mixed)  # so that stories which wait are told beside stories which do not
    told: list[list[Cell]] = []
    for start in range(0, len(mixed), ROUND):
        if start:
            backend.stop()
            backend.start()
        doing = f"scenarios through mutants, from {start} of {len(mixed)}"
        told += _side_by_side(bent, mixed[start : start + ROUND], SIDE_BY_SIDE, doing, progress)
    for tale in stories:
        if tale not in shared:
            plain.append(plainly(tale))
            hurting = jobs(plain[-1:])
            meeting = Together(len(hurting), SIDE_BY_SIDE)
            doing = f"{tale.scenario.id} through mutants"
            told += _side_by_side(
                lambda job, meeting=meeting: bent(job, meeting),  # type: ignore[misc]
                hurting,
                max(1, len(hurting)),
                doing,
                progress,
            )
    cells: list[Cell] = []
    for company in told:
        if len(company) > 1 and company[0].ending.verdict is not Verdict.CONFORMS:
            company = [cell for each in company for cell in bent(([each.bending], each.ending.tale))]
        cells += company
    for index, cell in enumerate(cells):
        if cell.bending in variations and cell.ending.verdict in UNCLEAR:
            cells[index : index + 1] = bent(([cell.bending], cell.ending.tale))
    return Matrix(tuple(plain), tuple(cells))


def can_notice(bending: Bending, heard: Iterable[Answered]) -> bool:
    """Whether a bending changes anything in what a story heard without it, asked in the same order."""
    memory = Memory()
    return any(bending.touches(answered, memory) for answered in heard)


def _side_by_side(
    do: Callable[[Work], Done], work: Sequence[Work], at_once: int, doing: str, progress: Progress
) -> list[Done]:
    done = []
    with ThreadPoolExecutor(at_once) as threads:
        try:
            for future in as_completed([threads.submit(do, each) for each in work]):
                done.append(future.result())
                progress(doing, len(done), len(work))
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)  # or Ctrl-C would wait for every story to be told
            raise
    return done
