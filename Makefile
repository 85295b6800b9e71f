# Leakscope: `make help` lists the targets.
# Anything here can be overridden: make run PORT=9000, make test ARGS="-k inversion" WORKERS=4.

PYTHON    ?= python3
VENV      ?= .venv
HOST      ?= localhost
PORT      ?= 8501
WORKERS   ?= 2
ARGS      ?=
PIP_FLAGS ?=
TORCH_FLAGS ?=

PY      := $(VENV)/bin/python
CREATED := $(VENV)/.created
RUNTIME := $(VENV)/.installed-runtime
DEV     := $(VENV)/.installed-dev

export HF_HUB_DISABLE_TELEMETRY = 1
export DO_NOT_TRACK = 1
export STREAMLIT_BROWSER_GATHER_USAGE_STATS = false
export TOKENIZERS_PARALLELISM = false
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test slow check lint types format bench lock figures mutate fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(RUNTIME) ## set up what is missing and serve the dashboard (PORT=8501)
	$(VENV)/bin/leakscope serve --host $(HOST) --port $(PORT) $(ARGS)

# A worker that dies is not replaced: xdist may wait for ever for what it gave to the new one.
PYTEST := $(PY) -m pytest --numprocesses $(WORKERS) --dist loadfile --max-worker-restart 0

test: $(DEV) ## set up what is missing and run the quick tests (ARGS="-k word")
	$(PYTEST) -m "not slow and not browser" $(ARGS)

slow: $(DEV) ## run the slow tests, and the journeys through a browser
	$(PYTEST) -m "slow or browser" $(ARGS)

check: test slow lint ## everything

lint: types ## check style, formatting, types and the documentation's figures
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m tools.figures --check

# mypy does not follow the `__path__` of leakscope/__init__.py: it finds the folders by links.
types: $(DEV) ## check types
	@mkdir -p build/types/leakscope
	@ln -sfn $(foreach name,core dashboard pages,$(CURDIR)/$(name)) $(wildcard $(CURDIR)/leakscope/*.py) build/types/leakscope/
	$(PY) -m mypy --num-workers $(WORKERS) -p leakscope -p benchmarks -p scripts -p tools

format: $(DEV) ## rewrite the code to the style that lint checks
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(DEV) ## measure speed and quality (ARGS="name" for one benchmark)
	$(PY) -m benchmarks $(ARGS)

lock: $(DEV) ## pin every package anew, and list them with licences (ARGS=--upgrade for newer ones)
	$(PY) -m tools.lock $(ARGS)

figures: $(DEV) ## write every measured figure of the documentation from the result files
	$(PY) -m tools.figures $(ARGS)

mutate: $(DEV) ## plant known faults one by one, and see that the tests notice (ARGS="name")
	$(PY) -m tools.mutate $(ARGS)

fuzz: $(DEV) ## give every command and reader 10,000 damaged inputs (ARGS="--cases 1000")
	$(PY) -m tools.fuzz $(ARGS)

clean: ## remove the virtual environment and every cache of the tools
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: each is newer than the requirements that it stands for, or pip runs again.
# First what every index serves alike, each file by its hash; then PyTorch, whose files differ; then
# the checkout itself, so that $(VENV)/bin/leakscope runs it; and the compiled loops, so that no
# first visit waits for them.
OWN := $(PY) -m pip install -qq $(PIP_FLAGS) --no-deps --no-build-isolation --editable . && \
	$(PY) -m leakscope.core.compile_ahead

$(RUNTIME): requirements.txt constraints.txt hashes.txt pyproject.toml setup.py | $(CREATED)
	$(PY) -m pip install $(PIP_FLAGS) --require-hashes --no-deps -r hashes.txt
	$(PY) -m pip install $(PIP_FLAGS) $(TORCH_FLAGS) -r requirements.txt -c constraints.txt
	$(OWN)
	@touch $@

$(DEV): requirements-dev.txt requirements.txt constraints.txt hashes.txt hashes-dev.txt pyproject.toml setup.py | $(CREATED)
	$(PY) -m pip install $(PIP_FLAGS) --require-hashes --no-deps -r hashes.txt -r hashes-dev.txt
	$(PY) -m pip install $(PIP_FLAGS) $(TORCH_FLAGS) -r requirements-dev.txt -c constraints.txt
	$(OWN)
	@touch $(RUNTIME) $@

$(CREATED):
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	  echo "Leakscope needs Python 3.11 or newer, and '$(PYTHON)' was not found." >&2; \
	  echo "Install Python, or name one: make run PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Leakscope needs Python 3.11 or newer; '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1)." >&2; \
	  echo "Name a newer one: make run PYTHON=python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make virtual environments: its venv module is missing." >&2; \
	  echo "On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	"$(PYTHON)" -m venv --clear $(VENV)
	@touch $@
