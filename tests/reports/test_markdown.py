"""The report as Markdown, and that nothing in it is markup but ours."""

import html
import re
from dataclasses import replace

import pytest
from matrices import DEVIATION, HOSTILE, MATRIX, hostile

from reports.markdown import escape, render

TABLE = """\
## <code>earliest</code>

| scenario | level | <code>kafka&#64;4.3.1</code> | <code>absent</code> (1) | <code>broker</code> (2) |
| --- | --- | --- | --- | --- |
| <code>earliest.b</code> (disputed) | SHOULD | ✗ deviates | ∅ not run | ✓ conforms 2/3 |
"""

BLOCK = """\
✗ <code>broker</code> deviates: <code>latest.a:latest</code> (MUST)

- asked: <code>ListOffsets v7 timestamp=-1 (latest)</code>
- accepted: <code>offset=1</code>
- observed: <code>offset=0</code>
- Apache Kafka: <code>kafka&#64;4.3.1 answered offset=1</code>
- reason: <code>latest did not move</code>
- impact: <code>A consumer misses a record.</code>
- sources: <code>KIP-79, seed 000</code>
"""


def test_each_family_is_a_table_with_a_symbol_and_a_word_in_every_cell() -> None:
    assert TABLE in render(MATRIX)


def test_a_deviation_is_told_in_one_block_and_an_oracles_is_not_told() -> None:
    text = render(MATRIX)
    assert text.endswith(BLOCK)
    assert text.count("- asked: ") == 1


def test_unfinished_columns_and_malformed_lines_have_footnotes() -> None:
    text = render(MATRIX)
    assert "- (1) <code>absent</code> <code>not run: no such image</code>\n" in text
    assert "- 1 of 12 lines could not be read" in text


def test_after_twenty_deviations_the_rest_is_a_number() -> None:
    text = render(replace(MATRIX, deviations=tuple(replace(DEVIATION, scenario=f"latest.{n}") for n in range(23))))
    assert text.count("- asked: ") == 20
    assert "and 3 more scenarios: offsets show " in text


def test_nothing_a_broker_sent_is_markup() -> None:
    text = render(hostile())
    assert set(re.findall(r"<[^>]*>?", text)) == {"<code>", "</code>"}
    assert not set("`[]@*\x1b\x00\u202e") & set(text)
    sent = re.findall(r"<code>(.*?)</code>", text)
    assert not [part for part in sent if set("|<>") & set(part)]


def test_a_table_keeps_its_shape_whatever_stands_in_it() -> None:
    lines = render(hostile()).splitlines()
    assert {line.count("|") for line in lines if line.startswith("|")} == {
        4,
        5,
    }  # one backend; a tally has one more


@pytest.mark.parametrize("text", [HOSTILE, "see https://example.org or www.example.org", "$x$ ~y~ \\z &lt;"])
def test_escaped_text_shows_what_it_said(text: str) -> None:
    shown = html.unescape(escape(text, 300).removeprefix("<code>").removesuffix("</code>"))
    assert "\n" not in shown
    if text.isprintable():
        assert shown == text
    else:
        assert "<script>alert(1)</script> a|b `c` [d](e) # @f" in shown


def test_an_address_is_no_link() -> None:
    text = escape("https://example.org www.example.org", 300)
    assert "://" not in text
    assert "www." not in text
