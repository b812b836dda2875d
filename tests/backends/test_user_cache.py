"""The user cache: one writer at a time, and what is in it is whole."""

import subprocess
import sys
from pathlib import Path

import pytest

from backends.user_cache import CacheBusy, CacheNotWritable, only_writer, published, user_cache

HOLDER = """
import pathlib, sys
from backends.user_cache import only_writer
with only_writer(pathlib.Path(sys.argv[1]), patience=10):
    print("held", flush=True)
    sys.stdin.read()
"""


def fill(target: Path, word: str, *, failure: type[BaseException] | None = None) -> None:
    with published(target) as building:
        (building / "word").write_text(word)
        if failure:
            raise failure


def hold(target: Path, *, patience: float) -> None:
    with only_writer(target, patience=patience):
        pass


def test_the_variable_says_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFSETS_CACHE", str(tmp_path / "mine"))
    assert user_cache() == tmp_path / "mine"
    monkeypatch.setenv("OFFSETS_CACHE", "")
    assert user_cache().name == "offset-conformance"


def test_a_directory_appears_whole_and_replaces_the_one_before(tmp_path: Path) -> None:
    target = tmp_path / "target"
    for word in ("first", "second"):
        with published(target) as building:
            assert list(building.iterdir()) == []
            (building / "word").write_text(word)
            assert word != "first" or not target.exists()
        assert (target / "word").read_text() == word
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_while_building_leaves_what_was_there_before(tmp_path: Path, failure: type[BaseException]) -> None:
    target = tmp_path / "target"
    fill(target, "before")
    with pytest.raises(failure):
        fill(target, "half", failure=failure)
    assert (target / "word").read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_what_a_killed_writer_left_is_swept_by_the_next(tmp_path: Path) -> None:
    target = tmp_path / "target"
    abandoned = tmp_path / ".target.building-abandoned"
    abandoned.mkdir()
    (abandoned / "word").write_text("half")
    fill(target, "whole")
    assert list(tmp_path.iterdir()) == [target]


def test_a_second_writer_waits_and_then_says_what_to_do_until_the_first_dies(tmp_path: Path) -> None:
    target = tmp_path / "target"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(CacheBusy, match=r"wait for it or end it, then run again\.$"):
            hold(target, patience=0.1)
        holder.kill()
    hold(target, patience=10)


def test_a_cache_that_is_no_directory_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    target = tmp_path / "cache" / "kafka" / "jars"
    with pytest.raises(CacheNotWritable, match=r"make it writable, or set OFFSETS_CACHE to a directory that is\.$"):
        hold(target, patience=1)
    with pytest.raises(CacheNotWritable, match="cannot be written"):
        fill(target, "word")


def test_a_full_disk_while_building_asks_for_space(tmp_path: Path) -> None:
    with pytest.raises(CacheNotWritable, match="free some space there"), published(tmp_path / "target"):
        Path("/dev/full").write_text("does not fit")
    assert list(tmp_path.iterdir()) == []
