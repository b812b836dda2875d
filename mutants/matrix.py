"""The matrix of bendings and scenarios on one backend: who can notice what, and who does.

Each scenario is told once without a bending, and what the proxy heard is kept. A scenario can notice a bending if the
bending changes anything in what was heard; only then is it told again, through that bending, for real. Stories that
restart the broker are told through all bendings at once instead, with one restart for all of them.
"""

from __future__ import annotations

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
from mutants.stories import Ending, Sweeper, Tale, Together, tell

SIDE_BY_SIDE = 12
"""Stories wait for the broker most of the time; a dozen keep two cores busy, and more make each other late."""

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


Job = TypeVar("Job")
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
    """Tell everything. The backend runs already; it is restarted where a story wants that.

    Legal variations that do not hide each other are told together, and one by one only where that is not conform. A
    story that a legal variation leaves unclear is told again with nothing beside it:
    a deadline that passed on a busy machine accuses nobody.
    """
    bendings = [*mutants, *variations]
    sweeper = Sweeper(backend)

    def plainly(tale: Tale) -> Ending:
        ending = tell(tale, backend, proxies, UNBENT, sweeper=sweeper, recording=True)
        if ending.verdict in UNCLEAR:
            return tell(tale, backend, proxies, UNBENT, sweeper=sweeper, recording=True)
        return ending

    shared = [tale for tale in stories if not tale.restarts or "restart" not in backend.backend.capabilities]
    plain = _side_by_side(plainly, shared, "scenarios as they are", progress)
    jobs: list[tuple[list[Bending], Ending]] = []
    for ending in plain:
        if ending.verdict is Verdict.CONFORMS:
            met = [bending for bending in bendings if can_notice(bending, ending.heard)]
            company = [bending for bending in met if bending in variations and not bending.alone]
            jobs += [([bending], ending) for bending in met if bending not in company]
            jobs += [(company, ending)] if company else []
    jobs.sort(key=lambda job: -job[1].seconds)  # the slowest first, so that none is left alone at the end

    def bent(job: tuple[list[Bending], Ending]) -> list[Cell]:
        together_with, told = job
        ending = tell(told.tale, backend, proxies, together(together_with), sweeper=sweeper)
        if len(together_with) == 1 or ending.verdict is Verdict.CONFORMS:
            return [Cell(bending, ending) for bending in together_with]
        return [Cell(bending, tell(told.tale, backend, proxies, bending, sweeper=sweeper)) for bending in together_with]

    told = _side_by_side(bent, jobs, "scenarios through mutants", progress)
    cells = [cell for several in told for cell in several]
    for index, cell in enumerate(cells):
        if cell.bending in variations and cell.ending.verdict in UNCLEAR:
            cells[index] = Cell(cell.bending, tell(cell.ending.tale, backend, proxies, cell.bending, sweeper=sweeper))
    restarting = [tale for tale in stories if tale not in shared]
    for number, tale in enumerate(restarting):
        progress("restarts through all mutants at once", number, len(restarting))
        unbent, *others = tell_together(tale, backend, proxies, [UNBENT, *bendings], sweeper)
        plain.append(unbent.ending)
        if unbent.ending.verdict is Verdict.CONFORMS:
            cells += [cell for cell in others if cell.ending.bent]
    return Matrix(tuple(plain), tuple(cells))


def can_notice(bending: Bending, heard: Iterable[Answered]) -> bool:
    """Whether a bending changes anything in what a story heard without it, asked in the same order."""
    memory = Memory()
    return any(bending.touches(answered, memory) for answered in heard)


def tell_together(
    tale: Tale, backend: RunningBackend, proxies: ProxyThread, bendings: Sequence[Bending], sweeper: Sweeper
) -> list[Cell]:
    """One scenario through many bendings at the same time, each in a thread, so that one restart serves them all."""
    meeting = Together(len(bendings))

    def one(bending: Bending) -> Cell:
        return Cell(bending, tell(tale, backend, proxies, bending, sweeper=sweeper, together=meeting))

    with ThreadPoolExecutor(len(bendings)) as threads:
        return list(threads.map(one, bendings))


def _side_by_side(do: Callable[[Job], Done], jobs: Sequence[Job], doing: str, progress: Progress) -> list[Done]:
    done = []
    with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
        try:
            for future in as_completed([threads.submit(do, job) for job in jobs]):
                done.append(future.result())
                progress(doing, len(done), len(jobs))
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)  # or Ctrl-C would wait for every story to be told
            raise
    return done
