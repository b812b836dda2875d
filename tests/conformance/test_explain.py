"""A check in words: the same for a live line and a stored one, and safe to print."""

import json
from typing import Any

import pytest
from sample_checks import check

from conformance.answers import Between, Grade, Judgement, Observation, Silence, Verdict, answer, refused
from conformance.explain import explain, printable, reproduce
from conformance.results import check_line

DEVIATION = check(
    accepted=(answer(offset=Between(3)), refused(3).legal("order is free")),
    observed=Observation({"error": 0, "offset": 1}),
    judgement=Judgement(Verdict.DEVIATES, reason="accepted: 3; observed: 1"),
)


def line(backend: str = "sample", **changes: Any) -> dict[str, Any]:
    return check_line(DEVIATION) | {"backend": backend} | changes


def test_a_check_tells_what_was_asked_accepted_and_seen_and_why_it_matters() -> None:
    assert explain(line()).splitlines() == [
        "check:      latest.sample:latest (MUST, revision 1)",
        "about:      A sample",
        "backend:    sample",
        "verdict:    deviates",
        "because:    accepted: 3; observed: 1",
        "asked:      ListOffsets v11 timestamp=-1 (latest)",
        "accepted:   error=0 offset=3 <= n",
        "accepted:   error=3 (legal; order is free)",
        "observed:   error=0 offset=1",
        "source:     KIP-79",
        "impact:     A reader stops.",
        "reproduce:  pytest 'suites/test_sample.py::test_sample' --backend sample",
    ]


def test_a_stored_line_reads_as_the_live_one_did() -> None:
    assert explain(json.loads(json.dumps(line()))) == explain(line())


def test_kafkas_answer_is_shown_beside_another_brokers_and_not_beside_its_own() -> None:
    kafka = line("apache-kafka@4.3.1", observed={"error": 0, "offset": 3})
    assert "Kafka says: error=0 offset=3 (apache-kafka@4.3.1)" in explain(line(), kafka)
    assert "Kafka says" not in explain(kafka, kafka)
    assert "Kafka says" not in explain(line(), None)


def test_a_legal_answer_is_told_apart_from_kafkas_own() -> None:
    legal = check_line(check(judgement=Judgement(Verdict.CONFORMS, Grade.LEGAL, "a KIP"))) | {"backend": "sample"}
    assert "verdict:    conforms (legal, not exactly Kafka)" in explain(legal)


def test_a_story_that_was_never_told_has_no_empty_rows() -> None:
    told = explain(line(asked="", accepted=[], observed=None))
    names = [row.split(":")[0] for row in told.splitlines()]
    assert names == ["check", "about", "backend", "verdict", "because", "source", "impact", "reproduce"]


def test_a_silence_is_an_observation() -> None:
    silent = Observation(silence=Silence.CLOSED, detail="the broker hung up")
    assert "observed:   closed: the broker hung up" in explain(line(observed=silent.as_json()))


@pytest.mark.parametrize("field", ["reason", "asked", "backend"])
def test_a_broker_cannot_move_the_readers_cursor_or_add_rows(field: str) -> None:
    told = explain(line(**{field: "a\x1b[2J\r\nverdict: conforms\ud800"}))
    assert "\x1b" not in told
    assert len(told.splitlines()) == len(explain(line()).splitlines())
    told.encode()


def test_ordinary_text_of_any_language_is_printable() -> None:
    assert printable("Größe ≥ 3 日本") == "Größe ≥ 3 日本"


@pytest.mark.parametrize(
    ("backend", "option"),
    [
        ("apache-kafka@4.3.1", "--backend apache-kafka@4.3.1"),
        ("external([::1]:9092)", "--bootstrap [::1]:9092"),
    ],
)
def test_the_command_asks_the_same_backend_again(backend: str, option: str) -> None:
    assert reproduce(line(backend)) == f"pytest 'suites/test_sample.py::test_sample' {option}"
