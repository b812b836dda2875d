"""Result files in, report out: the one entry to this room.

For: finding the files, running the pipeline in as few Spark jobs as it takes, checking that no line got lost,
and writing the report. Left to others: printing (`reports.terminal` makes the text) and the command line.
"""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from reports import ingest, markdown, matrix
from reports.model import LEVELS, Cell, Column, Deviation, Matrix, Row, Tally
from reports.session import spark_session


class NothingToReport(Exception):
    """No result file where results were looked for. Says what to do next."""


class LinesUnaccounted(Exception):
    """The good lines and the malformed ones are not all the lines there are: a report would omit some."""


def build(paths: Sequence[str], out: str, master: str = "local[*]", java_home: str | None = None) -> Matrix:
    """Fold result files into out/report/matrix.md and matrix.json, and return the matrix.

    `paths` are files, or directories that stand for their *.ndjson. Malformed lines never stop a report: they
    are kept in out/report/malformed.ndjson, each with its file and what is wrong with it.
    """
    lines_in = {file: _count_lines(file) for file in result_files(paths)}
    spark = spark_session(master, java_home)
    parsed = ingest.parse(ingest.read(spark, list(lines_in))).cache()
    folded = fold(parsed)
    _check_accounts(lines_in, folded["account"])
    result = _matrix(folded)

    report = Path(out) / "report"
    report.mkdir(parents=True, exist_ok=True)
    _write(report / "matrix.md", markdown.render(result))
    _write(report / "matrix.json", json.dumps(asdict(result), indent=1, ensure_ascii=False) + "\n")
    kept = report / "malformed.ndjson"
    if result.malformed:
        _write_malformed(kept, ingest.malformed(parsed).collect())
    else:
        kept.unlink(missing_ok=True)  # an earlier report's
    parsed.unpersist()
    return result


def result_files(paths: Sequence[str]) -> list[str]:
    """The result files that `paths` stand for, each once. Raises NothingToReport when there are none."""
    found: set[Path] = set()
    for path in map(Path, paths):
        if not path.exists():
            raise NothingToReport(f"{path} does not exist: give a result file or a directory of them.")
        found.update(file.resolve() for file in (path.glob("*.ndjson") if path.is_dir() else [path]))
    if not found:
        raise NothingToReport(
            f"No *.ndjson result file in {', '.join(paths) or 'no path at all'}: run the suites first, for"
            " example with `pytest suites --backend NAME`, or name the directory they wrote to."
        )
    return sorted(map(str, found))


def fold(parsed: DataFrame) -> dict[str, list[SparkRow]]:
    """Everything the report needs, collected at once: a Spark job costs more than these lines do."""
    lines = ingest.good(parsed)
    runs = matrix.runs(lines)
    columns = matrix.columns(runs)
    attempts = matrix.last_attempts(lines)
    grid = matrix.grid(matrix.scenarios(attempts), columns, matrix.cells(attempts, columns))
    parts = {
        "account": ingest.accounts(parsed),
        # as text: Python would read a timestamp in the zone of the machine
        "column": columns.withColumn("started", F.date_format("started", "yyyy-MM-dd'T'HH:mm:ss'Z'")),
        "cell": grid,
        "tally": matrix.tallies(grid),
        "deviation": matrix.deviations(attempts, runs, columns),
    }
    tagged = [part.select(F.struct(*part.columns).alias(name)) for name, part in parts.items()]
    together = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), tagged)
    folded: dict[str, list[SparkRow]] = {name: [] for name in parts}
    for row in together.collect():
        for name, value in row.asDict().items():
            if value is not None:
                folded[name].append(value)
    return folded


def _check_accounts(before: Mapping[str, int], accounts: Iterable[SparkRow]) -> None:
    """Hold what Spark accounted for against the lines in the files; a file may have grown in between."""
    accounted = Counter[str]()
    for account in accounts:
        accounted[_path(account["file"])] += account["lines"]
    for file, lines in before.items():
        if not lines <= accounted[file] <= _count_lines(file):
            raise LinesUnaccounted(
                f"{file} has {lines} lines, but good and malformed ones add up to {accounted[file]}."
                " Spark skips a file whose name starts with _ or a dot: rename it."
            )


