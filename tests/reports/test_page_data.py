"""What the page carries: bounded, visible, and nothing that ends the element it stands in."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from page_reports import ORACLE, TITLES, detail, hostile_report, large_report, night_report

from reports import page
from reports.embedded import NAME_CHARACTERS, TEXT_CHARACTERS, escaped, shape, visible
from reports.model import Report

NASTY = "</script><!--<script> & \u2028\u2029 ]]> {{style}}"


class Elements(HTMLParser):
    """How a browser takes the page apart: its elements, and the text of its data."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.data = ""
        self._in_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self._in_data = ("id", "data") in attrs

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data += data
            self._in_data = False


def taken_apart(html: str) -> Elements:
    elements = Elements()
    elements.feed(html)
    return elements


def test_nothing_in_the_data_ends_it_or_begins_anything() -> None:
    text = escaped({NASTY: [NASTY]})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {NASTY: [NASTY]}


def test_a_hostile_page_has_the_elements_of_a_harmless_one_and_tells_what_it_was_sent() -> None:
    harmless, hostile = (taken_apart(page.render(*made, TITLES)) for made in (night_report(), hostile_report(NASTY)))
    assert hostile.names == harmless.names
    data = json.loads(hostile.data)
    assert data["rows"][0]["title"] == NASTY.replace("\u2028\u2029", r"\u2028\u2029")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ✓ ü", "plain ✓ ü"),
        ("\x1b[31m\u202e\x00\n", r"\x1b[31m\u202e\x00\n"),
        ("\ud800 \U000e0041 \u00a0", r"\ud800 \U000e0041 \xa0"),
        ("a" * 11, "a" * 9 + "…"),
        ("\x00" * 11, "\\x00\\x00\\…"),
    ],
)
def test_what_would_not_be_seen_is_shown_and_what_is_too_long_is_cut(text: str, shown: str) -> None:
    length = 10 if len(text) == 11 else 100
    assert visible(text, length) == shown
    assert visible(text, length).isprintable()


def test_every_text_of_a_result_file_is_bounded() -> None:
    report, details = hostile_report("x" * 100_000)
    longest = max(len(text) for text in re.findall(r'"([^"]*)"', escaped(shape(report, details, TITLES))))
    assert longest <= max(TEXT_CHARACTERS, NAME_CHARACTERS, 1000)


def test_answers_are_texts_because_a_browsers_numbers_end_at_53_bits() -> None:
    report, details = night_report()
    data = shape(report, [replace(details[0], observed='{"offset":9223372036854775807}')], TITLES)
    assert [("offset", "9223372036854775807")] in data["observed"]


@pytest.mark.parametrize("stored", ["", "[", "[1]", "7", '"text"', "null", '{"a":{"b":[1]}}'])
def test_an_answer_that_is_no_object_is_shown_as_it_stands(stored: str) -> None:
    report, details = night_report()
    odd = replace(details[0], observed=stored, accepted=stored)
    assert json.loads(escaped(shape(report, [odd], TITLES)))["observed"]


@pytest.mark.parametrize("duration", [float("inf"), float("nan"), 10**1200], ids=["inf", "nan", "1200 digits"])
def test_a_duration_that_nobody_measured_is_none(duration: float) -> None:
    report, details = night_report()
    data = shape(report, [replace(details[0], duration_ms=duration)], TITLES)
    (check,) = (check for row in data["checks"].values() for cell in row.values() for check in cell)
    assert check[10] == 0.0


def test_checks_stand_at_their_row_and_column_and_those_of_no_cell_are_left_out() -> None:
    report, details = night_report()
    stray = detail("nobody.asked", ORACLE, "conforms")
    data = shape(report, [*details, stray], TITLES)
    rows = [row["scenario"] for row in data["rows"]]
    cell = data["checks"][rows.index("latest.moves")][2]
    assert [data["texts"][check[0]] for check in cell] == ["latest.moves:latest", "latest.moves:earliest"]
    assert sum(len(cell) for row in data["checks"].values() for cell in row.values()) == len(details)


def test_what_had_no_room_is_counted() -> None:
    report, details = night_report()
    bare = [replace(each, exchanges=()) for each in details[:3]]
    left_out = shape(report, [*bare, *details[3:-2]], TITLES)["left_out"]
    assert left_out == {"checks": 2, "exchanges": 3}


def test_areas_stand_in_the_order_of_the_catalogue_and_unknown_ones_at_the_end() -> None:
    report, _ = night_report()
    titles = replace(TITLES, areas={"ts": "Times", "latest": "Latest", "never": "Never"})
    areas = [key for key, _ in shape(report, [], titles)["areas"]]
    assert areas == ["ts", "latest", "earliest", "tier"]


def test_a_page_of_nothing_is_a_page() -> None:
    report, _ = night_report()
    empty = Report(replace(report.matrix, columns=(), rows=()), (), (), None)
    assert taken_apart(page.render(empty)).names.count("main") == 1


def test_five_hundred_scenarios_of_twenty_backends_stay_below_ten_megabytes() -> None:
    assert len(page.render(*large_report(500, 20, 3)).encode()) < 10_000_000


def test_the_policy_names_the_pages_own_scripts_and_styles_and_lets_nothing_else_in() -> None:
    html = page.render(*night_report())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
    assert policy[1].count("'sha256-") == 1 + len(page.SCRIPTS)
    assert "unsafe" not in policy[1]


def test_the_scripts_never_make_markup_from_text() -> None:
    for name in page.SCRIPTS:
        source = (page.BROWSER / name).read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", source), (
            name
        )
        assert "</script" not in source
    assert {file.name for file in page.BROWSER.glob("*.js")} == set(page.SCRIPTS)


def test_the_page_asks_for_no_address() -> None:
    sources = "".join(file.read_text() for file in page.BROWSER.iterdir())
    addresses = set(re.findall(r"https?://[^\s\"']+|\burl\(|@import|\bimport\(|fetch\(", sources))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a namespace, which nobody asks for
