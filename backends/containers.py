"""Brokers in containers, started by testcontainers: one per run, whatever the number of workers.

The host port is chosen before the start and stays for life, because the broker advertises it and an ephemeral one
moves when a container is restarted. Ports are published on loopback only. Data survives a restart and a kill, and goes
with the container.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from docker.client import DockerClient as Engine
from docker.errors import APIError, DockerException
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from backends import engine
from backends.apache_kafka import LAST_WITH_SLOW_FIRST_TICK
from backends.processes import free_ports
from backends.recipes import RECIPES, Part, Recipe
from backends.registry import Backend
from backends.running import DidNotStart, RunningBackend, await_ready
from backends.sharing import Session, Shared
from conformance.partition import FaultNotApplied
from conformance.security import PLAINTEXT, Security

BOOT_SECONDS = 120.0
"""Kafka in a container answers after 7 s on a busy machine; a vendor's that first makes a bucket takes longer."""

BOOT_ATTEMPTS = 3
"""A port chosen as free can be taken before the engine binds it; three times in a row is something else."""

STOP_SECONDS = 15
"""An orderly stop takes a second or two; after this the engine kills."""

LOG_LINES = 5
"""What a person needs to see of a broker that died."""

TAKEN = ("port is already allocated", "address already in use")
"""How engines say that somebody has the port."""

DISK_MEGABYTES = 256
"""The disk of a broker whose recipe has one, in memory: a run of the suites writes a tenth of that."""

FILLER = "filler"
"""The file that fills it."""

FOREVER = "2147483647"
"""Seconds. Not every `sleep` knows infinity."""

CONFLUENT_TO_APACHE = 4
"""Confluent Platform 7.x is Apache Kafka 3.x and 8.x is 4.x, with the same minor version."""


