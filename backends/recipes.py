"""How each broker is run as a container: image, command, environment and ports, as its documentation says.

Pure values: a recipe is made from an image and the host port that was chosen for it, and starts nothing. Where the
vendor documents it is recorded in `tests/containers/documented.toml`, and a test holds the recipes to that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from backends.apache_kafka import CLUSTER_ID
from backends.apache_kafka import SETTINGS as KAFKA_SETTINGS
from backends.in_house import SETTINGS as IN_HOUSE_SETTINGS

KAFKA_PORT = 9092

KAFKA_DISK = "/var/lib/offsets"
"""No directory of Apache's image or of Confluent's, so nothing is hidden by a disk there."""

REDIS_IMAGE = "redis:8"
"""Korvet needs Redis 8, which has JSON and search built in."""

MINIO_IMAGE = "minio/minio"
BUCKET = "redpanda"
MINIO_ACCOUNT = "minioadmin"
"""MinIO's documented default, name and password alike; it is reachable from the broker beside it alone."""


@dataclass(frozen=True)
class Part:
    """One container. `port` is the one in the container that is published, if any."""

    image: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int | None = None
    alias: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """A broker, and what has to run before it.

    `disk` is a directory of the broker that gets a small disk of its own, so that it can be filled. `secrets` are
    variables that go from this process's environment into the container's, and nowhere else: they are never printed or
    written. Without them the broker cannot start.
    """

    broker: Part
    before: tuple[Part, ...] = ()
    disk: str = ""
    secrets: tuple[str, ...] = ()


def _kafka_environment(port: int) -> dict[str, str]:
    """The settings of the broker that runs from jars, but for its listeners, as variables.

    Every one of them is given, because any KAFKA_* variable replaces all defaults of Apache's image. The broker
    reaches itself by a listener of its own: the address that clients use means nothing inside the container.
    """
    settings = KAFKA_SETTINGS | {
        "listeners": f"PLAINTEXT://:{KAFKA_PORT},INTERNAL://localhost:29092,CONTROLLER://localhost:29093",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},INTERNAL://localhost:29092",
        "inter.broker.listener.name": "INTERNAL",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": "1@localhost:29093",
        "log.dirs": f"{KAFKA_DISK}/records",
    }
    variables = {f"KAFKA_{name.upper().replace('.', '_')}": value for name, value in settings.items()}
    return variables | {"CLUSTER_ID": CLUSTER_ID, "KAFKA_HEAP_OPTS": "-Xmx384m -Xms64m"}


def _kafka(image: str, port: int) -> Recipe:
    return Recipe(Part(image, environment=_kafka_environment(port), port=KAFKA_PORT), disk=KAFKA_DISK)


def _redpanda_command(port: int) -> tuple[str, ...]:
    return (
        "redpanda",
        "start",
        "--mode",
        "dev-container",
        "--smp",
        "1",
        "--memory",
        "1G",
        "--kafka-addr",
        f"internal://0.0.0.0:29092,external://0.0.0.0:{KAFKA_PORT}",
        "--advertise-kafka-addr",
        f"internal://localhost:29092,external://127.0.0.1:{port}",
    )


def _redpanda(image: str, port: int) -> Recipe:
    return Recipe(Part(image, command=_redpanda_command(port), port=KAFKA_PORT))


