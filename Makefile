# Two commands do it all: `make run` starts Sayso, `make test` proves it.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CONFIG ?= config.example.yaml
export PYTHONDONTWRITEBYTECODE =

.PHONY: help run test torture check bench format lock clean system-run system-test

help:  ## what there is
	@awk -F':.*##' '/^[a-z-]+:.*##/ {printf "  make %-8s %s\n", $$1, $$2}' Makefile

$(STAMP): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit("Sayso needs Python 3.11 or newer; set PYTHON=") if sys.version_info < (3, 11) else 0'
	@mkdir -p $(VENV) 2>/dev/null && test -w $(VENV) || { echo "cannot write to $(VENV): give another place, make VENV=DIR …" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) …"
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $(STAMP)

system-run:
	@scripts/system-packages bwrap=bubblewrap

system-test: system-run
	@scripts/system-packages chromium=chromium rg=ripgrep git=git file=file xz=xz-utils bzip2=bzip2 zstd=zstd

run: $(STAMP) system-run  ## set up and start Sayso on config.example.yaml (PORT=, SAYSO_HOME=, VENV= are honoured)
	@$(BIN)/sayso up --config $(CONFIG) $(if $(PORT),--port $(PORT))

test: $(STAMP) system-test  ## set up and run the whole suite
	@$(BIN)/python -m pytest -n auto $(ARGS)

torture: $(STAMP) system-run  ## kill the daemon 300 times under load, and hold what it kept against what it promised
	@$(BIN)/python -m tests.torture $(ARGS)

check: $(STAMP)  ## format, lint, types, import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

format: $(STAMP)  ## format and mend what can be mended by machine
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP) system-run  ## measure the hot paths, print figures, write bench/latest.json
	@$(BIN)/python -m tests.benchmarks

lock:  ## write requirements.lock anew
	@scripts/lock

clean:  ## remove what was built
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/latest.json
