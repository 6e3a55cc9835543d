# The targets of this project; `make help` lists them. Each installs what it needs in .venv.

PYTHON ?= python3
VENV   ?= .venv
SHELL  := bash
.SHELLFLAGS := -eu -o pipefail -c
export PIP_DISABLE_PIP_VERSION_CHECK = 1

BIN       := $(VENV)/bin
TOOLS     := $(VENV)/.tools
INSTALLED := $(VENV)/.installed
BUILT     := $(VENV)/.built
READY     := $(VENV)/.ready
PROBES    := $(VENV)/.probes
SERVING   := $(VENV)/.serving
NATIVE    := $(shell find spaseq -name '*.px[dix]')
GRID      := examples/smart-grid
# pip passes on what setuptools says of every editable install.
EDITABLE  := PYTHONWARNINGS=ignore SPASEQ_BUILD=none $(BIN)/python -m pip install --quiet --no-build-isolation --editable
# Three processes for two cores: they wait for servers, for Spark and for time to pass as well. One
# that has no tests left takes half of those that another has.
IN_PARALLEL := -n 3 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo serve-demo papers report test check sanitize lint docs site bench build clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

# pip downloads while the extension modules are built.
MAKEFLAGS += --jobs=2

# The pip of an older Python takes three times as long to choose versions, and a minute at that.
$(TOOLS): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "spaseq needs Python 3.11 or later; name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "setting up $(VENV) and compiling the package (once, one to two minutes) ..." >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip 'setuptools>=80' 'Cython>=3.1'
	@touch $@

# An editable install of the package with its dependencies. The extension modules are built in
# place, because pip would rebuild all of them after every change.
$(INSTALLED): $(TOOLS)
	@$(EDITABLE) .
	@touch $@

$(BUILT): $(TOOLS) setup.py $(NATIVE)
	@$(BIN)/python setup.py --quiet build_ext --inplace 2> $(VENV)/build.log >&2 || \
	  { cat $(VENV)/build.log >&2; exit 1; }
	@touch $@

# The module through which tests reach the parts of the automaton.
$(PROBES): $(BUILT) tests/core_probes.pyx
	@SPASEQ_BUILD=probes $(BIN)/python setup.py --quiet build_ext --inplace 2> $(VENV)/probes.log >&2 || \
	  { cat $(VENV)/probes.log >&2; exit 1; }
	@touch $@

# What the tests, the linters and Spark need, and all that $(INSTALLED) has. The tests import a part of
# these modules, so bytecode is made when one is imported.
$(READY): $(TOOLS)
	@echo "installing what the tests need (once) ..." >&2
	@$(EDITABLE) '.[dev]' --no-compile
	@touch $(INSTALLED) $@

demo: $(INSTALLED) $(BUILT) ## run the smart-grid example and show its matches
	@$(BIN)/spaseq run $(GRID)/query.rq \
	  --stream weather=$(GRID)/weather.trig \
	  --stream power=$(GRID)/power.trig \
	  --stream storage=$(GRID)/storage.trig \
	  --kb http://example.org/smart-grid/kb=$(GRID)/kb.ttl \
	  | $(BIN)/python examples/show.py
	@echo
	@echo "Each match: the sky darkened twice over a district, then a house there drew power with"
	@echo "its battery more than half full. Look at house, districtName and capacity: no event"
	@echo "says which house a meter is in, or what its battery holds. The knowledge base does:"
	@echo "$(GRID)/kb.ttl. The query is $(GRID)/query.rq."

# What the server needs.
$(SERVING): $(INSTALLED)
	@$(EDITABLE) '.[serve]'
	@touch $@

serve-demo: $(SERVING) $(BUILT) ## serve the smart grid, live, with the console (SPEED=240 PORT=8642)
	@$(BIN)/python $(GRID)/serve_demo.py --speed $(or $(SPEED),240) --port $(or $(PORT),8642)

test: $(READY) $(PROBES) ## run every test (SPASEQ_DATA names the folder of the published data sets)
	@$(BIN)/python -m pytest $(IN_PARALLEL) --durations=10

check: $(READY) $(PROBES) ## lint, types and the most effective tests, in about 90 seconds
	@$(BIN)/python -m pytest $(IN_PARALLEL) --quick

sanitize: $(READY) $(BUILT) ## run the tests of the compiled part under AddressSanitizer and UBSan, with assertions (gcc)
	@.ci/sanitize $(abspath $(BIN))/python

lint: $(READY) $(BUILT) ## ruff check, ruff format --check, mypy --strict
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

docs: $(READY) $(BUILT) ## run every example in README.md and docs/, and check their links
	@$(BIN)/python -m pytest tests/test_docs.py tests/test_source.py -k 'test_docs or named'

site: $(READY) $(BUILT) ## build the documentation site in build/site; warnings and dead links are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

bench: $(READY) $(BUILT) ## measure events per second and memory (EVENTS=20000 sets the number of events)
	@$(BIN)/python benchmarks/query/three_steps.py --events $(or $(EVENTS),20000)

papers: $(READY) $(BUILT) ## run a short form of the experiments of the papers
	@$(BIN)/python benchmarks/papers/report.py --short

report: $(READY) $(BUILT) ## run the experiments of the papers and write report/index.html
	@$(BIN)/python benchmarks/papers/report.py --peers --output report

build: $(INSTALLED) $(PROBES) ## compile the Cython modules in place

clean: ## remove .venv and all build products
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find spaseq tests -name '*.so' -delete
	rm -f spaseq/_cyutility.c tests/core_probes.c
	for source in $(NATIVE); do rm -f "$${source%.*}.c"; done
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
