"""The same report from a Spark cluster: a master and two workers on this machine, started and ended here."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyspark
import pytest
from result_lines import check, footer, header, text
from whole_runs import offsets

from backends.java_runtime import find_java
from conformance.waiting import eventually

SPARK = Path(pyspark.__file__).parent

# A JVM of Spark's is up in three seconds; on a machine that is busy with other tests in twenty.
SECONDS = 60.0


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone master with two workers of one core each."""
    logs = tmp_path_factory.mktemp("cluster")
    environment = os.environ | {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        # Executors inherit it: JVMs of seconds never earn back the optimising compiler.
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }

    def start(stack: ExitStack, name: str, *arguments: str) -> Path:
        log = logs / f"{name}.log"
        command = [str(SPARK / "bin" / "spark-class"), *arguments]
        with log.open("w") as words:
            process = subprocess.Popen(command, env=environment, stdout=words, stderr=subprocess.STDOUT, cwd=logs)
        stack.callback(process.wait, timeout=SECONDS)
        stack.callback(process.terminate)
        return log

    def says(log: Path, pattern: str) -> re.Match[str]:
        found = eventually(
            lambda: re.search(pattern, log.read_text()), bool, reason=f"{pattern} in {log.name}", seconds=SECONDS
        )
        assert found is not None
        return found

    with ExitStack() as stack:
        where = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        log = start(stack, "master", "org.apache.spark.deploy.master.Master", *where)
        address = says(log, r"Starting Spark master at (spark://\S+)")[1]
        for number in (1, 2):
            kind = ("org.apache.spark.deploy.worker.Worker", *where, "--cores", "1", "--memory", "1g")
            start(stack, f"worker-{number}", *kind, "--work-dir", str(logs / f"work-{number}"), address)
        says(log, r"(?s)Registering worker.*Registering worker")
        yield address


def night(directory: Path, number: int, verdict: str) -> None:
    run = f"run-{number}"
    lines = [header(started=f"2026-11-0{number}T02:00:00Z"), check(verdict=verdict), check(question="again"), footer()]
    (directory / f"{run}.broker.ndjson").write_text(text([line | {"run_id": run} for line in lines]))


def test_on_two_workers_the_report_equals_the_local_one(master: str, tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    night(results, 1, "conforms")
    night(results, 2, "deviates")
    saved: dict[str, Any] = {}
    for name, url in (("local", "local[*]"), ("cluster", master)):
        out = tmp_path / name
        ran = offsets(
            *("report", str(results), "--out", out.as_uri(), "--history", f"{out.as_uri()}/history", "--master", url),
            seconds=3 * SECONDS,
            SPARK_LOCAL_IP="127.0.0.1",
        )
        assert ran.code == 0, ran.err[-3000:]
        saved[name] = json.loads((out / "report" / "report.json").read_text())
    assert saved["cluster"] == saved["local"]
    assert [change["outcome"] for change in saved["local"]["history"]["changes"]] == ["regression"]
