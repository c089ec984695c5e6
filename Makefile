# `make map` and `make test` do all set-up on a fresh machine; every target reuses .venv.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
# One thread per process unless a command asks for more: figures stay comparable and runs repeatable.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export NUMBA_NUM_THREADS ?= 1
# Modules are byte-compiled where they are first imported, not all of every package: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

# Files go by name, not by their number of tests: the few long tests of `adversary` come first, and no process is left with one.
# A third of the tests' time is waiting for limits and signals: three processes keep two cores busy.
TESTS := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: help setup warm map collected test test-deep lint docs bench benchmarks clean

help:
	@echo "make map    set up, then map the Potjans-Diesmann microcircuit (5 %) onto 64 cores"
	@echo "make test   set up, then run the tests"
	@echo "make test-deep  set up, then run the long tests: forgers, floors of strength, sweeps, clusters"
	@echo "make lint   ruff and mypy"
	@echo "make docs   the site of the docs, in site/ (warnings are errors; the tutorials run)"
	@echo "make bench  rerun the figures of docs/results.md (see bench/README.md)"
	@echo "make benchmarks  rerun docs/benchmarks.md (eight minutes; see docs/bench.md)"

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("nmsolve needs Python 3.11, 3.12 or 3.13, this is " + sys.version.split()[0]) if not (3, 11) <= sys.version_info[:2] <= (3, 13) else 0'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	@touch $@

# PyTorch, for the tests of training only. Not as an extra of this package: that would install the package again, whose command
# may be running.
.venv/learn: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt torch
	@touch $@

setup: .venv/ready

# Compiles all numba kernels once; they are cached beside the sources.
warm: setup
	$(BIN)/nmsolve doctor --warm

# Kernels are compiled when they are first needed, and cached.
map: setup
	@mkdir -p runs
	$(BIN)/nmsolve generate microcircuit --scale 0.05 --seed 1 --out runs/microcircuit.json
	$(BIN)/nmsolve map runs/microcircuit.json --machine mesh:8x8 --balance 0.1 --time-limit 30 --seed 1 --out runs/microcircuit

# Has pytest rewrite and compile the files of the tests, which else each of its processes does for itself, at the same time.
collected: .venv/learn
	$(BIN)/python -m pytest --collect-only -q > /dev/null

# What tells that everything works, of every kind of problem.
test: warm .venv/learn
	$(TESTS) -m "not deep"

# What takes most of the time and rarely changes: forgers, floors of strength, sweeps, clusters (`DEEP` in tests/conftest.py).
test-deep: warm .venv/learn
	$(TESTS) -m deep

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy nmsolve

# The site has an environment of its own, as Jupyter runs the tutorials: with it the one of the tests would be twice as large.
.venv/docs/ready: pyproject.toml constraints.txt .venv/ready
	$(PYTHON) -m venv .venv/docs
	.venv/docs/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[docs]'
	@touch $@

docs: .venv/docs/ready
	NO_MKDOCS_2_WARNING=1 .venv/docs/bin/mkdocs build --strict --quiet

bench: warm
	$(BIN)/python bench/figures.py

# Goes on where it was stopped; runs of the same code are not done again.
benchmarks: warm
	$(BIN)/nmsolve bench qaplib --methods auto,anneal,tabu,simple-annealing,genetic,ant-colony,particle-swarm --seeds 1 --time-limit 5s --out runs/bench --page docs/benchmarks.md

clean:
	rm -rf .venv runs build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
