"""The Docker engine: how to reach it, whether an image is at hand, and what carries this project's mark there.

Every container, network and volume of ours is labelled with its run, its owner and the owner's machine, so that a
later run can remove what a killed one left, and nothing else.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping

from docker.client import DockerClient as Engine
from docker.errors import APIError, DockerException, ImageNotFound
from testcontainers.core.config import testcontainers_config
from testcontainers.core.docker_client import DockerClient, get_docker_host

from backends.processes import Owner
from backends.running import DidNotStart
from backends.sharing import Session

OWNER_LABEL = "offset-conformance.owner"
HOST_LABEL = "offset-conformance.host"
RUN_LABEL = "offset-conformance.run"
COLUMN_LABEL = "offset-conformance.column"

PULL_SECONDS = 600.0
"""Half a gigabyte at a megabyte a second. A registry that cannot be reached says so within seconds."""


def connect() -> Engine:
    """A client of the engine that testcontainers uses, or one sentence on why there is none."""
    # Its reaper is one more image to pull; what a killed run leaves is swept here instead.
    testcontainers_config.ryuk_disabled = True
    try:
        return DockerClient().client
    except DockerException as error:
        where = get_docker_host() or "unix:///var/run/docker.sock"
        if any(isinstance(cause, PermissionError) for cause in _causes(error)) or "Permission denied" in str(error):
            raise DidNotStart(
                f"no permission to use the Docker engine at {where}: join the group that its socket belongs to"
            ) from error
        raise DidNotStart(f"no Docker engine answers at {where}: start one, or set DOCKER_HOST") from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        yield from (each for each in error.args if isinstance(each, BaseException))
        error = error.__cause__ or error.__context__


def image_identity(client: Engine, image: str) -> str:
    """The digest of an image, which is pulled if it is not there: the registry's where it came from one."""
    try:
        found = client.images.get(image)
    except ImageNotFound:
        _pull(client, image)
        found = client.images.get(image)
    except APIError as error:
        raise DidNotStart(f"image not available: {image} is no name of an image ({error.explanation})") from error
    digests: list[str] = found.attrs.get("RepoDigests") or []
    return digests[0].partition("@")[2] if digests else str(found.id)


def _pull(client: Engine, image: str) -> None:
    name, _, tag = image.partition("@") if "@" in image else image.rpartition(":")
    if not name or "/" in tag:  # no tag: the colon is that of a registry's port, or there is none
        name, tag = image, "latest"
    deadline = time.monotonic() + PULL_SECONDS
    try:
        for line in client.api.pull(name, tag=tag, stream=True, decode=True):
            if "error" in line:
                raise _not_available(image, line["error"])
            if time.monotonic() > deadline:
                raise _not_available(image, f"not pulled within {PULL_SECONDS:g} s")
        client.images.get(image)
    except (DockerException, OSError) as error:
        raise _not_available(image, getattr(error, "explanation", "") or str(error)) from error


def _not_available(image: str, why: str) -> DidNotStart:
    reason = " ".join(str(why).split())
    return DidNotStart(
        f"image not available: {image} is not on this machine and cannot be pulled ({reason}); "
        "load or build it, or name another with -b NAME=IMAGE"
    )


def labels(session: Session, column: str) -> dict[str, str]:
    return {
        OWNER_LABEL: session.owner.as_json(),
        HOST_LABEL: socket.gethostname(),
        RUN_LABEL: session.id,
        COLUMN_LABEL: column,
    }


def sweep(client: Engine) -> None:
    """Remove the containers, networks and volumes of runs of this machine that are no more."""
    _remove(client, {HOST_LABEL: socket.gethostname()}, _abandoned)


def remove_all_of(client: Engine, session: Session, column: str = "") -> None:
    """Remove everything of a run in the engine, or of one column of it, whoever of the run started it."""
    _remove(client, {RUN_LABEL: session.id} | ({COLUMN_LABEL: column} if column else {}), lambda _: True)


def end(session: Session) -> None:
    """Remove whatever a run still has: workers that were interrupted may have had no time for it."""
    if session.directory.exists():
        with contextlib.suppress(DidNotStart):  # without an engine there is nothing to remove
            remove_all_of(connect(), session)
        session.forget()


def _remove(client: Engine, marks: Mapping[str, str], wanted: Callable[[Mapping[str, str]], bool]) -> None:
    marked = {"label": [f"{name}={value}" for name, value in marks.items()]}
    for container in client.containers.list(all=True, filters=marked, ignore_removed=True):
        if wanted(container.labels):
            with contextlib.suppress(APIError):  # somebody else removes it just now
                container.remove(force=True, v=True)
    for network in client.networks.list(filters=marked):
        if wanted(network.attrs.get("Labels") or {}):
            with contextlib.suppress(APIError):
                network.remove()
    for volume in client.volumes.list(filters=marked):
        if wanted(volume.attrs.get("Labels") or {}):
            with contextlib.suppress(APIError):
                volume.remove()


def _abandoned(marks: Mapping[str, str]) -> bool:
    try:
        return not Owner.from_json(marks[OWNER_LABEL]).lives()
    except (ValueError, KeyError, TypeError):
        return False  # not readable, so not ours to judge
