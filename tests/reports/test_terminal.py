"""The report for a terminal, and that nothing in it drives the terminal."""

import unicodedata
from dataclasses import replace

from matrices import DEVIATION, MATRIX, hostile, report

from reports.model import Matrix
from reports.terminal import render


def rendered(matrix: Matrix) -> str:
    return render(report(matrix))


TABLE = """\
scenario               level    kafka       absent [1]    broker [2]
                                @4.3.1
---------------------  -------  ----------  ------------  --------------
EARLIEST
earliest.b (disputed)  SHOULD   ✗ deviates  ∅ not run     ✓ conforms 2/3
---------------------  -------  ----------  ------------  --------------
LATEST
latest.a               MUST     ✓ conforms  ∅ not run     ✗ deviates
"""

NOTES = """\
[1] absent not run: no such image
[2] broker cut off: the run was stopped, or still goes on; every complete line of it is shown
1 of 12 lines could not be read and count for nothing: see malformed.ndjson beside this report
"""

TALLIES = """\
family    level    scenarios    kafka     absent [1]    broker [2]
                                @4.3.1
--------  -------  -----------  --------  ------------  ------------
earliest  SHOULD   1            ✗1        ∅1            ✓1
latest    MUST     1            ✓1        ∅1            ✗1
"""

BLOCK = """\
✗ broker deviates: latest.a:latest (MUST)
    asked         ListOffsets v7 timestamp=-1 (latest)
    accepted      offset=1
    observed      offset=0
    Apache Kafka  kafka@4.3.1 answered offset=1
    reason        latest did not move
    impact        A consumer misses a record.
    sources       KIP-79, seed 000
"""


def test_the_matrix_is_grouped_by_family_with_a_symbol_and_a_word_in_every_cell() -> None:
    assert TABLE in rendered(MATRIX)


def test_unfinished_columns_and_malformed_lines_have_footnotes() -> None:
    assert NOTES in rendered(MATRIX)


def test_scenarios_are_counted_by_family_and_level() -> None:
    assert TALLIES in rendered(MATRIX)


def test_the_legend_explains_what_is_shown_and_nothing_else() -> None:
    text = rendered(MATRIX)
    assert "∅ not run: the backend would not start" in text
    assert "disputed: an Apache Kafka deviates here too" in text
    assert "? inconclusive" not in text


def test_a_deviation_is_told_in_one_block_and_an_oracles_is_not_told() -> None:
    text = rendered(MATRIX)
    assert text.endswith(BLOCK)
    assert text.count("    asked ") == 1


def test_a_deviation_of_a_disputed_scenario_says_so() -> None:
    text = rendered(replace(MATRIX, deviations=(replace(DEVIATION, scenario="earliest.b"),)))
    assert "(MUST, disputed)" in text


def test_an_answer_that_never_came_is_called_that() -> None:
    assert "observed      no answer" in rendered(replace(MATRIX, deviations=(replace(DEVIATION, observed=None),)))


def test_after_twenty_deviations_the_rest_is_a_number() -> None:
    text = rendered(replace(MATRIX, deviations=tuple(replace(DEVIATION, scenario=f"latest.{n}") for n in range(23))))
    assert text.count("✗ broker deviates:") == 20
    assert "and 3 more scenarios: offsets show " in text


def test_the_checks_of_one_scenario_share_a_block() -> None:
    text = rendered(replace(MATRIX, deviations=(DEVIATION,) * 3))
    assert text.count("✗ broker deviates:") == 1
    assert "(MUST), with 2 more checks of the scenario" in text


def test_nothing_a_broker_sent_reaches_the_terminal_as_control() -> None:
    text = rendered(hostile())
    assert {char for char in text if unicodedata.category(char) in {"Cc", "Cf"}} == {"\n"}
    assert "title" not in text  # the whole sequence is gone, not only its first byte
    assert text.count("reason ") == 1  # a newline begins no line of its own


def test_a_long_answer_is_cut() -> None:
    longest = max(
        map(len, rendered(replace(MATRIX, deviations=(replace(DEVIATION, observed="9" * 5000),))).splitlines())
    )
    assert longest < 400
