# Everything a newcomer needs; `make help` lists it.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Client and server are two distributions; the second needs the first.
INSTALL := $(PIP) --editable ./dragoman --editable
PROJECTS := pyproject.toml dragoman/pyproject.toml
SHELL := /bin/bash
# Many tests wait for a server, so that three of them keep two cores busy; four of the unit tests do.
TEST_PROCESSES ?= 3
# In the order of the folders: files of e2e, which take longest, come first, so that no process works alone at the end.
PYTEST = $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder
# Compiled modules are kept even where the environment says otherwise: each server of the tests would compile them again.
unexport PYTHONDONTWRITEBYTECODE
CLIENT_PACKAGES := g++ pkg-config protobuf-compiler protobuf-compiler-grpc libgrpc++-dev \
    default-jdk-headless protobuf-compiler-grpc-java-plugin libgrpc-java libnetty-java libperfmark-java \
    golang-go golang-google-grpc-dev golang-google-genproto-dev golang-google-protobuf-dev \
    ruby ruby-grpc ruby-grpc-tools

.DEFAULT_GOAL := help
.PHONY: help serve test check lint format proto proto-check docs train-setup fuzz audit test-bulk test-compose test-clients test-arm64 release overload faults soak clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

serve: .venv/.serve ## serve the default models, English-German both ways: gRPC on 127.0.0.1:50051, HTTP on :8080, metrics on :9464 (ARGS="--help" for more)
	@exec $(BIN)/dragoman serve $(ARGS)

test: .venv/.dev lint proto-check ## lint and run all tests (ARGS="-k name" for some, ARGS="--hypothesis-profile whole" for more examples)
	@$(PYTEST) $(ARGS)

check: TEST_PROCESSES = 4
check: lint ## for the inner loop: lint, and the unit tests of client, service and plugins that need no torch
	@$(PYTEST) -m "not torch" --hypothesis-profile inner -q \
	    tests/unit/dragoman tests/unit/service tests/unit/plugins tests/unit/docs $(ARGS)

lint: .venv/.dev ## ruff, mypy --strict, import rules, hadolint
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
	@$(BIN)/hadolint deploy/Dockerfile deploy/Dockerfile.gpu tests/compose/standins.Dockerfile

proto-check: ## buf lint and buf breaking of the contract (one line where npm cannot get buf)
	@tests/contract/check.sh

format: .venv/.dev ## format the code
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

proto: .venv/.dev ## regenerate the stubs in dragoman/v1 from proto/
	@PYTHON=$(BIN)/python proto/generate.sh

docs: .venv/.dev ## write what is made from the sources: pages of docs/, the OpenAPI file, the PrometheusRule
	@$(BIN)/python -m docs.generate

train-setup: .venv/.train ## install what train, and evaluate of a checkpoint, need: torch among it, some minutes
	@echo 'ready: $(BIN)/dragoman train --help'

fuzz: .venv/.dev ## 100,000 odd messages and 10,000 odd connections to real servers, then atheris where it can be installed
	@$(BIN)/python -m tests.fuzz.storm $(ARGS)
	@$(BIN)/python -m tests.fuzz.wire
	@$(BIN)/python -m tests.fuzz.http
	@$(BIN)/python -c 'import atheris' 2>/dev/null || timeout 120 $(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris>=3,<4' >/dev/null 2>&1 || true
	@if $(BIN)/python -c 'import atheris' 2>/dev/null; then \
	    for target in text message; do $(BIN)/python -m tests.fuzz.atheris_$$target -runs=50000 -max_len=500 -len_control=0 -verbosity=0 -print_final_stats=1 || exit 1; done; \
	else echo 'atheris skipped: it cannot be installed here'; fi

test-clients: .venv/.dev ## the clients of docs/clients.md in all their languages (root: installs Debian's packages of them)
	@apt-get update -qq && apt-get install -y -qq --no-install-recommends $(CLIENT_PACKAGES)
	@$(BIN)/python -m pytest tests/e2e/test_clients.py $(ARGS)

test-bulk: .venv/.bulk ## dragoman bulk on Ray and with parquet, killed and started again (installs some 450 MB)
	@$(BIN)/python -m pytest tests/unit/plugins/bulk tests/e2e/test_bulk.py tests/bulk/on_ray.py $(ARGS)

audit: .venv/.dev ## known vulnerabilities of what a server runs on (one line where nobody can be asked)
	@$(BIN)/python tests/audit.py

test-compose: .venv/.dev ## build and run docker-compose.yml for real (root; skips where no engine can start)
	@$(BIN)/python tests/compose/run.py

test-arm64: .venv/.dev ## serve, and test the service, on an ARM processor that qemu emulates (root; skips where there can be none)
	@$(BIN)/python -m tests.arm64.run

release: .cache/release-tools/.made ## build from a tag all that would be published, into dist/release; publishes nothing
	@.cache/release-tools/bin/python -m deploy.release

overload: .venv/.bench ## a minute of five times what the server can do: targets, build/overload.png (ARGS="--factor 10")
	@mkdir -p build && $(BIN)/dragoman bench overload --json build/overload.json --plot build/overload.png $(ARGS)

faults: .venv/.dev ## inject faults into real servers under load and count every call (ARGS="--only NAME" for one)
	@$(BIN)/python -m tests.faults.run $(ARGS)

soak: .venv/.dev ## all faults mixed at random for ten minutes (ARGS="--minutes 1" for less)
	@$(BIN)/python -m tests.faults.soak $(ARGS)

clean: ## remove what the other targets made
	@rm -rf .venv .cache/test-models .cache/release-tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info

# Stamps: an environment is made once, and made again when the dependencies change.
.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Dragoman needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@$(PYTHON) -m venv .venv

.cache/release-tools/.made: deploy/release/requirements.txt
	@$(PYTHON) -m venv --clear .cache/release-tools
	@.cache/release-tools/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.venv/.serve: $(PROJECTS) | .venv/bin/python
	@echo 'installing what serving needs into .venv: about 250 MB, a minute or so ...'
	@$(INSTALL) '.[cpu]'
	@touch $@

.venv/.bench: $(PROJECTS) | .venv/bin/python
	@echo 'installing what serving and measuring need into .venv: about 360 MB, a minute or two ...'
	@$(INSTALL) '.[cpu,bench]'
	@touch .venv/.serve $@

# PyPI's torch for Linux brings CUDA: several GB more. For a CPU alone, before this target:
#   .venv/bin/python -m pip install 'torch==2.13.0' --index-url https://download.pytorch.org/whl/cpu
.venv/.train: $(PROJECTS) | .venv/bin/python
	@echo 'installing torch and what else training needs into .venv: 1 to 6 GB, some minutes ...'
	@$(PIP) 'torch==2.13.0'
	@$(INSTALL) '.[cpu,train]'
	@touch .venv/.serve $@

.venv/.bulk: .venv/.dev
	@echo 'installing Ray and pyarrow into .venv: some 450 MB ...'
	@$(INSTALL) '.[bulk]'
	@touch $@

.venv/.dev: $(PROJECTS) | .venv/bin/python
	@echo 'installing torch and what else the tests need into .venv: 2 to 7 GB, some minutes ...'
	@$(PIP) 'torch==2.13.0'
	@$(INSTALL) '.[cpu,tracing,train,import,bench,peers,dev]'
	@touch .venv/.serve .venv/.bench .venv/.train $@