def _redpanda_tiered(image: str, port: int) -> Recipe:
    """With tiered storage on a MinIO beside it; the licence is Redpanda's trial of thirty days."""
    properties = {
        "cloud_storage_enabled": "true",
        "cloud_storage_access_key": MINIO_ACCOUNT,
        "cloud_storage_secret_key": MINIO_ACCOUNT,
        "cloud_storage_region": "local",
        "cloud_storage_bucket": BUCKET,
        "cloud_storage_api_endpoint": "minio",
        "cloud_storage_api_endpoint_port": "9000",
        "cloud_storage_disable_tls": "true",
        "cloud_storage_url_style": "path",
        # The default is an hour; a story waits for seconds.
        "cloud_storage_segment_max_upload_interval_sec": "1",
    }
    bootstrap = "".join(f"{name}: {value}\n" for name, value in properties.items())
    # A directory is a bucket to MinIO, so none has to be made by a client.
    store = Part(
        MINIO_IMAGE,
        entrypoint=("sh", "-c"),
        command=(f"mkdir -p /data/{BUCKET} && exec minio server /data",),
        environment={"MINIO_ROOT_USER": MINIO_ACCOUNT, "MINIO_ROOT_PASSWORD": MINIO_ACCOUNT},
        alias="minio",
    )
    broker = Part(
        image,
        command=_redpanda_command(port),
        port=KAFKA_PORT,
        alias="redpanda",
        files={"/etc/redpanda/.bootstrap.yaml": bootstrap},
    )
    return Recipe(broker, before=(store,))


def _warpstream_environment(port: int) -> dict[str, str]:
    """The agent advertises the port that it listens on, so that has to be the host's."""
    return {"WARPSTREAM_DISCOVERY_KAFKA_HOSTNAME_OVERRIDE": "127.0.0.1", "WARPSTREAM_KAFKA_PORT": str(port)}


def _warpstream(image: str, port: int) -> Recipe:
    command = ("playground", "-advertiseHostnameStrategy", "custom", "-advertiseHostnameCustom", "127.0.0.1")
    return Recipe(Part(image, command=command, environment=_warpstream_environment(port), port=port))


def _warpstream_cluster(image: str, port: int) -> Recipe:
    """An agent of a virtual cluster that the user has; its bucket is the user's too."""
    return Recipe(
        Part(image, command=("agent",), environment=_warpstream_environment(port), port=port),
        secrets=(
            "WARPSTREAM_AGENT_KEY",
            "WARPSTREAM_DEFAULT_VIRTUAL_CLUSTER_ID",
            "WARPSTREAM_REGION",
            "WARPSTREAM_BUCKET_URL",
        ),
    )


def _korvet(image: str, port: int) -> Recipe:
    environment = {
        "KORVET_REDIS_URI": "redis://redis:6379",
        "KORVET_BROKER_ADVERTISED_HOST": "127.0.0.1",
        "KORVET_BROKER_ADVERTISED_PORT": str(port),
    }
    broker = Part(image, command=("server",), environment=environment, port=KAFKA_PORT, alias="korvet")
    return Recipe(broker, before=(Part(REDIS_IMAGE, alias="redis"),))


def _tansu(image: str, port: int) -> Recipe:
    command = (
        "broker",
        "--kafka-cluster-id",
        "tansu",
        "--kafka-listener-url",
        f"tcp://0.0.0.0:{KAFKA_PORT}/",
        "--kafka-advertised-listener-url",
        f"tcp://127.0.0.1:{port}/",
        "--storage-engine",
        "memory://tansu/",
    )
    return Recipe(Part(image, command=command, port=KAFKA_PORT))


def _in_house(image: str, port: int) -> Recipe:
    command = ["--listen", f"0.0.0.0:{KAFKA_PORT}", "--advertise", f"127.0.0.1:{port}"]
    for name, value in IN_HOUSE_SETTINGS.items():
        command += ["--config", f"{name}={value}"]
    return Recipe(Part(image, command=tuple(command), port=KAFKA_PORT))


RECIPES: Mapping[str, Callable[[str, int], Recipe]] = {
    "apache-kafka-container": _kafka,
    "cp-kafka": _kafka,
    "redpanda": _redpanda,
    "redpanda-tiered": _redpanda_tiered,
    "warpstream": _warpstream,
    "warpstream-cluster": _warpstream_cluster,
    "korvet": _korvet,
    "tansu": _tansu,
    "in-house-container": _in_house,
}
"""By preset: a recipe from an image and the host port that clients will use."""
