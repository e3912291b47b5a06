# Everything goes through .venv. The stamps in it say which requirements it holds, so a second call is instant.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BIN := .venv/bin
RUN_READY := .venv/.ready-run
TEST_READY := .venv/.ready-test
PYTEST_ARGS ?=
# Tests wait more than they compute: three workers fill two cores. What shares a server stays on one worker.
WORKERS ?= 3
SPREAD = -n $(WORKERS) --dist loadscope --no-loadscope-reorder
LOCK_ARGS ?=

define HELP
Nexo, a self-hosted instant-messaging server.

  make run         set up and start a server with the embedded database; make run PORT=8901 on another port
  make test        everything: style, types, and all tests against MariaDB, PostgreSQL and Redis
  make test-fast   only the tests that need no database server and no process of their own, under a minute

  make coverage    the tests again, with the lines and branches that none of them reaches
  make lint        style and types
  make format      put the code into the project's format
  make docs        write the generated pages of docs/ anew
  make lock        pin what pyproject.toml asks for (LOCK_ARGS=--upgrade takes newer versions)
  make clean       remove .venv and caches, never data/

Some tests only: make test-fast PYTEST_ARGS="-k unread". More in CONTRIBUTING.md.
endef

.PHONY: help
help:
	@: $(info $(HELP))

.PHONY: run
run: $(RUN_READY)
	$(BIN)/nexo serve $(if $(PORT),--port $(PORT))

.PHONY: test
test: $(TEST_READY) services lint
	$(BIN)/pytest $(SPREAD) --durations=15 $(PYTEST_ARGS)

.PHONY: test-fast
test-fast: $(TEST_READY)
	$(BIN)/pytest $(SPREAD) -m "not servers and not slow" $(PYTEST_ARGS)

# Apart: to be watched makes whatever is computed in the tests' own process slower by half.
.PHONY: coverage
coverage: $(TEST_READY) services
	$(BIN)/pytest $(SPREAD) --cov --cov-report=term:skip-covered $(PYTEST_ARGS)

.PHONY: lint
lint: $(TEST_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=src:tests $(BIN)/mypy -p harness

.PHONY: format
format: $(TEST_READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: docs
docs: $(TEST_READY)
	$(BIN)/nexo docs --write docs

.PHONY: lock
lock:
	PYTHON=$(PYTHON) scripts/lock.sh $(LOCK_ARGS)

.PHONY: services
services:
	scripts/test-services.sh

.PHONY: clean
clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.* htmlcov dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN_READY): requirements/run.txt pyproject.toml
	PYTHON=$(PYTHON) scripts/venv.sh requirements/run.txt
	touch $@

# Tests use the Python SDK as its users do; a server runs without it.
$(TEST_READY): requirements/test.txt pyproject.toml clients/python/pyproject.toml
	PYTHON=$(PYTHON) scripts/venv.sh requirements/test.txt clients/python
	touch $@
