"""The class archive: a help when it is there and whole, and never in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reports import session

# Ends as Spark's JVM does: when its input ends, after writing the archive.
WRITES_AT_EXIT = "import pathlib, sys; sys.stdin.read(); pathlib.Path(sys.argv[1]).write_text('classes')"
DIES_WRITING = WRITES_AT_EXIT + "; sys.exit(1)"


def keep(program: str, stem: Path) -> None:
    recording = stem.with_name(f"{stem.name}.1.tmp")
    jvm = subprocess.Popen([sys.executable, "-c", program, str(recording)], stdin=subprocess.PIPE)
    session._keep_archive(jvm, recording, stem)
    assert jvm.returncode is not None


def test_an_archive_gets_its_name_once_it_is_complete_and_leftovers_go(tmp_path: Path) -> None:
    stem = tmp_path / "spark-4.2.0-key"
    (tmp_path / "spark-4.2.0-key.99.tmp").write_text("of a killed session")
    (tmp_path / "spark-4.2.0-other.7.jsa").write_text("of another Java")
    keep(WRITES_AT_EXIT, stem)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "spark-4.2.0-key.7.jsa",
        "spark-4.2.0-other.7.jsa",
    ]
    assert session._complete_archive(stem) == tmp_path / "spark-4.2.0-key.7.jsa"


def test_what_a_dying_jvm_wrote_is_not_kept(tmp_path: Path) -> None:
    stem = tmp_path / "spark-4.2.0-key"
    keep(DIES_WRITING, stem)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_was_cut_short_is_not_used(tmp_path: Path) -> None:
    stem = tmp_path / "spark-4.2.0-key"
    (tmp_path / "spark-4.2.0-key.7.jsa").write_text("class")
    assert session._complete_archive(stem) is None


def test_a_java_that_does_not_run_has_no_archive(tmp_path: Path) -> None:
    assert session._archive_stem(str(tmp_path / "java")) is None


def test_the_environment_is_changed_for_the_launch_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "before")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with session._environment({"JAVA_HOME": "during", "SPARK_HOME": "during"}):
        assert (os.environ["JAVA_HOME"], os.environ["SPARK_HOME"]) == ("during", "during")
    assert os.environ["JAVA_HOME"] == "before"
    assert "SPARK_HOME" not in os.environ


def test_a_cluster_keeps_its_own_address_and_its_own_planning() -> None:
    settings = session._settings("spark://host:7077")
    assert "spark.driver.host" not in settings
    assert "spark.sql.adaptive.enabled" not in settings
