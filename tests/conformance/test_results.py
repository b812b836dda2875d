"""The result file: each line valid, bounded and on disk as it happens, whatever a broker sent."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from sample_checks import check

import conformance.results
from conformance.answers import Between, Grade, Judgement, Observation, Silence, Verdict, answer, kafka_before
from conformance.results import (
    EVIDENCE_CHARACTERS,
    EVIDENCE_EXCHANGES,
    SENTENCE_CHARACTERS,
    Check,
    ResultFile,
    RunInfo,
    check_line,
    new_run_id,
    oracle_line,
    read_checks,
    render,
)
from conformance.wire import Exchange, compose

RUN = RunInfo("run-1", "main", seed=7)
SCHEMA = json.loads((Path(conformance.results.__file__).parent / "result.schema.json").read_text())

NASTY = 'a\n"b"\\ \x00\x1b[2J\x7f\x85\u2028\ud800\U0001f600'
"""A line break, quotes, a NUL, what clears a terminal, odd line ends, half a surrogate pair, a wide character."""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[ResultFile]:
    with closing(ResultFile(tmp_path, RUN, "sample")) as file:
        yield file


def lines(file: ResultFile) -> list[dict[str, Any]]:
    """What another process would read now."""
    return [json.loads(line) for line in file.path.read_bytes().split(b"\n") if line]


def exchange(response: object, *, node: str = "127.0.0.1:9092") -> Exchange:
    return Exchange("list_offsets", 11, node, compose("metadata", 1, {"topics": None}), response, 1.25)


EVERY_KIND: dict[str, Callable[[ResultFile], None]] = {
    "header": lambda file: file.header(version=None, build="a jar", oracle=False),
    "not-run": lambda file: file.not_run("its image would not start"),
    "footer": lambda file: file.footer(),
    **{
        str(verdict): lambda file, verdict=verdict: file.check(check(judgement=Judgement(verdict)))  # type: ignore[misc]
        for verdict in Verdict
    },
    "a legal answer": lambda file: file.check(check(judgement=Judgement(Verdict.CONFORMS, Grade.LEGAL, "a KIP"))),
    "a silence": lambda file: file.check(check(observed=Observation(silence=Silence.OMITTED, detail="no entry"))),
    "no observation": lambda file: file.check(check(accepted=(), observed=None)),
    "a range": lambda file: file.check(check(accepted=(answer(offset=Between(1)).when(kafka_before(4), "KAFKA-1"),))),
    "evidence": lambda file: file.check(
        check(exchanges=(exchange("cafe"), exchange(compose("metadata", 0, {"topics": ()}))))
    ),
}


@pytest.mark.parametrize("name", EVERY_KIND)
def test_every_line_is_valid_and_says_whose_it_is(file: ResultFile, name: str) -> None:
    EVERY_KIND[name](file)
    (line,) = lines(file)
    jsonschema.Draft202012Validator(SCHEMA).validate(line)
    assert (line["run_id"], line["worker"], line["backend"]) == ("run-1", "main", "sample")


def test_a_line_that_would_not_be_valid_is_not_written(file: ResultFile) -> None:
    with pytest.raises(jsonschema.ValidationError):
        file.check(check(duration_ms=-1.0))
    assert lines(file) == []


def test_each_line_can_be_read_as_soon_as_it_is_written(file: ResultFile) -> None:
    for count in range(1, 4):
        file.check(check(name=f"question-{count}"))
        assert [line["check"] for line in lines(file)][-1] == f"latest.sample:question-{count}"
        assert len(lines(file)) == count


def test_a_run_that_is_cut_off_leaves_a_file_without_a_footer(tmp_path: Path) -> None:
    with closing(ResultFile(tmp_path, RUN, "sample")) as file:
        file.header(version="1", build="a jar", oracle=True)
        file.check(check())
    assert [line["kind"] for line in lines(file)] == ["header", "check"]


def test_a_footer_counts_the_checks_by_verdict(file: ResultFile) -> None:
    for verdict in (Verdict.CONFORMS, Verdict.DEVIATES, Verdict.CONFORMS):
        file.check(check(judgement=Judgement(verdict)))
    file.footer()
    footer = lines(file)[-1]
    assert (footer["checks"], footer["counts"]) == (3, {"conforms": 2, "deviates": 1})


# -- hostile text


def test_text_of_a_broker_cannot_break_a_line_or_another_reader(file: ResultFile) -> None:
    file.check(
        check(
            asked=NASTY,
            observed=Observation(silence=Silence.CLOSED, detail=NASTY),
            judgement=Judgement(Verdict.DEVIATES, reason=NASTY),
            exchanges=(exchange(NASTY, node=NASTY),),
        )
    )
    file.footer()
    raw = file.path.read_bytes()
    assert raw.isascii()
    assert raw.count(b"\n") == len(raw.splitlines()) == 2
    assert lines(file)[0]["reason"] == NASTY


def test_text_of_a_broker_cannot_blow_up_a_line(file: ResultFile) -> None:
    huge = "\x00" * 1_000_000
    file.check(
        check(
            asked=huge,
            observed=Observation(silence=Silence.MALFORMED, detail=huge),
            judgement=Judgement(Verdict.DEVIATES, reason=huge),
            exchanges=tuple(exchange(huge, node=huge) for _ in range(100)),
        )
    )
    (line,) = lines(file)
    assert len(line["evidence"]) == EVIDENCE_EXCHANGES
    assert len(line["evidence"][0]["response"]) < EVIDENCE_CHARACTERS + 50
    assert len(line["reason"]) < SENTENCE_CHARACTERS + 50
    assert line["reason"].endswith("… (1000000 characters)")
    assert file.path.stat().st_size < 200_000  # a NUL takes six characters


def test_the_reason_a_backend_did_not_run_is_bounded_too(file: ResultFile) -> None:
    file.not_run("log line\n" * 100_000)
    assert file.path.stat().st_size < 5_000


def test_the_last_exchanges_are_the_evidence() -> None:
    exchanges = tuple(exchange(str(number)) for number in range(20))
    assert [each["response"] for each in check_line(check(exchanges=exchanges))["evidence"]] == [
        str(number) for number in range(12, 20)
    ]


def test_a_message_is_shown_by_its_fields_with_long_bytes_cut() -> None:
    entry = {"index": 0, "records": bytes(1000)}
    fields = {"acks": -1, "transactional_id": None, "topic_data": [{"name": "t", "partition_data": [entry]}]}
    shown = render(compose("produce", 3, fields | {"timeout": 0}))
    zeros = "00" * 64
    assert shown == (
        "{transactional_id=None acks=-1 timeout=0 "
        f"topic_data=[{{name=t partition_data=[{{index=0 records=<1000 bytes {zeros}>}}]}}]}}"
    )


# -- files


def test_two_workers_of_a_run_have_two_files(tmp_path: Path) -> None:
    paths = set()
    for worker in ("main", "gw0", "gw1"):
        with closing(ResultFile(tmp_path, RunInfo("run-1", worker, 7), "sample")) as file:
            file.check(check())
            paths.add(file.path)
    assert {path.name for path in paths} == {
        "run-1.sample.ndjson",
        "run-1.sample.gw0.ndjson",
        "run-1.sample.gw1.ndjson",
    }


@pytest.mark.parametrize(
    "backend",
    ["apache-kafka@4.3.1", "external([::1]:9092)", "../../etc/passwd", "a/b\\c", "..", "", "a\nb\0c", "é*?", "x" * 500],
)
def test_an_odd_backend_name_makes_an_ordinary_file_in_the_directory(tmp_path: Path, backend: str) -> None:
    with closing(ResultFile(tmp_path / "results", RUN, backend)) as file:
        file.check(check())
    assert list((tmp_path / "results").iterdir()) == [file.path]
    assert all(letter.isalnum() or letter in "@.-_" for letter in file.path.name)
    assert lines(file)[0]["backend"] == backend


def test_run_ids_are_unique_and_sort_by_time() -> None:
    first, second = new_run_id(), new_run_id()
    assert first != second
    assert first[:16] <= second[:16]


def test_reading_leaves_out_whatever_is_no_complete_check(file: ResultFile) -> None:
    file.header(version=None, build="a jar", oracle=False)
    file.check(check())
    with file.path.open("ab") as stream:
        stream.write(b'\n[]\n"check"\nnull\n\xff\xfe\n{"kind": "che')
    assert [line["check"] for line in read_checks([file.path])] == ["latest.sample:latest"]


def test_kafkas_answer_is_found_in_the_same_run_only(tmp_path: Path) -> None:
    def write(run_id: str, backend: str, offset: int) -> None:
        with closing(ResultFile(tmp_path, RunInfo(run_id, "main", 7), backend)) as file:
            file.check(sample(offset))

    def sample(offset: int) -> Check:
        return check(observed=Observation({"error": 0, "offset": offset}))

    write("run-1", "other", 1)
    write("run-1", "apache-kafka@3.9.1", 2)
    write("run-1", "apache-kafka@4.3.1", 3)
    write("run-2", "apache-kafka@9.9.9", 4)
    line = oracle_line(tmp_path, "run-1", "latest.sample:latest")
    assert line is not None
    assert (line["backend"], line["observed"]["offset"]) == ("apache-kafka@4.3.1", 3)
    assert oracle_line(tmp_path, "run-1", "latest.sample:other") is None
    assert oracle_line(tmp_path, "run-3", "latest.sample:latest") is None
