"""One quiet Spark session that starts fast, listens on loopback only and leaves nothing running.

For: the driver's settings, and a class archive in the user's cache that halves the start of the next session.
Left to others: which Java to use (`java_home`, else JAVA_HOME, else `java` on the path).
"""

import atexit
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import platformdirs
import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession

LOOPBACK = "127.0.0.1"

# For a master that is this process: a cluster's workers must be able to reach the driver.
LOOPBACK_ONLY = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}

# For thousands of rows, planning again on the way and more than one partition cost more than they save.
SMALL_JOB = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}

# Ten million rows of history are grouped within this; the default of 1 GB spills.
LARGE_JOB = {"spark.driver.memory": "4g"}

# Of ten million rows, a share that fits in the memory of a worker; the default of 200 is for far more.
SHUFFLE_PARTITIONS = {"spark.sql.shuffle.partitions": "8"}

# Compiling what a job does to a row takes four processor seconds for a whole report, and saves a fifth of a
# millisecond per line.
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
NOT_COMPILED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

# From how many bytes of result files on it pays to compile (some 25,000 lines), and to be a large job.
COMPILED_BYTES = 25 << 20
LARGE_BYTES = 1 << 30

# What nobody reads here: which line of Python built a column, for errors to name, and how each job is planned, for a
# user interface that is off.
UNTOLD = {
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "0",
}

# A job of seconds never earns back the optimising compiler or a parallel collector: C1 and the serial
# collector halve the processor time of a small job. Python calls each of hundreds of methods a few dozen times, for
# which Java 17 would write a class per method; newer ones ignore that setting, and have their own.
SMALL_JOB_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -Dsun.reflect.inflationThreshold=2147483647 -Djdk.reflect.useNativeAccessorOnly=true"
)

# Writing the class archive takes a few seconds as the JVM exits; a minute means that it hangs.
ARCHIVE_SECONDS = 60

# What the JVM said last is enough to tell why it did not start.
JVM_WORDS = 2000


class JavaDidNotStart(Exception):
    """Spark's JVM ended before it answered. Says what the JVM said, and what to do next."""

    def __init__(self, java: str, said: str) -> None:
        super().__init__(
            f"Spark could not start its JVM with {java}. Spark 4 needs Java 17 or newer with the module"
            f" jdk.incubator.vector: set JAVA_HOME to a full JDK. The JVM said:\n{said}"
        )


def spark_session(master: str = "local[*]", java_home: str | None = None, input_bytes: int = 0) -> SparkSession:
    """The process's Spark session, started on first use; it ends with the process.

    `input_bytes` is how much there is to read: on this machine, what pays for millions of rows costs more than it
    saves for thousands. A cluster has its own memory and planning.

    Required: a Java 17+ that has jdk.incubator.vector. `java_home` counts for the first call only, since a
    process has one JVM. Not required: a writable cache; without one, sessions just start more slowly.
    """
    large = input_bytes >= LARGE_BYTES
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(_settings(master, input_bytes).items()))
    if SparkContext._gateway is None:
        with _environment(_launch_environment(master, java_home)):
            _launch(conf, large)
    return SparkSession.builder.config(conf=conf).getOrCreate()


def _settings(master: str, input_bytes: int = 0) -> dict[str, str]:
    settings = {
        "spark.app.name": "offset-conformance",
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Without Hadoop's checksum layer, which fails on a file name with a colon, such as HOST:PORT.
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.sql.session.timeZone": "UTC",
    }
    settings |= UNTOLD | SHUFFLE_PARTITIONS | (COMPILED if input_bytes >= COMPILED_BYTES else NOT_COMPILED)
    if not _is_local(master):
        return settings
    return settings | LOOPBACK_ONLY | (LARGE_JOB if input_bytes >= LARGE_BYTES else SMALL_JOB)


