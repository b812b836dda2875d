"""What the documents say is so."""

from __future__ import annotations

import re
import tomllib

import pytest
from readme_tables import README, with_tables
from whole_runs import ROOT, MatrixRun


def test_the_tables_of_the_readme_are_those_of_the_run(matrix_run: MatrixRun) -> None:
    report = (matrix_run.out / "report" / "matrix.md").read_text()
    assert README.read_text() == with_tables(README.read_text(), report), "run `make matrix readme`"


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "Makefile"])
def test_every_file_that_a_document_names_exists(name: str) -> None:
    made_by_a_run = ("out/", ".venv/")
    named = re.findall(r"[`(]((?:[\w.-]+/)*[\w.-]+\.(?:py|md|toml|json|yaml|lock))[`)]", (ROOT / name).read_text())
    assert [path for path in named if not path.startswith(made_by_a_run) and not (ROOT / path).exists()] == []


def test_the_example_of_a_broker_is_the_real_one() -> None:
    example = re.search(r"```toml\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    assert example is not None
    real = tomllib.loads((ROOT / "backends" / "backends.toml").read_text())
    for name, paragraph in tomllib.loads(example[1]).items():
        assert real[name] == paragraph


def test_the_example_of_a_scenario_is_the_real_one() -> None:
    example = re.search(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    assert example is not None
    assert example[1] in (ROOT / "suites" / "test_latest.py").read_text()


def test_the_compose_file_publishes_on_loopback_only() -> None:
    published = re.findall(r'^\s+- "([^"]+)"$', (ROOT / "docker" / "compose.yaml").read_text(), re.MULTILINE)
    assert published == ["127.0.0.1:9092:9092", "127.0.0.1:9192:9092"]
