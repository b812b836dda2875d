"""A small matrix for the renderers' tests, as the pipeline would have made it."""

from dataclasses import replace

from reports.model import Cell, Column, Deviation, Matrix, Report, Row, Tally

KAFKA = Column(
    backend="kafka@4.3.1",
    oracle=True,
    version="4.3.1",
    build="jars",
    run_id="run-1",
    started="2026-11-18T08:00:00Z",
    status="complete",
    reasons=(),
)
BROKER = replace(KAFKA, backend="broker", oracle=False, version=None, status="cut off")
ABSENT = replace(BROKER, backend="absent", build=None, status="not run", reasons=("no such image",))

DEVIATION = Deviation(
    run_id="run-1",
    backend="broker",
    oracle=False,
    scenario="latest.a",
    check="latest.a:latest",
    level="MUST",
    asked="ListOffsets v7 timestamp=-1 (latest)",
    accepted='[{"offset":1}]',
    observed='{"offset":0}',
    reason="latest did not move",
    impact="A consumer misses a record.",
    sources=("KIP-79", "seed 000"),
    oracle_backend="kafka@4.3.1",
    oracle_observed='{"offset":1}',
)

MATRIX = Matrix(
    columns=(KAFKA, ABSENT, BROKER),
    rows=(
        Row(
            "earliest.b",
            "earliest",
            "SHOULD",
            "b",
            True,
            (
                Cell("deviates", {"deviates": 1}),
                Cell("not run", {}),
                Cell("conforms", {"conforms": 2, "unsupported": 1}),
            ),
        ),
        Row(
            "latest.a",
            "latest",
            "MUST",
            "a",
            False,
            (Cell("conforms", {"conforms": 2}), Cell("not run", {}), Cell("deviates", {"deviates": 2})),
        ),
    ),
    tallies=(
        Tally("earliest", "SHOULD", 1, ({"deviates": 1}, {"not run": 1}, {"conforms": 1})),
        Tally("latest", "MUST", 1, ({"conforms": 1}, {"not run": 1}, {"deviates": 1})),
    ),
    deviations=(replace(DEVIATION, backend="kafka@4.3.1", oracle=True, scenario="earliest.b"), DEVIATION),
    lines=12,
    malformed=1,
)

# What a broker, or whoever made a result file, might send to a reader of a report.
HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x9b2J<script>alert(1)</script> a|b `c` [d](e)\n# @f \u202egnp\x00"


def hostile(text: str = HOSTILE) -> Matrix:
    """The matrix with the text in every place that a result file fills."""
    column = replace(ABSENT, backend=text, reasons=(text,))
    row = replace(MATRIX.rows[0], scenario=text, family=text, cells=MATRIX.rows[0].cells[:1])
    tally = replace(MATRIX.tallies[0], family=text, outcomes=MATRIX.tallies[0].outcomes[:1])
    deviation = replace(
        DEVIATION,
        **dict.fromkeys(("backend", "scenario", "check", "asked", "accepted", "observed", "reason", "impact"), text),
        sources=(text,),
        oracle_backend=text,
        oracle_observed=text,
    )
    return replace(MATRIX, columns=(column,), rows=(row,), tallies=(tally,), deviations=(deviation,))


def report(matrix: Matrix) -> Report:
    """A report of nothing but the matrix."""
    return Report(matrix, (), (), None)