class Container(RunningBackend):
    """A broker in a container, with whatever its recipe wants beside it."""

    def __init__(self, backend: Backend, *, session: Session | None = None, security: Security = PLAINTEXT) -> None:
        super().__init__(backend, security=security)
        self._session = session or Session()
        self._shared = Shared(self._session, backend.column)
        self._client: Engine | None = None
        self._joined = False
        self.oracle = backend.preset == "apache-kafka-container" and not backend.own_image
        if self.kafka_release and self.kafka_release <= LAST_WITH_SLOW_FIRST_TICK:
            self.patience_seconds = 60.0

    @property
    def kafka_release(self) -> tuple[int, ...] | None:
        """Major and minor of the Apache Kafka in the image, where its version says so."""
        parts = (self.backend.version or "").split(".")[:2]
        if len(parts) < 2 or not all(part.isdecimal() for part in parts):
            return None
        major, minor = map(int, parts)
        match self.backend.preset:
            case "apache-kafka-container":
                return major, minor
            case "cp-kafka":
                return major - CONFLUENT_TO_APACHE, minor
        return None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def build(self) -> str:
        return self._build

    def turn(self, *, alone: bool) -> contextlib.AbstractContextManager[None]:
        return self._shared.turn(alone=alone)

    def start(self) -> None:
        self._client = engine.connect()
        # Nobody hurts the broker meanwhile: one that is down for a moment would be taken for none.
        with self._shared.turn(alone=False), self._shared.locked() as state:
            if "refusal" in state:
                raise DidNotStart(state["refusal"])
            if not (state["users"] and self._runs(state.get("container", ""))):
                engine.sweep(self._client)
                try:
                    state |= self._launch(self._client)
                except DidNotStart as error:
                    # The other workers of the run need not find out again.
                    state["refusal"] = str(error)
                    raise
            state["users"].append(os.getpid())
            self._joined = True
            self._id, self._port = str(state["container"]), int(state["port"])
            self._build, self._keeper, self._disk = str(state["build"]), str(state["keeper"]), str(state["disk"])
            self.facts  # noqa: B018 - asked now, while nobody hurts it, and remembered

    def stop(self) -> None:
        if self._client is None:
            return
        if self._joined:
            with self._shared.locked() as state:
                state["users"] = [pid for pid in state["users"] if pid != os.getpid()]
                if not state["users"]:
                    engine.remove_all_of(self._client, self._session, self.backend.column)
            self._joined = False
        if self._session.owner.pid == os.getpid():  # nobody else uses the directory
            self._session.forget()
        self._client.close()
        self._client = None

    def _runs(self, identity: str) -> bool:
        assert self._client is not None
        try:
            return bool(identity) and self._client.containers.get(identity).status == "running"
        except APIError:
            return False

    # -- starting

    def _launch(self, client: Engine) -> dict[str, Any]:
        """Start the containers; what every worker needs to know of them. What fails is removed."""
        try:
            for attempt in range(1, BOOT_ATTEMPTS + 1):
                (self._port,) = free_ports(1)
                recipe = RECIPES[self.backend.preset](self.backend.image, self._port)
                _require(recipe)
                try:
                    return self._run(client, recipe)
                except APIError as error:
                    words = _hidden(str(error.explanation or error), recipe)
                    if not any(sign in words for sign in TAKEN):
                        raise DidNotStart(f"the engine cannot start {self.backend.image}: {words}") from error
                    if attempt == BOOT_ATTEMPTS:
                        raise DidNotStart(f"port 127.0.0.1:{self._port} is taken, as were others before it") from error
                    engine.remove_all_of(client, self._session, self.backend.column)
        except BaseException:
            engine.remove_all_of(client, self._session, self.backend.column)
            raise
        raise AssertionError("every attempt returns or raises")

    def _run(self, client: Engine, recipe: Recipe) -> dict[str, Any]:
        marks = engine.labels(self._session, self.backend.column)
        parts = (*recipe.before, recipe.broker)
        # The broker's own first: without it there is no use in pulling the others.
        digests = {part.image: engine.image_identity(client, part.image) for part in reversed(parts)}
        network = Network(docker_network_kw={"labels": marks}).create() if recipe.before else None
        keeper = _keeper_of_a_disk(client, recipe, marks) if recipe.disk else None
        for part in parts:
            disks = [keeper.id] if keeper and part is recipe.broker else []
            container = _prepared(part, self._port, marks, network, recipe.secrets, disks)
            container.start()
        broker = container.get_wrapped_container()
        self._await_ready(broker, recipe)
        images = ", ".join(f"{image} {digest}" for image, digest in digests.items())
        return {
            "container": broker.id,
            "port": self._port,
            "build": f"image {images}",
            "keeper": keeper.id if keeper else "",
            "disk": recipe.disk,
        }

    def _await_ready(self, broker: Any, recipe: Recipe | None = None) -> None:
        def death() -> str | None:
            broker.reload()
            if broker.status not in ("exited", "dead"):
                return None
            lines = broker.logs(tail=LOG_LINES).decode(errors="replace").strip().splitlines()
            said = " | ".join(line.strip() for line in lines) or "empty log"
            code = broker.attrs["State"]["ExitCode"]
            return f"the container exited with {code}: {_hidden(said, recipe) if recipe else said}"

        await_ready(self.bootstrap, seconds=BOOT_SECONDS, alive=death, security=self.security)

    # -- levers

    def restart(self) -> None:
        with self._lever("restarted") as broker:
            broker.restart(timeout=STOP_SECONDS)
        self._await_ready(broker)

    def kill(self) -> None:
        with self._lever("killed") as broker:
            broker.kill()
            broker.wait(timeout=STOP_SECONDS)
            broker.start()
        self._await_ready(broker)

    def pause(self) -> None:
        with self._lever("paused") as broker:
            broker.pause()

    def resume(self) -> None:
        with self._lever("resumed") as broker:
            broker.unpause()

    def cut_network(self) -> None:
        with self._lever("cut off") as broker:
            self._cables = broker.attrs["NetworkSettings"]["Networks"]
            for name in self._cables:
                broker.client.networks.get(name).disconnect(broker, force=True)

    def heal_network(self) -> None:
        with self._lever("connected again") as broker:
            for name, cable in self._cables.items():
                # The default network has no names to be found by.
                aliases = cable.get("Aliases") if name != "bridge" else None
                broker.client.networks.get(name).connect(broker, aliases=aliases)

    def fill_disk(self) -> None:
        said = self._in_keeper(f"dd if=/dev/zero of={self._disk}/{FILLER} bs=4k count={DISK_MEGABYTES}k", "filled")
        if "No space left" not in said:
            raise FaultNotApplied(f"{self.backend.column} still has room on its disk: {said}")

    def free_disk(self) -> None:
        self._in_keeper(f"rm -f {self._disk}/{FILLER}", "freed")

    def _in_keeper(self, command: str, done: str) -> str:
        """Run a command where the disk is; the broker itself may have ended."""
        assert self._client is not None
        try:
            keeper = self._client.containers.get(self._keeper)
            said: bytes = keeper.exec_run(["sh", "-c", command]).output
        except (DockerException, OSError) as error:
            raise FaultNotApplied(f"the disk of {self.backend.column} could not be {done}: {error}") from error
        return " ".join(said.decode(errors="replace").split())

    @contextlib.contextmanager
    def _lever(self, done: str) -> Iterator[Any]:
        assert self._client is not None
        try:
            yield self._client.containers.get(self._id)
        except (DockerException, OSError) as error:
            words = getattr(error, "explanation", "") or error
            raise FaultNotApplied(f"{self.backend.column} could not be {done}: {words}") from error


