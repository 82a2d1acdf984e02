# Logyard: `make help` lists what there is to do. All of it works in a fresh clone.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help install demo test check golden bench tools lock clean

VENV := .venv
BIN := $(VENV)/bin
# The file that says that the virtual environment is as the lock wants it.
READY := $(VENV)/ready
UV := 0.13.8

# The first of these that is new enough makes the virtual environment; name another with PYTHON=...
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then echo $$python; break; fi; done)

help:  ## List the targets.
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

install: $(READY)  ## Make the virtual environment and install from the lock.

$(READY): pyproject.toml requirements.lock
	@if [ -z "$(PYTHON)" ]; then echo 'Python 3.11 or newer is needed; name it with PYTHON=...' >&2; exit 1; fi
	@if [ ! -x $(BIN)/pip ]; then echo "making $(VENV) with $$($(PYTHON) --version)" >&2; \
		if ! $(PYTHON) -m venv $(VENV) >/dev/null 2>&1; then rm -rf $(VENV); \
			if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
				apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null; fi; \
			$(PYTHON) -m venv $(VENV) || { echo 'this Python makes no virtual environments;' \
				'on Debian: apt-get install python3-venv' >&2; exit 1; }; \
		fi; fi
	@echo 'installing from requirements.lock' >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --root-user-action=ignore uv==$(UV)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
	@touch $(READY)

demo: install  ## A real workflow from file to answer, watched and explained.
	@$(BIN)/python examples/demo.py

test: install tools check  ## Everything that continuous integration runs.
	$(BIN)/pytest

check: install  ## Formatting, lint, types and import contracts.
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports

golden: install  ## Whole published traces through the scheduler, job by job; takes minutes.
	$(BIN)/pytest -m golden --durations=0 tests/simulation

bench: install  ## Measure; ONLY=throughput,append runs some.
	@$(BIN)/python -m tests.bench $(if $(ONLY),--only $(ONLY))

# Tests of the PostgreSQL log and of mounts need these programs; without them they are skipped, visibly.
tools:
	@missing=''; \
	ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null || missing='postgresql'; \
	command -v bwrap >/dev/null || missing="$$missing bubblewrap"; \
	if [ -n "$$missing" ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "installing$$( printf ' %s' $$missing ) for the tests" >&2; \
			{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
				apt-get install -y -qq --no-install-recommends $$missing; } >/dev/null 2>&1 \
			|| echo "could not install $$missing: tests that need it will be skipped" >&2; \
		else echo "not here: $$missing; tests that need it will be skipped" >&2; fi; \
	fi

lock: install  ## Resolve the dependencies anew; the lock names no hosts on purpose.
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --group dev pyproject.toml -o requirements.lock

clean:  ## Remove what the targets made, the virtual environment included.
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage \
		build dist demo-out bench-out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
