"""The tables of README.md, taken from a report: `python tests/readme_tables.py out/report/matrix.md` writes them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"

HEADINGS = {
    "ingest": "## <code>ingest</code>",
    "tallies": "## Scenarios by family and level, of all that were seen",
}
"""The name of a table in README.md, and the heading in the report that stands over it."""


def with_tables(readme: str, report: str) -> str:
    """The readme, with every table between its marks replaced by the report's."""
    for name, heading in HEADINGS.items():
        table = report.partition(f"{heading}\n\n")[2].partition("\n\n")[0].strip()
        marks = rf"(<!-- matrix: {name} -->\n).*?(<!-- end -->)"
        readme = re.sub(marks, lambda found, table=table: f"{found[1]}{table}\n{found[2]}", readme, flags=re.DOTALL)  # type: ignore[misc]
    return readme


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(), Path(sys.argv[1]).read_text()))
