# The commands of this project. Each makes .venv first where it is not there; nothing else is needed than
# Python 3.11+ and make. A set-up that cannot go on says why in one sentence; make's own last line follows it.

PYTHON ?= python3

.PHONY: help setup matrix test golden images benchmark readme lock clean

help:
	@echo "make matrix   run the suites against the embedded backends and print the matrix"
	@echo "make test     the project's own checks and tests"
	@echo "make golden   hold every version of Apache Kafka against its golden answers; ten minutes"
	@echo "make images   build the container images of this repository; BASES=machine pulls nothing for it"
	@echo "make benchmark  how quick the suite, the tool, the client and history are, beside others"
	@echo "make readme   write the tables of README.md anew from the last make matrix"
	@echo "make lock     compile requirements.lock anew from pyproject.toml"
	@echo "make clean    remove .venv and the tools' caches; results in out/ and the user cache stay"
	@echo "A Python other than python3: make test PYTHON=python3.12"

setup:
	@$(PYTHON) setup_env.py

matrix: setup
	@.venv/bin/offsets run

test: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/python -m pytest tests

golden: setup
	.venv/bin/python -m pytest tests/test_golden.py --every-version

images: setup
	@.venv/bin/python -m backends.image_building $(if $(filter machine,$(BASES)),--from-this-machine)

benchmark: setup
	@.venv/bin/python -m benchmarks.quickness
	@.venv/bin/python -m benchmarks.history

readme: setup
	@.venv/bin/python tests/readme_tables.py out/report/matrix.md

lock:
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && \
	$(PYTHON) -m venv "$$tools" && \
	"$$tools/bin/pip" install --quiet --disable-pip-version-check uv && \
	"$$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header --extra dev -o requirements.lock pyproject.toml

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
