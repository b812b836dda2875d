"""What a matrix proves: pure functions from its cells to who caught what, and to sentences about what is not proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.answers import Verdict
from mutants.bending import Bending
from mutants.matrix import Cell, Matrix

ABSENT = frozenset({Verdict.UNSUPPORTED, Verdict.NOT_APPLICABLE})
"""Verdicts on a scenario that a backend cannot have."""


@dataclass(frozen=True)
class Noticed:
    """One bending: the scenarios that were told through it, and those that called it a deviation, with their words."""

    bending: Bending
    told: tuple[str, ...]
    caught: Mapping[str, str]
    unclear: Mapping[str, str]


@dataclass(frozen=True)
class Scored:
    """One scenario: the mutants that it could have noticed, and those that it caught."""

    scenario: str
    could: tuple[str, ...]
    caught: tuple[str, ...]


@dataclass(frozen=True)
class Score:
    """`absent` are scenarios that this backend cannot have, and why; `unfit` those that fail on it without a mutant."""

    mutants: tuple[Noticed, ...]
    variations: tuple[Noticed, ...]
    scenarios: tuple[Scored, ...]
    absent: Mapping[str, str]
    unfit: Mapping[str, str]
    beyond: tuple[Bending, ...]
    """Mutants of something that this backend does not have."""


def score(
    matrix: Matrix, mutants: Sequence[Bending], variations: Sequence[Bending], capabilities: frozenset[str]
) -> Score:
    cells: dict[str, list[Cell]] = {}
    for cell in matrix.cells:
        cells.setdefault(cell.bending.name, []).append(cell)
    here = [bending for bending in mutants if bending.needs <= capabilities]
    noticed = tuple(_noticed(bending, cells.get(bending.name, [])) for bending in here)
    told = sorted({end.tale.scenario.id for end in matrix.plain if end.verdict is Verdict.CONFORMS})
    return Score(
        noticed,
        tuple(_noticed(bending, cells.get(bending.name, [])) for bending in variations),
        tuple(
            Scored(
                scenario,
                tuple(each.bending.name for each in noticed if scenario in each.told),
                tuple(each.bending.name for each in noticed if scenario in each.caught),
            )
            for scenario in told
        ),
        {end.tale.scenario.id: end.reason for end in matrix.plain if end.verdict in ABSENT},
        {
            end.tale.scenario.id: f"{end.verdict}, {end.reason}"
            for end in matrix.plain
            if end.verdict not in ABSENT | {Verdict.CONFORMS}
        },
        tuple(bending for bending in mutants if bending not in here),
    )


def _noticed(bending: Bending, cells: Sequence[Cell]) -> Noticed:
    def by(*verdicts: Verdict) -> dict[str, str]:
        chosen = [cell.ending for cell in cells if cell.ending.verdict in verdicts]
        return {end.tale.scenario.id: end.reason for end in sorted(chosen, key=lambda end: end.tale.scenario.id)}

    told = tuple(sorted({cell.ending.tale.scenario.id for cell in cells}))
    return Noticed(bending, told, by(Verdict.DEVIATES), by(Verdict.INCONCLUSIVE, Verdict.BROKEN))


def objections(score: Score, *, all_mutants: bool = True, all_scenarios: bool = True) -> list[str]:
    """What is not proved, a sentence each; none where the suite can fail and is fair.

    A mutant can only be said to survive where all scenarios were told, a scenario to catch nothing where all mutants
    were tried.
    """
    sentences = [f"{scenario} is no measure here: without any mutant it {why}" for scenario, why in score.unfit.items()]
    if all_scenarios:
        sentences += [_survived(each) for each in score.mutants if not each.caught]
    if all_mutants:
        sentences += [
            f"{each.scenario} catches nothing: it conforms with each of the {len(each.could)} mutants that it could "
            "have noticed; make it stricter, or write the mutant that it is there for"
            for each in score.scenarios
            if not each.caught
        ]
    for each in score.variations:
        sentences += [
            f"{scenario} calls a legal variation a deviation: {each.bending.name} ({each.bending.why}) {why}"
            for scenario, why in {**each.caught, **each.unclear}.items()
        ]
    return sentences


def _survived(noticed: Noticed) -> str:
    bending = noticed.bending
    if not noticed.told:
        detail = "no scenario asks what it bends"
    else:
        detail = f"{len(noticed.told)} scenarios met it and none of them called it a deviation"
        detail += f" ({', '.join(noticed.told[:5])}{', ...' if len(noticed.told) > 5 else ''})"
    return f"{bending.name} survives: no scenario noticed that “{bending.why}” {detail}; write the one that does"


def as_json(score: Score) -> dict[str, Any]:
    """The score as reports read it."""
    return {
        "mutants": [_noticed_json(each) for each in score.mutants],
        "variations": [_noticed_json(each) for each in score.variations],
        "scenarios": [
            {"scenario": each.scenario, "could_notice": len(each.could), "caught": list(each.caught)}
            for each in score.scenarios
        ],
        "absent": dict(score.absent),
        "beyond": [bending.name for bending in score.beyond],
    }


def _noticed_json(noticed: Noticed) -> dict[str, Any]:
    return {
        "name": noticed.bending.name,
        "why": noticed.bending.why,
        "could_be_noticed_by": len(noticed.told),
        "caught_by": list(noticed.caught),
    }
