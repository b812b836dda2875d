"""Profiles are frozen, and made of rules that exist."""

import pytest

from conformance import profiles
from conformance.catalogue import catalogue
from conformance.profiles import UnknownProfile

# Every version that was ever published. A line is added with a new version, and no line is ever changed.
FROZEN = {
    "ingest-storage@1": "9c246ff95c62f54d",
    "core@1": "46a2b732b112c929",
    "timestamps@1": "4bf99d3770f4993c",
    "tiered@1": "e72c4122ab533777",
    "consumer-groups@1": "67c4a50140722c24",
}


def test_a_published_version_never_changes_so_that_no_verdict_moves_by_our_own_hand() -> None:
    there = {str(each): each.digest for versions in profiles.profiles().values() for each in versions}
    assert there == FROZEN, "new rules enter with a new version, never with an old one"


@pytest.mark.parametrize("profile", profiles.newest(), ids=str)
def test_every_rule_is_in_the_catalogue_once(profile: profiles.Profile) -> None:
    assert [rule for rule in profile.rules if rule not in catalogue()] == []
    assert len(set(profile.rules)) == len(profile.rules)


def test_a_name_means_its_newest_version_and_a_version_means_itself() -> None:
    assert str(profiles.choose("core")) == str(profiles.newest()[1])
    assert str(profiles.choose("core@1")) == "core@1"


@pytest.mark.parametrize(("name", "sentence"), [("cores", "there are ingest-storage, core"), ("core@99", "it has 1")])
def test_a_profile_that_is_not_there_says_which_are(name: str, sentence: str) -> None:
    with pytest.raises(UnknownProfile, match=sentence):
        profiles.choose(name)


def test_ingest_storage_asks_both_scripts_of_the_design_document() -> None:
    rules = profiles.choose("ingest-storage@1").rules
    # Last produced offset: empty, one record. Partition start offset: empty, records, retention, one more.
    assert {"latest.empty-partition", "latest.one-record"} <= set(rules)
    assert {"earliest.empty-partition", "earliest.with-records"} <= set(rules)
    assert {"earliest.after-retention-all", "earliest.retention-then-produce"} <= set(rules)
