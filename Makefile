PYTHON ?= python3
BIN := .venv/bin
FOLDERS := costing judge lab rubric stopgate

.PHONY: help demo test lint types bench clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' Makefile

# The constraints pin every dependency; they hold no address, so that any index serves.
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: .venv/ready ## a false claim is held and withdrawn, on loopback, without a key
	@$(BIN)/turngate demo

test: .venv/ready ## all tests that need nothing but this machine
	$(BIN)/pytest -n 2 $(PYTEST)

lint: .venv/ready ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The checker sees the folders under the names that they are installed by; it follows no links, so they are copied.
types: .venv/ready ## the strict type checker
	@rm -rf build/typing && mkdir -p build/typing/turngate
	@cp -r $(FOLDERS) build/typing/turngate/
	$(BIN)/basedpyright

bench: .venv/ready ## speed and memory, as ratios within one run, written to bench-results/
	$(BIN)/python -m tests.bench

clean: ## remove what the targets made
	rm -rf .venv build dist bench-results *.egg-info
