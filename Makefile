# Everything a newcomer types. `make demo` and `make test` install what they need first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.base
STAMP  := $(VENV)/.installed
EXTRAS := dev,atari,crafter,dmc,minari,ray

.DEFAULT_GOAL := help
.PHONY: help setup demo test quick lint format docs bench clean

help:            ## this list
	@grep -hE '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /  make \1\t/' | expand -t 18

setup: $(STAMP)  ## create .venv and install cascade with its development tools

$(VENV):
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13) and "cascade needs Python 3.11 to 3.13; set it with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml constraints.txt | $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $(BASE)

$(STAMP): pyproject.toml constraints.txt | $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	@touch $(BASE) $(STAMP)

demo: $(BASE)    ## the whole system in minutes: CASCADE beside random, zero-shot transfer, and the page
	$(BIN)/cascade run demo --out runs/demo/random --method random --model-steps 0 --quiet
	$(BIN)/cascade run demo --out runs/demo/cascade
	$(BIN)/cascade transfer runs/demo/cascade
	$(BIN)/cascade transfer runs/demo/random
	$(BIN)/cascade report runs/demo/cascade runs/demo/random --out runs/demo/report

test: setup      ## lint, types, import contracts, strict docs, tests
	$(MAKE) --no-print-directory lint
	$(MAKE) --no-print-directory docs
	$(BIN)/python -m pytest -n 2 --dist loadfile

quick: setup     ## the tests alone, stopping at the first failure
	$(BIN)/python -m pytest -x

lint: setup      ## ruff, mypy, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup    ## rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup      ## build the site into site/, warnings are errors
	$(BIN)/mkdocs build --strict --quiet

bench: setup     ## measure this machine, JSON into benchmarks/local.json
	$(BIN)/cascade bench --out benchmarks/local.json

clean:           ## remove what the commands above created; other runs stay
	rm -rf $(VENV) site runs/demo .mypy_cache .ruff_cache .import_linter_cache
