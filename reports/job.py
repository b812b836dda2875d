"""Result files in, report out: the one entry to this room.

For: finding the files, running the pipeline, checking that no line got lost, and writing the report.
Left to others: printing (`reports.terminal` makes the text) and the command line.
"""

import gc
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from reports import badges, ingest, junit, markdown, matrix, nightly, page, published, summary
from reports.archive import Archive
from reports.details import CheckDetail, Wanted, details
from reports.history import checks, fingerprints, nights
from reports.matrix import KEY
from reports.model import LEVELS, Cell, Column, Deviation, Fingerprint, Matrix, Report, Row, Tally
from reports.profiles import verdicts
from reports.session import in_one_piece, spark_session
from reports.storage import Storage

# What a report consists of, beside a badge per backend and profile.
FILES = ("index.html", "matrix.md", "matrix.json", "report.json", "summary.md", "junit.xml")


class NothingToReport(Exception):
    """No result file where results were looked for. Says what to do next."""


class LinesUnaccounted(Exception):
    """The good lines and the malformed ones are not all the lines there are: a report would omit some."""


def build(
    paths: Sequence[str],
    out: str,
    master: str = "local[*]",
    java_home: str | None = None,
    history: str | None = None,
    profiles: Mapping[str, Sequence[str]] | None = None,
    expected: nightly.Expected = lambda _change, _column: False,
    titles: page.Titles = page.NO_TITLES,
) -> Report:
    """Fold result files into a report under out/report, and return it.

    `paths` are files, or directories that stand for their *.ndjson. `out` and `history` are directories, by path
    or by a URI that Spark can write to. With `history`, the files are added to it and the report tells what changed
    since the last good night, but for what is `expected`. `profiles` are names with the scenarios that each asks
    for; `titles` are what the page calls areas and profiles. Malformed lines never
    stop a report: they are kept in malformed.ndjson, each with its file and what is wrong with it.
    """
    lines_in = {file: _count_lines(file) for file in result_files(paths)}
    spark = spark_session(master, java_home, sum(Path(file).stat().st_size for file in lines_in))
    parsed = ingest.parse(ingest.read(spark, list(lines_in)))
    checks, folded = fold(parsed)
    _check_accounts(lines_in, folded["account"])
    result = _matrix(folded)
    aside = ingest.malformed(parsed)
    malformed = aside.collect() if result.malformed else []
    told = None
    if history:
        told = nightly.take_in(Archive(spark, history), checks, aside if malformed else None, folded, result, expected)
    report = Report(result, verdicts(result, profiles or {}), _fingerprints(folded["fingerprint"]), told)
    wanted = Wanted(
        {column.backend: column.run_id for column in result.columns},
        {row["run_id"]: row["backends"] for row in folded["oracle"]},
        {row["raw"] for row in malformed},
    )
    with _nothing_collected():
        _write(Storage(spark, out), report, details(lines_in, wanted), titles, _kept_lines(malformed))
    return report


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """A page is made of a million values that all live until it is written, and Python would look for garbage among
    them again and again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _write(place: Storage, report: Report, checks: Sequence[CheckDetail], titles: page.Titles, malformed: str) -> None:
    texts = (
        page.render(report, checks, titles),
        markdown.render(report.matrix),
        published.as_json(report.matrix),
        published.render(report),
        summary.render(report),
        junit.render(report),
    )
    for name, text in zip(FILES, texts, strict=True):
        place.write(text, "report", name)
    place.remove("report", "badges")  # of backends that an earlier report had
    for name, text in badges.render(report).items():
        place.write(text, "report", "badges", name)
    if malformed:
        place.write(malformed, "report", "malformed.ndjson")
    else:
        place.remove("report", "malformed.ndjson")  # an earlier report's


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


def fold(parsed: DataFrame) -> tuple[DataFrame, dict[str, list[SparkRow]]]:
    """What history keeps, and everything that the report needs."""
    lines = ingest.good(parsed)
    # What several parts rest on is computed once, and its plan forgotten.
    outline = matrix.outline(lines).localCheckpoint()
    attempts = in_one_piece(matrix.attempts(in_one_piece(lines))).localCheckpoint()
    runs = matrix.runs(outline).localCheckpoint()
    columns = matrix.columns(runs).localCheckpoint()
    last = matrix.last_attempts(attempts)
    cells = matrix.cells(last, columns).localCheckpoint()
    grid = matrix.grid(matrix.scenarios(last), columns, cells).localCheckpoint()
    parts = {
        "account": ingest.accounts(parsed),
        # as text: Python would read a timestamp in the zone of the machine
        "column": columns.withColumn("started", F.date_format("started", "yyyy-MM-dd'T'HH:mm:ss'Z'")),
        "oracle": matrix.oracles(runs),
        "cell": grid,
        "tally": matrix.tallies(grid),
        "deviation": matrix.deviations(last, runs, columns),
        "fingerprint": fingerprints(cells),
        "night": nights(outline, attempts),
        "file": outline.select("file", *KEY).distinct(),
    }
    return checks(attempts, outline).localCheckpoint(), {name: part.collect() for name, part in parts.items()}


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
                impact=words["impact"],
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


def _fingerprints(prints: Iterable[SparkRow]) -> tuple[Fingerprint, ...]:
    found = (Fingerprint(row["scenario"], row["fingerprint"], tuple(row["backends"]), row["odd"]) for row in prints)
    return tuple(sorted(found, key=lambda one: (one.scenario, -len(one.backends), one.backends)))


def _kept_lines(malformed: Iterable[SparkRow]) -> str:
    kept = ({"file": _path(row["file"]), "problem": row["problem"], "line": row["raw"]} for row in malformed)
    return "".join(json.dumps(line) + "\n" for line in kept)
