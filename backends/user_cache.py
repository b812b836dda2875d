"""What the project keeps between runs outside the checkout: where it lives, who may write, how it appears.

Required: a directory that the user may write to. Not required: that it survives; what is gone is made again.
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

CACHE_VARIABLE = "OFFSETS_CACHE"


class SetupError(Exception):
    """Something that a run needs is missing on this machine. The message ends with what to do about it."""


class CacheNotWritable(SetupError):
    def __init__(self, directory: Path, cause: OSError) -> None:
        if cause.errno == errno.ENOSPC:
            advice = f"free some space there, or set {CACHE_VARIABLE} to a directory on a larger disk"
        else:
            advice = f"make it writable, or set {CACHE_VARIABLE} to a directory that is"
        super().__init__(f"The user cache {directory} cannot be written ({cause.strerror or cause}): {advice}.")


class CacheBusy(SetupError):
    def __init__(self, target: Path, seconds: float) -> None:
        super().__init__(
            f"Another process has been preparing {target} for more than {seconds:.0f} s: "
            "wait for it or end it, then run again."
        )


def user_cache() -> Path:
    """The cache directory of this user; it need not exist yet."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(platformdirs.user_cache_dir("offset-conformance"))


@contextmanager
def only_writer(target: Path, *, patience: float) -> Iterator[None]:
    """Holds the right to publish `target`; the operating system gives it back when its holder dies."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(target.parent / f".{target.name}.lock", timeout=patience)
        lock.acquire()
    except Timeout:
        raise CacheBusy(target, patience) from None
    except OSError as cause:
        raise CacheNotWritable(target.parent, cause) from cause
    try:
        yield
    finally:
        lock.release()


@contextmanager
def published(target: Path) -> Iterator[Path]:
    """Gives an empty directory to fill; it becomes `target` in one rename, or disappears if the block fails.

    The caller is the only writer of `target`, so what an earlier, killed writer left half-built is removed
    first. An OSError of the block counts as a cache that cannot be written.
    """
    prefix = f".{target.name}.building-"
    try:
        for leftover in target.parent.glob(f"{prefix}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        building = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    except OSError as cause:
        raise CacheNotWritable(target.parent, cause) from cause
    try:
        yield building
        if target.exists():
            # A directory cannot be renamed over a full one; the old one leaves under a name that the next
            # writer sweeps away.
            target.rename(building.with_name(f"{building.name}-old"))
        building.rename(target)
    except OSError as cause:
        raise CacheNotWritable(target.parent, cause) from cause
    finally:
        shutil.rmtree(building, ignore_errors=True)
        shutil.rmtree(building.with_name(f"{building.name}-old"), ignore_errors=True)
