# Two commands on a fresh machine (Python 3.11, pip, make): `make demo` and `make test`.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
F1_SHARED ?= $(abspath ../shared)
export F1_SHARED

# Dagster's own home, unless the caller has one.
PROJECT_HOME := $(CURDIR)/.dagster_home
ifeq ($(DAGSTER_HOME),)
DAGSTER_HOME := $(PROJECT_HOME)
endif
export DAGSTER_HOME
# Each dagster command announces its successor `dg`, which is not used here.
export PYTHONWARNINGS = ignore::FutureWarning

# More than two spinning OpenMP threads on a small machine cost more than they give.
export OMP_WAIT_POLICY = PASSIVE
export GOMP_SPINCOUNT = 0

WORKERS ?= 2
READY := $(VENV)/.ready

.PHONY: help setup demo test dev serve bench docs lint clean free-pools

help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) $(DAGSTER_HOME)/dagster.yaml  ## Install the locked versions into .venv

$(READY): requirements.lock requirements.no-deps.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 is needed: set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r requirements.no-deps.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m f1_pipelines.sim.compile
	@touch $@

# The project's own home follows dagster.yaml. In any other home a file that is there stays as it is.
$(PROJECT_HOME)/dagster.yaml: dagster.yaml
	@mkdir -p $(@D)
	@cp $< $@

ifneq ($(DAGSTER_HOME),$(PROJECT_HOME))
$(DAGSTER_HOME)/dagster.yaml:
	@mkdir -p $(@D)
	@cp dagster.yaml $@
endif

demo: setup  ## Run the whole flow and print the evaluation and the next prediction
	@$(BIN)/python -m f1_pipelines demo

test: setup  ## Run the tests and print their coverage
	$(BIN)/python -m slipcover --source f1_pipelines --skip-covered --out .coverage -m \
		pytest -n $(WORKERS) --dist loadgroup -m "not gpu and not live" $(PYTEST_ARGS); \
		status=$$?; awk 'END {print "Coverage: " $$4 " % of " $$2 " lines; missed lines by file in .coverage"}' .coverage; \
		exit $$status

dev: setup  ## Open the Dagster UI on http://127.0.0.1:3000
	-@$(BIN)/f1 doctor --free-pools --quiet
	env --default-signal=INT,TERM $(BIN)/dagster dev -h 127.0.0.1 -p 3000

serve: setup  ## Open the pit wall on http://127.0.0.1:8000: pages, environment server, predictions
	$(BIN)/f1 serve

bench: setup  ## Print the benchmark tables
	$(BIN)/python -m benchmarks

docs: setup  ## Build the documentation into site/; a broken link or page fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

lint: docs  ## Check style, types, the direction of imports, the Dagster definitions and the documentation
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/dagster definitions validate
	$(BIN)/dg check defs

free-pools: setup  ## Free the pool slots that a killed run still holds
	$(BIN)/f1 doctor --free-pools

clean:  ## Remove the environment and caches, never the warehouse
	rm -rf $(VENV) .pytest_cache .ruff_cache .coverage build site *.egg-info
