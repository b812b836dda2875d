"""The page: the whole report as one HTML file that opens from disk and asks the network for nothing.

For: `render`, a pure function that puts the data (`reports.embedded`) beside the styles and scripts of
`reports/browser`. A policy in the page lets exactly those run: they are named by their digests, so that whatever a
broker managed to smuggle in would still be inert.

Left to others: what the page shows and how (`reports/browser`), and writing the file.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from reports.details import CheckDetail
from reports.embedded import NO_TITLES, Titles, escaped, shape
from reports.model import Report

__all__ = ["NO_TITLES", "Titles", "render"]

BROWSER: Final = Path(__file__).parent / "browser"

# In the order in which they build on each other.
SCRIPTS: Final = (
    "dom.js",
    "report.js",
    "state.js",
    "axis.js",
    "charts.js",
    "overview.js",
    "matrix.js",
    "drawer.js",
    "brokers.js",
    "profiles.js",
    "alike.js",
    "trends.js",
    "main.js",
)


def render(report: Report, checks: Sequence[CheckDetail] = (), titles: Titles = NO_TITLES) -> str:
    """The page as HTML that ends with a newline."""
    style, scripts = _source("page.css"), [_source(name) for name in SCRIPTS]
    parts = {
        "policy": _policy(style, scripts),
        "style": f"<style>{style}</style>",
        "data": f'<script type="application/json" id="data">{escaped(shape(report, checks, titles))}</script>',
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    # One pass: what stands in the data is not looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda name: parts[name[1]], _source("page.html"))


def _policy(style: str, scripts: Sequence[str]) -> str:
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {' '.join(map(_digest, scripts))};"
        " base-uri 'none'; form-action 'none'"
    )


def _digest(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


@cache
def _source(name: str) -> str:
    return (BROWSER / name).read_text(encoding="utf-8")
