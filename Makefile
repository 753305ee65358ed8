# Two commands do everything: `make` and `make test`. Both set up their own environment in .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(CURDIR)/$(VENV)/bin
export PATH := $(BIN):$(PATH)

.PHONY: all setup test smoke full compare publish help
.DEFAULT_GOAL := all

all: setup ## set up, run the default profile, print the page to open
	@$(BIN)/python -m fbam.pipeline

setup: $(VENV)/installed ## the environment alone

$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "error: Python 3.11 or newer is needed, $(PYTHON) is %d.%d; name another with make PYTHON=..." % v[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

test: setup ## set up and run all tests (the smoke profile end to end among them)
	@$(BIN)/python -m pytest tests --numprocesses 2 --dist loadfile

smoke full: setup ## a profile: smoke (minutes, plumbing only), full (an evening)
	@$(BIN)/python -m fbam.pipeline $@

compare: setup ## hold this run against the published results
	@$(BIN)/python -m fbam.publish compare

publish: setup ## make this run the published results (results/, in git)
	@$(BIN)/python -m fbam.publish

help: ## this list
	@grep -E '^[a-z ]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z ]+):.*## (.*)/  make \1|\2/' | column -t -s '|'
