"""Whole runs against containers: in parallel, without an engine or an image, and ended by somebody."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from container_columns import NEW, OLD, ours
from docker.client import DockerClient as Engine
from secured_kafka import PASSWORD, USER, Secured, make_certificates
from whole_runs import ROOT, Ran, lines_in, offsets

from backends.engine import COLUMN_LABEL
from backends.image_building import IN_HOUSE
from conformance.waiting import eventually

RUN_SECONDS = 600.0

BOOT_SECONDS = 120.0
"""A container is there within ten seconds; twelve times that is a very busy machine."""


@pytest.mark.usefixtures("images")
def test_four_workers_share_one_container_of_each_broker(engine: Engine, tmp_path: Path) -> None:
    before = ours(engine)
    columns = [OLD, NEW, "in-house-container"]
    command = [sys.executable, "-m", "pytest", str(ROOT / "suites"), "-q", "-n", "4", "--tb=short", "-rN"]
    command += [f"--backend={column}" for column in columns]
    done = subprocess.run(
        [*command, f"--results={tmp_path}", "-p", "no:cacheprovider"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    lines = lines_in(tmp_path)
    verdicts: dict[str, Counter[str]] = {column: Counter() for column in columns}
    for line in lines:
        if line["kind"] == "check":
            verdicts[line["backend"]][line["verdict"]] += 1
    assert all(counts["conforms"] > 500 for counts in verdicts.values()), verdicts
    builds = {line["backend"]: line["build"] for line in lines if line["kind"] == "header"}
    assert all(" sha256:" in builds[column] for column in columns)
    hurt = {line["check"]: line["verdict"] for line in lines if line.get("backend") == NEW and "scenario" in line}
    assert hurt["restart.pause:during"] == hurt["restart.network-cut:during"] == "conforms"
    assert hurt["restart.disk-full:read"] == "conforms"
    assert ours(engine) == before


@pytest.mark.usefixtures("images")
def test_stories_that_only_a_container_can_live_through_catch_mutants_too(tmp_path: Path) -> None:
    hurtful = ["--scenario", "restart.network-cut", "--scenario", "restart.disk-full"]
    ran = offsets("mutants", "-b", NEW, *hurtful, "--out", str(tmp_path), seconds=RUN_SECONDS)
    assert ran.code == 0, ran.err
    assert "2 of 2 scenarios catch at least one, 24 of 24 legal variations pass" in ran.out


SECURED = """
FROM {base}
COPY broker.pem users /etc/broker/
ENTRYPOINT ["python3", "-m", "broker", "--tls-cert", "/etc/broker/broker.pem", "--sasl-users", "/etc/broker/users"]
"""


@pytest.mark.usefixtures("images")
def test_a_container_that_wants_tls_and_a_login_is_asked_with_a_client_config(engine: Engine, tmp_path: Path) -> None:
    make_certificates(tmp_path)
    (tmp_path / "broker.pem").chmod(0o644)  # the broker in the container is nobody
    (tmp_path / "users").write_text(f"{USER}:{PASSWORD}\n")
    (tmp_path / "Dockerfile").write_text(SECURED.format(base=IN_HOUSE))
    engine.images.build(path=str(tmp_path), tag="offset-conformance/secured", rm=True)
    config = Secured("", tmp_path).client_config(sasl_mechanism="PLAIN")
    ran = run(tmp_path, "-b", "in-house-container=offset-conformance/secured", "--client-config", str(config))
    assert ran.code == 0, ran.err
    verdicts = {line["check"]: line["verdict"] for line in lines_in(tmp_path / "results") if line["kind"] == "check"}
    assert verdicts == {"latest.one-record:latest": "conforms"}
    left = [path for place in ("results", "report", "logs") for path in (tmp_path / place).rglob("*") if path.is_file()]
    assert left
    assert [path for path in left if PASSWORD.encode() in path.read_bytes()] == []
    assert PASSWORD not in ran.out + ran.err


# -- without what is needed


def not_run(out: Path) -> dict[str, str]:
    matrix = json.loads((out / "report" / "matrix.json").read_text())
    return {column["backend"]: column["reasons"][0] for column in matrix["columns"] if column["status"] == "not run"}


def run(out: Path, *arguments: str, **environment: str) -> Ran:
    chosen = ["--out", str(out), "--scenario", "latest.one-record", *arguments]
    return offsets("run", *chosen, seconds=RUN_SECONDS, **environment)


def test_without_an_engine_nothing_runs_and_the_code_says_so(tmp_path: Path) -> None:
    ran = run(tmp_path, "-b", "redpanda", DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert ran.code == 4, ran.err
    assert not_run(tmp_path)["redpanda@v25.2.1"].startswith("no Docker engine answers at unix://")


VENDORS = ("cp-kafka", "redpanda", "redpanda-tiered", "warpstream", "korvet", "tansu")


@pytest.mark.usefixtures("engine")
def test_vendors_whose_images_are_not_there_are_columns_of_their_own_and_the_run_goes_on(tmp_path: Path) -> None:
    # No registry has these, so the test says the same on a machine that could pull the real ones.
    named = [f"{vendor}=offset-conformance.invalid/{vendor}:1" for vendor in VENDORS]
    chosen = [argument for name in named for argument in ("-b", name)]
    ran = run(tmp_path, *chosen, "-b", "librdkafka-mock")
    assert ran.code == 0, ran.err
    reasons = not_run(tmp_path)
    assert sorted(reasons) == sorted(named)
    assert all(reason.startswith("image not available: ") for reason in reasons.values()), reasons
    assert "image not available" in ran.out


def test_an_image_that_exits_at_once_is_told_apart(tmp_path: Path, image_that_exits: str) -> None:
    ran = run(tmp_path, "-b", f"apache-kafka-container={image_that_exits}")
    assert ran.code == 4, ran.err
    (reason,) = not_run(tmp_path).values()
    assert reason == "the container exited with 3: no licence | goodbye"


# -- ended by somebody


@pytest.fixture
def bystander(engine: Engine, images: list[str]) -> Iterator[str]:
    """A container of somebody else."""
    container = engine.containers.run(images[0], ["sleep", "600"], detach=True)
    yield container.id
    container.remove(force=True)


class Run:
    """`pytest suites` against the in-house container, in a process of its own."""

    def __init__(self, place: Path, *arguments: str) -> None:
        self.column = f"in-house-container={IN_HOUSE}"
        command = [sys.executable, "-m", "pytest", "suites", "-q", f"--backend={self.column}", f"--results={place}"]
        self.process = subprocess.Popen(
            [*command, "-p", "no:cacheprovider", *arguments],
            cwd=ROOT,
            env=os.environ | {"TMPDIR": str(place)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # A shell that starts these tests in the background has them ignore Ctrl-C, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def until_its_container_runs(self, engine: Engine) -> str:
        mark = {"label": f"{COLUMN_LABEL}={self.column}"}

        def look() -> list[str]:
            assert self.process.poll() is None, "the run ended before its time"
            return [each.id for each in engine.containers.list(filters=mark, ignore_removed=True)]

        return eventually(look, bool, reason="a container to run", seconds=BOOT_SECONDS)[0]


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two workers"])
def test_a_run_that_is_interrupted_leaves_no_container(
    engine: Engine, tmp_path: Path, workers: tuple[str, ...]
) -> None:
    run = Run(tmp_path, *workers)
    identity = run.until_its_container_runs(engine)
    run.process.send_signal(signal.SIGINT)
    run.process.wait(BOOT_SECONDS)
    assert identity not in [each.id for each in engine.containers.list(all=True, ignore_removed=True)]
    assert list(tmp_path.glob("offset-conformance-run-*")) == []


def test_what_a_killed_run_left_is_removed_by_the_next_and_nothing_else(
    engine: Engine, tmp_path: Path, bystander: str
) -> None:
    def there() -> list[str]:
        return [each.id for each in engine.containers.list(all=True, ignore_removed=True)]

    killed = Run(tmp_path)
    orphan = killed.until_its_container_runs(engine)
    killed.process.kill()
    killed.process.wait(BOOT_SECONDS)
    assert orphan in there()
    following = Run(tmp_path, "--scenario=latest.one-record")
    assert following.process.wait(BOOT_SECONDS) == 0
    assert orphan not in there()
    assert bystander in there()
