"""The set-up: done once, done whole, and a failure is one sentence that says what to do."""

import ast
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

import setup_env
from conformance.waiting import eventually

ROOT = Path(setup_env.ROOT)

SET_UP_SECONDS = 120.0
"""Making a small .venv takes four seconds; thirty times that is a busy machine."""

NOBODY_LISTENS = {"PIP_INDEX_URL": "http://127.0.0.1:1/", "PIP_NO_INDEX": "0", "PIP_FIND_LINKS": "", "PIP_RETRIES": "1"}

STARTED = "Setting up .venv from requirements.lock; this takes a minute or two, once."


@dataclass(frozen=True)
class Checkout:
    """What set-up needs of the project, with a lock that names one tiny package of a registry next to it."""

    path: Path

    @property
    def stamp(self) -> Path:
        return self.path / ".venv" / "set-up"

    def start(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        """Set-up as a process, with no word from the pip settings of whoever runs this test."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        registry = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.path / "registry")}
        registry["TMPDIR"] = str(self.path)  # a pip that is killed leaves its own there
        return subprocess.Popen(
            command or (sys.executable, "setup_env.py"),
            cwd=self.path,
            env=kept | registry | environment,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def set_up(self, *command: str, **environment: str) -> tuple[int, list[str]]:
        """Exit code, and what was said."""
        return ended(self.start(*command, **environment))


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    _, said = process.communicate(timeout=SET_UP_SECONDS)
    return process.returncode, said.splitlines()


def new_checkout(path: Path) -> Checkout:
    path.mkdir(exist_ok=True)
    shutil.copy(ROOT / "setup_env.py", path)
    wheel = path / "registry" / "greeting-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("greeting.py", "WORD = 'hello'\n")
        archive.writestr("greeting-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        archive.writestr(
            "greeting-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("greeting-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (path / "requirements.lock").write_text(f"greeting==1.0 --hash=sha256:{digest}\n")
    return Checkout(path)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return new_checkout(tmp_path / "checkout")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout that was set up. Tests leave it as it is."""
    checkout = new_checkout(tmp_path_factory.mktemp("finished"))
    assert checkout.set_up() == (0, [STARTED])
    return checkout


@pytest.fixture
def mute_registry() -> Iterator[str]:
    """Takes connections and says nothing, so that pip waits until the end of this fixture."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def waiting_pip(process: subprocess.Popen[str]) -> psutil.Process:
    """The pip of a set-up that waits for its registry."""

    def waits(child: psutil.Process) -> bool:
        try:
            return "--require-hashes" in child.cmdline() and bool(child.net_connections())
        except psutil.Error:  # another step of the set-up, which has just ended
            return False

    def look() -> list[psutil.Process]:
        return [child for child in psutil.Process(process.pid).children() if waits(child)]

    return eventually(look, bool, reason="pip to wait for the registry", seconds=SET_UP_SECONDS)[0]


# -- a set-up that goes well


def test_what_the_lock_names_and_the_checkout_itself_can_be_imported(finished: Checkout) -> None:
    python = finished.path / ".venv" / "bin" / "python"
    code = "import greeting, setup_env; print(greeting.WORD, setup_env.__file__)"
    said = subprocess.run([python, "-P", "-c", code], cwd="/", capture_output=True, text=True, check=True).stdout
    assert said == f"hello {finished.path / 'setup_env.py'}\n"
    assert os.access(finished.path / ".venv" / "bin" / "offsets", os.X_OK)


def test_a_second_run_does_nothing_and_needs_no_network(finished: Checkout) -> None:
    before = finished.stamp.stat().st_mtime_ns
    begin = time.monotonic()
    assert finished.set_up(**NOBODY_LISTENS) == (0, [])
    assert time.monotonic() - begin < 2
    assert finished.stamp.stat().st_mtime_ns == before


def test_another_lock_asks_for_another_set_up(finished: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup_env, "LOCK", str(finished.path / "requirements.lock"))
    monkeypatch.setattr(setup_env, "ROOT", str(finished.path))
    assert setup_env.fingerprint() == finished.stamp.read_text()
    monkeypatch.setattr(setup_env, "LOCK", str(ROOT / "requirements.lock"))
    assert setup_env.fingerprint() != finished.stamp.read_text()


def test_two_set_ups_at_once_do_it_once(checkout: Checkout) -> None:
    both = [checkout.start(), checkout.start()]
    codes, said = zip(*map(ended, both), strict=True)
    assert codes == (0, 0)
    assert [line for lines in said for line in lines].count(STARTED) == 1


def test_a_killed_set_up_is_done_again_once_its_pip_has_ended(checkout: Checkout, mute_registry: str) -> None:
    first = checkout.start(PIP_NO_INDEX="0", PIP_INDEX_URL=mute_registry)
    pip = waiting_pip(first)
    first.kill()
    first.communicate()
    assert not checkout.stamp.exists()
    second = checkout.start()
    assert second.stderr is not None
    assert second.stderr.readline() == "Another set-up is under way; waiting for it.\n"
    pip.kill()
    assert ended(second) == (0, [STARTED])
    assert checkout.stamp.exists()


# -- a set-up that cannot go on


def assert_one_sentence(said: list[str], *parts: str) -> None:
    lines = [line for line in said if line != STARTED]
    assert len(lines) == 1, said
    assert lines[0].endswith(".")
    for part in parts:
        assert part in lines[0]


def after(pretence: str) -> tuple[str, ...]:
    """The command that runs set-up in a Python which is made to look different first."""
    return sys.executable, "-c", f"import runpy, sys; {pretence}; runpy.run_path('setup_env.py', None, '__main__')"


def test_an_old_python_is_told_what_to_do(checkout: Checkout) -> None:
    code, said = checkout.set_up(*after("sys.version_info = (3, 10, 1, 'final', 0)"))
    assert code == 4
    assert_one_sentence(
        said, "This is Python 3.10.1, and Python 3.11 or newer is needed", "make test PYTHON=python3.11"
    )


def test_every_python_since_3_6_can_read_the_file_that_refuses_it() -> None:
    ast.parse((ROOT / "setup_env.py").read_text(), feature_version=(3, 6))


def test_a_python_without_venv_is_told_what_to_install(checkout: Checkout) -> None:
    code, said = checkout.set_up(*after("sys.modules['ensurepip'] = None"))
    assert code == 4
    assert_one_sentence(said, "no ensurepip module", "apt install python3-venv")


@pytest.mark.parametrize("size", ["100k", "8m"], ids=["before pip is there", "while pip is unpacked"])
def test_a_full_disk_is_named_as_such(checkout: Checkout, size: str) -> None:
    (checkout.path / ".venv").mkdir()
    mounting = f'mount -t tmpfs -o size={size} none .venv && exec "$0" "$@"'
    on_a_small_disk = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounting)
    if not shutil.which("unshare") or checkout.set_up(*on_a_small_disk, "true")[0]:
        pytest.skip("this machine lets nobody mount a small disk")
    code, said = checkout.set_up(*on_a_small_disk, sys.executable, "setup_env.py")
    assert code == 4
    assert_one_sentence(said, "The disk is full", "free about 2 GB", "run the same command again")


def test_no_network_is_named_as_such(checkout: Checkout) -> None:
    code, said = checkout.set_up(**NOBODY_LISTENS)
    assert code == 4
    assert_one_sentence(said, "registry cannot be reached", "check the network", "run the same command again")
    assert not checkout.stamp.exists()


@pytest.mark.parametrize("interruption", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_set_up_says_how_to_start_over_and_ends_pip(
    checkout: Checkout, mute_registry: str, interruption: signal.Signals
) -> None:
    process = checkout.start(PIP_NO_INDEX="0", PIP_INDEX_URL=mute_registry)
    pip = waiting_pip(process)
    process.send_signal(interruption)
    code, said = ended(process)
    assert code == 4
    assert_one_sentence(said, "The set-up was interrupted: run the same command again")
    eventually(pip.is_running, lambda runs: not runs, reason="pip to be gone", seconds=10)
    assert not checkout.stamp.exists()


def test_a_directory_that_cannot_be_made_is_named(checkout: Checkout) -> None:
    (checkout.path / ".venv").write_text("a file where the directory should be")
    code, said = checkout.set_up()
    assert code == 4
    assert_one_sentence(said, str(checkout.path / ".venv"), "see to that and run the same command again")


def pip_says_no(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> str:
    """The sentence for what a real pip says to the checkout's lock."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(checkout.path / "registry"))
    target = str(checkout.path / "installed")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--require-hashes", "--target", target]
    with pytest.raises(setup_env.CannotSetUp) as refusal:
        setup_env.run([*pip, "--requirement", str(checkout.path / "requirements.lock")])
    return str(refusal.value)


def test_a_package_that_is_not_the_locked_one_is_refused(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = checkout.path / "requirements.lock"
    lock.write_text(re.sub("sha256:.*", "sha256:" + "0" * 64, lock.read_text()))
    assert_one_sentence([pip_says_no(checkout, monkeypatch)], "The package greeting==1.0", "PIP_NO_CACHE_DIR=1")


def test_a_package_that_is_not_there_may_mean_the_python_or_the_registry(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(checkout.path / "registry")
    assert_one_sentence(
        [pip_says_no(checkout, monkeypatch)], "no greeting==1.0", "pip config list", "PYTHON=python3.11"
    )


# -- the lock of the project itself


def test_every_package_of_the_lock_is_pinned_and_has_hashes() -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text().strip())
    pinned = re.compile(r"[a-z0-9._-]+==\S+( ; [^\\\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+(\n    #.*)*")
    assert [entry for entry in entries if not pinned.fullmatch(entry)] == []


def test_the_lock_names_no_host() -> None:
    assert re.findall(r"\S*://\S*|^-.*", (ROOT / "requirements.lock").read_text(), re.MULTILINE) == []
