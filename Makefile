# Everything runs in a virtual environment of its own; nothing needs to be installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TESTS := $(BIN)/python -m pytest -n 2 --dist loadfile
# Shapes are checked at run time where most arrays meet; elsewhere tests pass wrong types on purpose.
SHAPES := $(BIN)/python -m pytest -q --jaxtyping-packages=cdsampler,beartype.beartype tests/charts tests/interpolants \
	tests/samplers/test_charted_cds.py

.PHONY: demo test test-all lint docs bench clean

$(VENV)/user: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/user

demo: $(VENV)/user
	$(BIN)/cdsampler sample gm-2 --samples 10000 --seed 0 --out demo-output

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/dev
	rm -rf site
	$(BIN)/python -m sphinx -q -W --keep-going -d site/.doctrees docs site
	rm -r site/.doctrees

test: lint docs
	$(SHAPES)
	$(TESTS) -m "not slow"

test-all: lint docs
	$(SHAPES)
	$(TESTS)

bench: $(VENV)/dev
	$(BIN)/python benchmarks/throughput.py
	$(BIN)/python benchmarks/figures.py

clean:
	rm -rf $(VENV) demo-output site
