"""Makes .venv from requirements.lock, or finds that it is there already and does nothing.

Required: Python 3.11 or newer with its venv module, and a network the first time. Not required: anything
installed; this file uses the standard library alone. It stays readable to every Python from 3.6 on, as it is
the place where an old one is told so: no newer syntax here.

A failure is one sentence on standard error that says what to do, and exit code 4. Make turns that code into
its own 2 and adds a line of its own.
"""

import contextlib
import errno
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

OLDEST_PYTHON = (3, 11)

EXIT_ENVIRONMENT = 4  # as among the exit codes of the offsets command

# 700 MB of packages: a minute on a usual line; an hour is a line of 1.5 Mbit/s.
INSTALL_SECONDS = 3600.0

# Whoever waits sees one whole set-up by somebody else, and then some.
WAIT_SECONDS = INSTALL_SECONDS + 300.0

POLL_SECONDS = 0.2

# How pip, old or new, says that it cannot get through.
UNREACHABLE = ("connection broken", "connection error", "Max retries exceeded", "timed out")

ROOT = os.path.dirname(os.path.abspath(__file__))
LOCK = os.path.join(ROOT, "requirements.lock")
VENV = os.path.join(ROOT, ".venv")
VENV_PYTHON = os.path.join(VENV, "bin", "python")
COMMAND = os.path.join(VENV, "bin", "offsets")

# Written last, so that a set-up that was cut off counts as none.
STAMP = os.path.join(VENV, "set-up")

# Locked while a set-up is under way. It is in .venv, which git ignores, and stays when the rest is cleared.
TURN = os.path.join(VENV, "set-up.lock")


class CannotSetUp(Exception):
    """The set-up cannot go on. The message is one sentence that says what to do."""


def main() -> int:
    # A polite kill ends pip too, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        refuse_old_python(sys.version_info[:3])
        wanted = fingerprint()
        if not is_set_up(wanted):
            refuse_python_without_venv()
            with turn():
                if not is_set_up(wanted):  # somebody else may have done it meanwhile
                    set_up(wanted)
    except CannotSetUp as reason:
        print(reason, file=sys.stderr)
        return EXIT_ENVIRONMENT
    except OSError as cause:
        print(sentence_for(cause), file=sys.stderr)
        return EXIT_ENVIRONMENT
    except KeyboardInterrupt:
        print("The set-up was interrupted: run the same command again to start it over.", file=sys.stderr)
        return EXIT_ENVIRONMENT
    return 0


def refuse_old_python(version: "tuple[int, ...]") -> None:
    if tuple(version[:2]) < OLDEST_PYTHON:
        found = ".".join(str(number) for number in version)
        raise CannotSetUp(
            f"This is Python {found}, and Python 3.11 or newer is needed: "
            "install one and name it, as in `make test PYTHON=python3.11`."
        )


def refuse_python_without_venv() -> None:
    """Debian and its kin package these two modules apart from Python."""
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            raise CannotSetUp(
                f"This Python has no {module} module: install it (on Debian and Ubuntu: apt install "
                "python3-venv) and run the same command again."
            )


