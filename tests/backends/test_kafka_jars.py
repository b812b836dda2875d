"""Kafka's jars: fetched once, checked each time, and a fetch that fails says what to do.

The jar with LocalTieredStorage stands for all of them: it is one small file, fetched as the others are.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backends import kafka_jars
from backends.java_runtime import JavaRuntime, find_java
from backends.kafka_jars import CertificateNotTrusted, FetchFailed, NotPublished, RegistryUnreachable
from backends.user_cache import CacheNotWritable

VERSION = "4.3.1"
NEVER_RELEASED = "4.3.999"

FETCH_SECONDS = 120.0
"""A fetch takes two seconds; a slow line may take sixty times that."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user cache of the test's own, in a process that has verified nothing."""
    monkeypatch.setenv("OFFSETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kafka_jars, "_verified", {})
    return tmp_path / "cache"


@pytest.fixture
def java(cache: Path, tmp_path: Path) -> JavaRuntime:
    """The Java of this machine, writing down each start."""
    real = find_java()
    counting = tmp_path / "java"
    counting.write_text(f"""#!/bin/sh\necho started >> '{tmp_path}/starts'\nexec '{real.executable}' "$@"\n""")
    counting.chmod(0o755)
    assert not cache.joinpath("kafka").exists()
    return JavaRuntime(real.home, counting, real.version, real.origin)


@pytest.fixture
def starts(tmp_path: Path) -> Callable[[], int]:
    """How often Java was started to fetch."""
    notes = tmp_path / "starts"
    return lambda: len(notes.read_text().splitlines()) if notes.exists() else 0


def fetch(java: JavaRuntime, version: str = VERSION) -> Path:
    """The one jar, from the cache or from the registry."""
    asked = kafka_jars._ivy_file(kafka_jars._test_jar(kafka_jars.KAFKA, "kafka-storage", version))
    (jar,) = kafka_jars._jars(version, "tiered", asked, java)
    return jar


def fetch_in_a_new_process(java: JavaRuntime) -> subprocess.Popen[str]:
    code = "import sys, pathlib; sys.path.insert(0, sys.argv[1]); from test_kafka_jars import *; "
    code += "print(fetch(JavaRuntime(pathlib.Path(), pathlib.Path(sys.argv[2]), 0, '')))"
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(java.executable)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def files(directory: Path) -> list[str]:
    return sorted(str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file())


# -- from the registry


def test_a_jar_is_fetched_once_and_a_damaged_one_again(
    java: JavaRuntime, cache: Path, starts: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = fetch(java)
    whole = jar.read_bytes()
    assert files(cache / "kafka") == [
        f"{VERSION}/.tiered.lock",
        f"{VERSION}/tiered/kafka-storage-{VERSION}-test.jar",
        f"{VERSION}/tiered/manifest.json",
    ]
    monkeypatch.setattr(kafka_jars, "_verified", {})
    assert fetch(java) == jar
    assert starts() == 1

    jar.write_bytes(whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:])
    monkeypatch.setattr(kafka_jars, "_verified", {})
    assert fetch(java).read_bytes() == whole
    assert starts() == 2


def test_two_processes_that_ask_at_once_fetch_once(java: JavaRuntime, starts: Callable[[], int]) -> None:
    both = [fetch_in_a_new_process(java), fetch_in_a_new_process(java)]
    answers = {process.communicate(timeout=FETCH_SECONDS)[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(answers) == 1
    assert starts() == 1


def test_a_version_that_was_never_released_is_named(java: JavaRuntime, cache: Path) -> None:
    with pytest.raises(NotPublished) as refusal:
        fetch(java, NEVER_RELEASED)
    assert str(refusal.value) == (
        f"The registry has no org.apache.kafka#kafka-storage;{NEVER_RELEASED} (wanted for Apache Kafka "
        f"{NEVER_RELEASED} (tiered)): ask for a version of Apache Kafka that was released."
    )
    assert files(cache / "kafka") == [f"{NEVER_RELEASED}/.tiered.lock"]


def test_a_registry_that_cannot_be_reached_is_tried_twice_and_then_named(
    java: JavaRuntime, cache: Path, starts: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1")
    with pytest.raises(RegistryUnreachable) as refusal:
        fetch(java)
    assert str(refusal.value) == (
        f"The jars of Apache Kafka {VERSION} (tiered) could not be fetched (Connection refused): check the network and "
        "run again; behind a proxy, set JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT'."
    )
    assert starts() == 2
    assert files(cache / "kafka") == [f"{VERSION}/.tiered.lock"]


def test_an_authority_that_this_machine_trusts_and_java_does_not_will_do(
    java: JavaRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_authority = kafka_jars._certificates_of_this_machine()[-1:]
    trust = tmp_path / "trust.jks"
    trust.write_bytes(kafka_jars._java_key_store(some_authority))
    options = f"-Djavax.net.ssl.trustStore={trust} -Djavax.net.ssl.trustStoreType=JKS"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", options)
    assert fetch(java).is_file()


# -- what the cache holds


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A directory as a fetch leaves it, with two jars."""
    (tmp_path / "a.jar").write_bytes(b"aaaa")
    (tmp_path / "b.jar").write_bytes(b"bbbb")
    digests = {name: kafka_jars._sha256_of(tmp_path / name) for name in ("a.jar", "b.jar")}
    listed = ", ".join(f'"{name}": {{"size": 4, "sha256": "{digest}"}}' for name, digest in digests.items())
    asked = kafka_jars._sha256(b"what was asked")
    (tmp_path / kafka_jars.MANIFEST).write_text(f'{{"asked": "{asked}", "jars": {{{listed}}}}}')
    return tmp_path


def test_jars_that_are_what_the_manifest_says_are_used_in_name_order(kept: Path) -> None:
    assert kafka_jars._intact(kept, "what was asked") == (kept / "a.jar", kept / "b.jar")


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: (kept / "a.jar").write_bytes(b"aaab"),
        lambda kept: (kept / "a.jar").write_bytes(b"aaa"),
        lambda kept: (kept / "a.jar").unlink(),
        lambda kept: (kept / "c.jar").write_bytes(b"somebody else's"),
        lambda kept: (kept / kafka_jars.MANIFEST).unlink(),
        lambda kept: (kept / kafka_jars.MANIFEST).write_text('{"asked": '),
        lambda kept: (kept / kafka_jars.MANIFEST).write_text("[]"),
    ],
    ids=["one bit", "cut short", "gone", "one too many", "no manifest", "half a manifest", "another manifest"],
)
def test_anything_else_is_to_be_fetched(kept: Path, damage: Callable[[Path], object]) -> None:
    damage(kept)
    assert kafka_jars._intact(kept, "what was asked") is None


def test_jars_of_another_question_are_to_be_fetched(kept: Path) -> None:
    assert kafka_jars._intact(kept, "what is asked now") is None


# -- what Ivy says


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("javax.net.ssl.SSLHandshakeException: PKIX path building failed", CertificateNotTrusted),
        ("\t\tHost registry.invalid not found. url=https://registry.invalid/x.pom", RegistryUnreachable),
        ("something new\n\n", FetchFailed),
        ("", FetchFailed),
    ],
)
def test_each_failure_of_ivy_has_its_sentence(said: str, kind: type[Exception]) -> None:
    failure = kafka_jars._what_went_wrong("Apache Kafka", said, 1)
    assert type(failure) is kind
    assert str(failure).endswith(".")


def test_a_description_that_did_not_arrive_is_a_failure_whatever_ivy_makes_of_it() -> None:
    said = "\tServer access error at url https://registry.invalid/x.pom (java.net.SocketException: Connection reset)"
    failure = kafka_jars._what_went_wrong("Apache Kafka", said, 0)
    assert isinstance(failure, RegistryUnreachable)
    assert "(Connection reset)" in str(failure)


def test_a_full_disk_is_a_matter_of_the_cache(cache: Path, java: JavaRuntime) -> None:
    java.executable.write_text("#!/bin/sh\necho 'java.io.IOException: No space left on device'\nexit 1\n")
    with pytest.raises(CacheNotWritable, match=f"{cache}.*free some space there"):
        fetch(java)
