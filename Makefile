# modurob: `make` alone lists the targets. Each target installs what it needs into .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt

.DEFAULT_GOAL := help
unexport PYTHONDONTWRITEBYTECODE # what was compiled once need not be compiled by every process
.DELETE_ON_ERROR:
.PHONY: help demo test test-fast test-simd test-frameworks check bench docs release clean

help:  ## List the targets
	@echo "modurob: modular robots from datasheets to equations of motion"
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.core  ## Build the crab, simulate, control, walk and verify it; write output/report.html
	$(BIN)/python examples/00_first_organism.py
	$(BIN)/python examples/05_crab_report.py

test: $(VENV)/.bytecode  ## Run every test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --no-loadscope-reorder

test-fast: $(VENV)/.bytecode  ## Run the tests for daily work: no browser, no papers, no long runs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --no-loadscope-reorder -m 'not slow'

test-simd: $(VENV)/.bytecode  ## Run the numeric tests without SIMD and with other vector widths
	$(BIN)/python tools/simd_passes.py

test-frameworks: $(VENV)/.frameworks  ## Run the tests and examples with PyTorch, JAX and CasADi
	$(BIN)/python -m pytest -p no:xdist tests/frameworks
	$(BIN)/python -m pytest -p no:xdist tests/test_examples.py -k 'casadi or jax or torch'

check: $(VENV)/.dev  ## Lint, format, types and import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest tests/test_architecture.py

bench: $(VENV)/.bench  ## Measure side by side with other engines; write docs/benchmarks.md and the README's table
	$(BIN)/python -m benchmarks $(BENCH)
	$(BIN)/python -m benchmarks.headline
	$(BIN)/python -m benchmarks.page

docs: $(VENV)/.dev  ## Build the documentation into site/
	PYTHONPATH=. $(BIN)/zensical build --strict --clean
	$(BIN)/python tools/gallery.py viewers site/gallery
	$(BIN)/python tools/check_site.py
	@echo "open site/index.html"

release: $(VENV)/.created  ## Build wheel and sdist and try them in clean environments; uploads nothing
	$(BIN)/python tools/release.py

clean:  ## Remove .venv and everything that was built
	rm -rf $(VENV) site build dist .cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamp files say what .venv holds: nothing, the core, or the core with the developers' tools.
$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null \
	  || { echo "modurob: no '$(PYTHON)' here: install Python 3.11 or newer (Debian: apt-get install python3 python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "modurob: needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) -V 2>&1): install one and run 'make PYTHON=python3.11 ...'" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null && $(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "modurob: $(PYTHON) cannot create virtual environments: install its venv package (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@touch $@

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/.created
	@echo "installing modurob and its studio into $(VENV) (a minute or two, once) ..."
	@$(PIP) --editable '.[studio]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.created
	@echo "installing modurob and the developers' tools into $(VENV) (a minute or two, once) ..."
	@$(PIP) --editable '.[dev]'
	@touch $(VENV)/.core $@

$(VENV)/.frameworks: $(VENV)/.dev
	@echo "installing PyTorch, JAX and CasADi into $(VENV) (a gigabyte or more, once) ..."
	@$(PIP) --editable '.[torch,jax,casadi]'
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	@echo "installing the engines that the benchmarks compare with into $(VENV) ..."
	@$(PIP) --editable '.[bench]'
	@touch $@

# Once, before the workers of the tests would all do the same work at the same time.
$(VENV)/.bytecode: $(VENV)/.dev
	@echo "compiling the tests to bytecode ..."
	@-$(BIN)/python -m pytest --collect-only -p no:xdist >/dev/null
	@touch $@