def fingerprint() -> str:
    """What .venv depends on: the lock, the Python, and the place, as its scripts name their own path."""
    with open(LOCK, "rb") as lock:
        parts = [lock.read(), sys.version.encode(), ROOT.encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def is_set_up(wanted: str) -> bool:
    try:
        with open(STAMP) as stamp:
            return stamp.read() == wanted and os.access(VENV_PYTHON, os.X_OK)
    except OSError:
        return False


@contextlib.contextmanager
def turn() -> "Iterator[None]":
    """Lets one set-up run at a time; the operating system ends the turn of one that dies.

    A pip that outlives a killed set-up still writes to .venv, so it keeps the turn: children inherit the file.
    """
    import fcntl

    os.makedirs(VENV, exist_ok=True)
    with open(TURN, "w") as file:
        os.set_inheritable(file.fileno(), True)
        give_up = time.monotonic() + WAIT_SECONDS
        waiting = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise CannotSetUp(
                        f"Another set-up of {VENV} has not ended in {WAIT_SECONDS / 60:.0f} minutes: "
                        "end it and run the same command again."
                    ) from None
            if not waiting:
                print("Another set-up is under way; waiting for it.", file=sys.stderr)
                waiting = True
            time.sleep(POLL_SECONDS)
        yield


def set_up(wanted: str) -> None:
    print("Setting up .venv from requirements.lock; this takes a minute or two, once.", file=sys.stderr)
    clear()
    # The Python behind the running one: .venv itself may be active, and has just been cleared.
    python = getattr(sys, "_base_executable", sys.executable)
    # venv would install pip itself, and keep to itself why that failed.
    run([python, "-m", "venv", "--without-pip", VENV])
    run([VENV_PYTHON, "-I", "-m", "ensurepip", "--default-pip"])
    pip = [VENV_PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    run([*pip, "install", "--require-hashes", "--no-deps", "--progress-bar", "off", "--requirement", LOCK])
    make_command()
    write(STAMP, wanted)


def clear() -> None:
    """Empties .venv, its stamp first, but for the file that is locked."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(STAMP)
    for entry in os.listdir(VENV):
        path = os.path.join(VENV, entry)
        if path == TURN:
            continue
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)


def run(command: "list[str]") -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=INSTALL_SECONDS,
            close_fds=False,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotSetUp(
            f"The packages did not arrive within {INSTALL_SECONDS / 60:.0f} minutes: "
            "check the network and run the same command again."
        ) from None
    if done.returncode:
        reason = explain(done.stdout)
        if reason is None:
            print(done.stdout, file=sys.stderr)
            reason = "The set-up failed as told above: see to that and run the same command again."
        raise CannotSetUp(reason)


def explain(said: str) -> "str | None":
    """The sentence for what venv or pip said before it failed; None if that has to be read itself."""
    if "No space left on device" in said:
        return sentence_for(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    changed = re.search(r"DO NOT MATCH THE HASHES.*?^\s+(\S+)[^\n]* from ", said, re.MULTILINE | re.DOTALL)
    if changed:
        return (
            f"The package {changed.group(1)} is not the one that requirements.lock names: run the same command "
            "again with PIP_NO_CACHE_DIR=1; if it stays so, do not trust the registry or mirror it came from."
        )
    if any(sign in said for sign in UNREACHABLE):
        return (
            "The package registry cannot be reached: check the network, the proxy and pip's settings "
            "(`pip config list`), and run the same command again."
        )
    absent = re.search(r"No matching distribution found for (\S+)", said)
    if absent:
        return (
            f"The registry shows no {absent.group(1)} for this Python and machine: check that pip reaches the registry "
            "(`pip config list`), or name another Python, as in `make test PYTHON=python3.11`."
        )
    return None


def sentence_for(cause: OSError) -> str:
    if cause.errno == errno.ENOSPC:
        return f"The disk is full: free about 2 GB for {VENV} and run the same command again."
    return (
        f"{cause.filename or VENV} cannot be used ({cause.strerror or cause}): "
        "see to that and run the same command again."
    )


def make_command() -> None:
    """Makes `.venv/bin/offsets`, and the checkout importable: an editable install that needs no build."""
    import sysconfig

    variables = {"base": VENV, "platbase": VENV}
    packages = sysconfig.get_path("purelib", "venv", variables)
    write(os.path.join(packages, "offset_conformance.pth"), ROOT + "\n")
    # -P: what happens to lie in the current directory is not imported.
    write(COMMAND, f'#!/bin/sh\nexec {shlex.quote(VENV_PYTHON)} -P -m offsets "$@"\n')
    os.chmod(COMMAND, 0o755)


def write(path: str, content: str) -> None:
    """Writes the file whole or not at all."""
    unfinished = f"{path}.unfinished"
    with open(unfinished, "w") as file:
        file.write(content)
    os.replace(unfinished, path)


if __name__ == "__main__":
    sys.exit(main())
