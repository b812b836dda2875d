"""Offset specs: their numbers, the versions since which they have a meaning, and how a person types them."""

import pytest

from conformance.specs import (
    EARLIEST,
    END_OF_TIME,
    LATEST,
    SPECIAL_SPECS,
    UNKNOWN_NEGATIVE,
    OffsetSpec,
    T,
    at,
    at_epoch,
    parse_spec,
)


def test_the_special_numbers_are_kafkas_and_count_down_from_minus_one() -> None:
    assert [(spec.timestamp, spec.name, spec.since) for spec in SPECIAL_SPECS] == [
        (-1, "latest", 1),
        (-2, "earliest", 1),
        (-3, "max-timestamp", 7),
        (-4, "earliest-local", 8),
        (-5, "latest-tiered", 9),
        (-6, "earliest-pending-upload", 11),
    ]
    assert UNKNOWN_NEGATIVE.timestamp == -7


@pytest.mark.parametrize("spec", SPECIAL_SPECS, ids=lambda spec: spec.name)
def test_a_special_spec_is_typed_by_name_or_by_number(spec: OffsetSpec) -> None:
    assert parse_spec(spec.name) is spec
    assert parse_spec(str(spec.timestamp)) is spec


@pytest.mark.parametrize("text", ["-01", " -1", "-1\n"])
def test_another_spelling_of_a_special_number_is_the_same_spec(text: str) -> None:
    assert parse_spec(text) is LATEST


@pytest.mark.parametrize("timestamp", [0, 1, T, 2**63 - 1, -7, -(2**63)])
def test_any_other_number_of_64_bits_is_a_time_or_a_number_without_a_name(timestamp: int) -> None:
    assert parse_spec(str(timestamp)) == OffsetSpec(str(timestamp), timestamp)


@pytest.mark.parametrize("text", [str(2**63), str(-(2**63) - 1), "9" * 100])
def test_a_number_that_does_not_fit_the_field_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="does not fit the 64 bits"):
        parse_spec(text)


@pytest.mark.parametrize("text", ["", "newest", "LATEST", "1.5", "0x10", "2023-11-14", "nan", "9" * 5000])
def test_what_is_no_spec_is_refused_with_what_to_use_instead(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no offset spec: use latest, earliest, .* or milliseconds since 1970"):
        parse_spec(text)


def test_declining_is_wrong_for_latest_earliest_and_times_only() -> None:
    assert [spec for spec in SPECIAL_SPECS if spec.is_core] == [LATEST, EARLIEST]
    assert at_epoch(0).is_core
    assert END_OF_TIME.is_core
    assert not UNKNOWN_NEGATIVE.is_core


def test_times_are_counted_from_a_fixed_moment_or_from_1970() -> None:
    assert at(1500) == OffsetSpec("at+1500", T + 1500)
    assert at_epoch(0) == OffsetSpec("at-0", 0)
