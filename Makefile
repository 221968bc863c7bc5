# Two commands do everything on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip -qq --disable-pip-version-check --no-input
# Half of the time of an install is compiling every module of every package; Python compiles those it imports.
export PIP_NO_COMPILE := 1
# Two test processes on two cores: libraries that start a thread per core would fight each other.
# What CI runs: `make LOCKED=1 test` installs the packages of locked.txt, each by its hash. pip takes no
# hashes beside an editable install, hence three steps; torch has a file of its own per machine.
LOCK := $(if $(LOCKED),locked.txt)
ONE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: run arena ablation docs dist lock test test-docs test-lowest test-slow test-faults test-benchopt test-trainers test-doors mutants bench lint clean

run: $(VENV)/.core
	@$(PY) -m scgd_paper run zo-linear

test: $(VENV)/.dev
	@$(ONE) $(PY) -m pytest -q -m "not slow and not faults" -n 2 --dist worksteal --durations 25 -rs

test-faults: $(VENV)/.dev
	@$(PIP) install -c constraints.txt -e ".[engines]"
	@$(ONE) $(PY) -m pytest -q -m faults -n 2 --dist worksteal --durations 25 tests

test-slow: $(VENV)/.dev
	@$(ONE) $(PY) -m pytest -q -m slow

lock: $(VENV)/bin/python
	@$(PY) tools/lock.py

mutants: $(VENV)/.dev
	@$(PY) tools/mutants

test-trainers: $(VENV)/.dev
	@$(PIP) install -c constraints.txt transformers accelerate lightning peft
	@$(PY) -m pytest -q tests/torch/test_torch_recipes.py tests/torch/test_block_recipes.py \
		tests/torch/test_block_trainers.py tests/torch/test_torch_auto.py::test_low_rank_adapters

test-doors: $(VENV)/.dev
	@$(PIP) install -c constraints.txt -e ".[optuna]" tensorboard mlflow-skinny wandb array-api-strict
	@SCIPY_ARRAY_API=1 $(PY) -m pytest -q tests/doors src/scgd/scipy.py src/scgd/optuna.py src/scgd/sklearn.py src/scgd/bridge.py

bench: $(VENV)/.dev
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(PY) $$script || exit 1; done

arena: $(VENV)/.peers
	@$(ONE) $(PY) -m scgd_arena --suite all --jobs 2

ablation: $(VENV)/.peers
	@$(ONE) $(PY) -m scgd_arena.ablation --jobs 2
	@$(ONE) $(PY) -m scgd_arena.ablation --jobs 2 --again --page docs/ablation.md

docs: $(VENV)/.docs
	@$(PY) -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "The site: docs/_build/html/index.html"

test-docs: docs $(VENV)/.dev
	@$(PY) -m pytest -q tests/test_site.py tests/test_pages.py tests/test_notebooks.py

dist: $(VENV)/bin/python
	@$(PIP) install build
	@$(PY) tools/release.py

test-lowest: $(VENV)-lowest/.lowest
	@$(VENV)-lowest/bin/python -m pytest -q -m "not slow and not faults" tests/linear \
		tests/test_minimize.py tests/test_searches.py tests/test_policies.py tests/test_steps.py \
		tests/test_estimators.py tests/test_law.py tests/test_checkpoint.py tests/test_ask_tell.py

test-benchopt: $(VENV)/.dev
	@$(PIP) install -c constraints.txt -e ".[benchopt]"
	@$(PY) -m pytest -q tests/linear/test_benchopt.py
	@$(PY) -m benchopt run benchmarks/benchopt_linear --no-display

lint: $(VENV)/.dev
	@$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/mypy

$(VENV)/bin/python:
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml constraints.txt $(LOCK)
	@echo "Installing scgd ..."
ifdef LOCKED
	@$(PIP) install --require-hashes --no-deps -r locked.txt
	@$(PIP) install -c constraints.txt torch
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(PIP) check
else
	@$(PIP) install -c constraints.txt -e ".[cli]"
endif
	@touch $@

$(VENV)/.dev: $(VENV)/.core pyproject.toml constraints.txt
ifndef LOCKED
	@echo "Installing scgd with what its tests need ..."
	@$(PIP) install -c constraints.txt -e ".[dev]"
endif
	@touch $@

$(VENV)/.peers: $(VENV)/.dev pyproject.toml constraints.txt
	@echo "Installing the peers of the arena ..."
	@$(PIP) install -c constraints.txt -e ".[peers]"
	@touch $@

$(VENV)/.docs: $(VENV)/.core pyproject.toml constraints.txt
	@echo "Installing what the site needs ..."
	@$(PIP) install -c constraints.txt -e ".[docs]"
	@touch $@

$(VENV)-lowest/.lowest: pyproject.toml lowest.txt
	@echo "Installing the lowest versions that are supported ..."
	@$(PYTHON) -m venv $(VENV)-lowest
	@$(VENV)-lowest/bin/python -m pip -qq --disable-pip-version-check --no-input install -c lowest.txt -e ".[cli]" \
		pytest pytest-xdist hypothesis
	@touch $@

clean:
	@rm -rf $(VENV) $(VENV)-lowest