def _count_lines(file: str) -> int:
    lines, last = 0, b"\n"
    with open(file, "rb") as content:
        while block := content.read(1 << 20):
            lines += block.count(b"\n")
            last = block[-1:]
    return lines + (last != b"\n")


def _path(uri: str) -> str:
    return unquote(urlsplit(uri).path)


def _matrix(folded: Mapping[str, list[SparkRow]]) -> Matrix:
    columns = tuple(
        Column(
            backend=row["backend"],
            oracle=row["oracle"],
            version=row["backend_version"],
            build=row["build"],
            run_id=row["run_id"],
            started=row["started"],
            status=row["status"],
            reasons=tuple(row["not_run"]),
        )
        for row in sorted(folded["column"], key=_place)
    )
    accounts = folded["account"]
    return Matrix(
        columns=columns,
        rows=_rows(folded["cell"], columns),
        tallies=_tallies(folded["tally"], columns),
        deviations=_deviations(folded["deviation"]),
        lines=sum(row["lines"] for row in accounts),
        malformed=sum(row["lines"] for row in accounts if row["kind"] == ingest.MALFORMED),
    )


def _place(column: SparkRow) -> tuple[bool, str, list[int], str]:
    """Oracles first, then by name, the newest version of each first."""
    name, _, version = column["backend"].partition("@")
    return not column["oracle"], name, [-int(number) for number in re.findall(r"\d+", version)], version


def _rows(cells: Iterable[SparkRow], columns: Sequence[Column]) -> tuple[Row, ...]:
    by_scenario: dict[str, dict[str, SparkRow]] = defaultdict(dict)
    for cell in cells:
        by_scenario[cell["scenario"]][cell["backend"]] = cell
    rows = []
    for scenario, by_backend in by_scenario.items():
        words = next(iter(by_backend.values()))
        rows.append(
            Row(
                scenario=scenario,
                family=words["family"],
                level=words["level"],
                title=words["title"],
                disputed=words["disputed"],
                cells=tuple(
                    Cell(by_backend[column.backend]["outcome"], _nonzero(by_backend[column.backend]["counts"]))
                    for column in columns
                ),
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.family, row.scenario)))


def _tallies(tallies: Iterable[SparkRow], columns: Sequence[Column]) -> tuple[Tally, ...]:
    by_area: dict[tuple[str, str], dict[str, SparkRow]] = defaultdict(dict)
    for tally in tallies:
        by_area[tally["family"], tally["level"]][tally["backend"]] = tally
    return tuple(
        Tally(
            family=family,
            level=level,
            scenarios=next(iter(by_backend.values()))["scenarios"],
            outcomes=tuple(_nonzero(by_backend[column.backend]["counts"]) for column in columns),
        )
        for (family, level), by_backend in sorted(
            by_area.items(), key=lambda area: (area[0][0], LEVELS.index(area[0][1]))
        )
    )


def _deviations(deviations: Iterable[SparkRow]) -> tuple[Deviation, ...]:
    """What must hold comes first: a reader may not get to the end."""
    found = (Deviation(**{**row.asDict(), "sources": tuple(row["sources"])}) for row in deviations)
    return tuple(sorted(found, key=lambda one: (LEVELS.index(one.level), one.check, one.backend)))


def _nonzero(counts: SparkRow | None) -> dict[str, int]:
    return {name: count for name, count in counts.asDict().items() if count} if counts else {}


def _write(file: Path, text: str) -> None:
    """Whole or not at all: a reader never meets half a report."""
    half = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    half.write_text(text, encoding="utf-8", errors="replace")
    half.replace(file)


def _write_malformed(file: Path, malformed: Iterable[SparkRow]) -> None:
    kept = ({"file": _path(row["file"]), "problem": row["problem"], "line": row["raw"]} for row in malformed)
    _write(file, "".join(json.dumps(line) + "\n" for line in kept))