def _require(recipe: Recipe) -> None:
    missing = [name for name in recipe.secrets if not os.environ.get(name)]
    if missing:
        raise DidNotStart(f"it needs {', '.join(missing)} in the environment: export them and run again")


def _keeper_of_a_disk(client: Engine, recipe: Recipe, marks: dict[str, str]) -> Any:
    """A container that does nothing but have the disk, which lives in memory as long as somebody has it."""
    size = {"type": "tmpfs", "device": "tmpfs", "o": f"size={DISK_MEGABYTES}m,mode=1777"}
    disk = client.volumes.create(driver="local", driver_opts=size, labels=marks)
    return client.containers.run(
        recipe.broker.image,
        [FOREVER],
        entrypoint=["sleep"],
        volumes=[f"{disk.name}:{recipe.disk}"],
        labels=marks,
        network_mode="none",
        detach=True,
    )


def _prepared(
    part: Part,
    port: int,
    marks: dict[str, str],
    network: Network | None,
    secrets: tuple[str, ...],
    disks_of: list[str],
) -> DockerContainer:
    """The container of a part, not started yet. `disks_of` are containers whose disks it shares."""
    secret = {name: os.environ[name] for name in secrets}
    container = DockerContainer(part.image, env={**part.environment, **(secret if part.port else {})})
    if part.command:
        container.with_command(list(part.command))
    if part.port:
        # Its own method takes no address, and without one the port is open to everybody.
        published: dict[str, Any] = container.ports
        published[f"{part.port}/tcp"] = ("127.0.0.1", port)
    for path, content in part.files.items():
        container.with_copy_into_container(content.encode(), path)
    options: dict[str, Any] = {"labels": marks, "volumes_from": disks_of}
    if part.entrypoint:
        options["entrypoint"] = list(part.entrypoint)
    if network is None:
        options["network"] = "bridge"
    else:
        container.with_network(network).with_network_aliases(part.alias)
    return container.with_kwargs(**options)


def _hidden(words: str, recipe: Recipe) -> str:
    """Words of a broker or an engine, on one line and without the secrets that it was given."""
    for name in recipe.secrets:
        words = words.replace(os.environ[name], "…")
    return " ".join(words.split())