def in_one_piece(table: DataFrame) -> DataFrame:
    """The table in one partition where the job is small: Spark then need not exchange rows to group or join them."""
    small = table.sparkSession.conf.get("spark.sql.shuffle.partitions") == SMALL_JOB["spark.sql.shuffle.partitions"]
    return table.coalesce(1) if small else table


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _launch_environment(master: str, java_home: str | None) -> dict[str, str]:
    # The installed pyspark's own Spark: a SPARK_HOME of the machine may be another version.
    environment = {"SPARK_HOME": str(_spark_home()), "SPARK_LAUNCHER_OPTS": SMALL_JOB_JVM}
    if _is_local(master):
        environment["SPARK_LOCAL_IP"] = LOOPBACK
    if java_home is not None:
        environment["JAVA_HOME"] = java_home
    return environment


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Change this process's environment for the launch only: the JVM inherits it."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _launch(conf: SparkConf, large: bool) -> None:
    """Start the JVM with its words kept aside: shown when it fails, silent when it works."""
    java = _java()
    stem = _archive_stem(java)
    archive = stem and _complete_archive(stem)
    recording: Path | None = None
    options = SMALL_JOB_JVM if _is_local(conf.get("spark.master") or "") and not large else ""
    if archive is not None:
        # auto and Verify: an archive that does not fit or is damaged is ignored, never an error
        options += f" -Xshare:auto -XX:+VerifySharedSpaces -XX:SharedArchiveFile={archive}"
    elif stem is not None:
        recording = stem.with_name(f"{stem.name}.{os.getpid()}.tmp")
        options += f" -XX:ArchiveClassesAtExit={recording}"
    conf.set("spark.driver.extraJavaOptions", options.strip())

    with tempfile.TemporaryFile() as words:
        try:
            gateway = launch_gateway(conf, {"stdout": words, "stderr": words})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            raise JavaDidNotStart(java, _last_words(words)) from error
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)
    if stem is not None and recording is not None and gateway.proc is not None:
        atexit.register(_keep_archive, gateway.proc, recording, stem)


def _last_words(words: IO[bytes]) -> str:
    words.seek(0)
    return words.read().decode(errors="replace").strip()[-JVM_WORDS:]


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else shutil.which("java") or "java"


def _spark_home() -> Path:
    return Path(pyspark.__file__).resolve().parent


def _archive_stem(java: str) -> Path | None:
    """How the class archive for this Java and this pyspark is called; None where none can be kept."""
    try:
        version = subprocess.run([java, "-version"], capture_output=True, check=True, timeout=30).stderr
        jars = _spark_home() / "jars"
        # The JVM takes an archive only for the very jars it was made from: same place, same time stamps.
        made_from = f"{pyspark.__version__} {jars} {jars.stat().st_mtime_ns}"
        key = hashlib.sha256(version + made_from.encode()).hexdigest()[:16]
        directory = Path(platformdirs.user_cache_dir("offset-conformance"))
        directory.mkdir(parents=True, exist_ok=True)
    except (OSError, subprocess.SubprocessError):
        return None
    # No white space: Spark splits the JVM's options there.
    return None if " " in str(directory) else directory / f"spark-{pyspark.__version__}-{key}"


def _complete_archive(stem: Path) -> Path | None:
    """The archive, if it is whole. Its name tells its size: the JVM crashes on one that was cut short."""
    whole = (file for file in _archives(stem) if file.name == f"{stem.name}.{file.stat().st_size}.jsa")
    return next(whole, None)


def _archives(stem: Path) -> list[Path]:
    return list(stem.parent.glob(f"{stem.name}.*"))


def _keep_archive(jvm: "subprocess.Popen[bytes]", recording: Path, stem: Path) -> None:
    """Let the JVM end, and name the archive it wrote on the way out. Others of that stem are leftovers."""
    try:
        if jvm.stdin is not None:
            jvm.stdin.close()  # Spark's JVM exits when its input ends
        if jvm.wait(ARCHIVE_SECONDS) == 0 and recording.exists():
            for leftover in set(_archives(stem)) - {recording}:
                leftover.unlink(missing_ok=True)
            recording.replace(stem.with_name(f"{stem.name}.{recording.stat().st_size}.jsa"))
    except (OSError, subprocess.TimeoutExpired):
        pass  # the next session records it again
    finally:
        recording.unlink(missing_ok=True)
