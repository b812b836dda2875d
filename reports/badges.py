"""Badges: one small SVG per backend and profile, made here, that loads nothing from anywhere.

For: `render`, a pure function. Left to others: writing the files.
"""

from xml.sax.saxutils import escape

from reports.model import ProfileVerdict, Report
from reports.profiles import NO, UNKNOWN, YES
from reports.words import NAME_LENGTH, clean

# Dark enough for white letters (WCAG AA), and the word says it too: colour alone tells nothing.
COLOURS = {YES: "#1a7f37", NO: "#b42318", UNKNOWN: "#57606a"}

# About the width of a letter of the font at this size, and the room on either side of a text.
LETTER = 6.6
MARGIN = 8.0

BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}: {text}">
<title>{label}: {text}</title>
<rect width="{width}" height="20" rx="3" fill="#30363d"/>
<path d="M{left} 0h{inner}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{inner}z" fill="{colour}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="8" y="14">{label}</text>
<text x="{text_at}" y="14">{text}</text>
</g>
</svg>
"""


def render(report: Report) -> dict[str, str]:
    """The text of each badge by its file's name, NAME@VERSION.PROFILE@VERSION.svg."""
    return {_file_name(verdict): _badge(verdict) for verdict in report.profiles}


def _badge(verdict: ProfileVerdict) -> str:
    label = clean(f"{verdict.backend} for {verdict.profile}", 2 * NAME_LENGTH)
    words = {
        YES: "safe",
        NO: f"not safe, {verdict.kept} of {verdict.rules} kept",
        UNKNOWN: f"unknown, {verdict.kept} of {verdict.rules} kept",
    }
    text = words[verdict.safe]
    left = round(len(label) * LETTER + 2 * MARGIN)
    right = round(len(text) * LETTER + 2 * MARGIN)
    return BADGE.format(
        width=left + right,
        left=left,
        inner=right - 3,
        colour=COLOURS[verdict.safe],
        label=escape(label, {'"': "&quot;"}),
        text=text,
        text_at=round(left + MARGIN),
    )


def _file_name(verdict: ProfileVerdict) -> str:
    text = f"{verdict.backend}.{verdict.profile}"
    safe = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "@.-") else "_" for letter in text)
    return f"{safe.lstrip('.')[:180]}.svg"
