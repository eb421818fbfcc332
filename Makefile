# Thin: every target is one or two commands that can be typed by hand.
#   make quickstart   set up, then run the main job on a small twin made on the spot; where there is no GPU
#                     nothing is compiled for one (five minutes), 'make CUDA=ON quickstart' does
#   make test         set up, then the whole test suite
#   make docs         set up, then the documentation site in build/site
#   make test-sanitize   random calls of the CPU operators under the address and undefined-behaviour sanitizers
#   make reproduce-all PROFILE=smoke|laptop|gpu|gpus|paper   set up, then a verdict for every claim, on one page
PYTHON ?= python3
VENV ?= .venv
CUDA ?= AUTO
# A folder of ready-built wheels of PyG's sampling extensions; optional.
WHEELS ?= $(wildcard ../shared/wheels)
# How much 'reproduce-all' runs: a quarter of an hour, two hours, or what a GPU takes: an hour or so, or all of a day.
PROFILE ?= smoke

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
NATIVE := native/CMakeLists.txt $(shell find native -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh')

.DEFAULT_GOAL := quickstart
.PHONY: help quickstart reproduce-all install test test-gpu test-sanitize check docs format revision clean

help: ## list the targets and variables
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:.*## /\t/' | \
	  while IFS="$$(printf '\t')" read -r target text; do printf '%-14s %s\n' "$$target" "$$text"; done
	@printf '%s\n' '' 'variables, as in: make PYTHON=python3.11 quickstart' \
	  'PYTHON   interpreter of the environment (3.11 for DGL from PyPI)' \
	  'VENV     folder of the environment' \
	  'CUDA     ON, OFF or AUTO: whether to compile for a GPU' \
	  'WHEELS   folder with wheels of pyg-lib, torch-scatter and torch-sparse, to install them without a network'

quickstart: CUDA = $(shell nvidia-smi -L 2>/dev/null | grep -q GPU && echo AUTO || echo OFF)
quickstart: install ## set up, then compare all systems on a small generated graph
	@$(BIN)/gnnbench run breakdown || { code=$$?; [ $$code -eq 3 ] || exit $$code; \
	  echo "gnnbench is installed and works; the measurement above is not reliable, see its notes"; }

reproduce-all: install ## set up, then check every claim (PROFILE=smoke, laptop, gpu, gpus or paper)
	$(BIN)/gnnbench reproduce --profile $(PROFILE)

install: $(VENV)/.installed ## build the native libraries and install everything into VENV

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else \
	  "gnnbench needs Python 3.11 to 3.13, this is %d.%d; name another: make PYTHON=python3.11" % v)'
	$(PYTHON) -m venv $(VENV)
	touch $@

# Two steps, because the native build needs torch's headers: tools and torch first.
$(VENV)/.dependencies: constraints.txt pyproject.toml | $(VENV)/.python
	@echo "installing torch and the build tools into $(VENV): minutes, without a word"
	$(PIP) install -q -c constraints.txt torch numpy scikit-build-core cmake ninja
	touch $@

$(VENV)/.installed: $(VENV)/.dependencies $(NATIVE)
	@echo "building the native libraries and installing the other dependencies: two minutes," \
	  "$(if $(filter OFF,$(CUDA)),nothing for a GPU,and five more where CUDA is compiled)"
	$(PIP) install -q --no-build-isolation -c constraints.txt \
	  --config-settings=cmake.define.GNNBENCH_CUDA=$(CUDA) -e '.[dev]'
	@$(if $(WHEELS),for package in pyg-lib torch-scatter torch-sparse; do \
	  $(PIP) install -q --no-index --no-deps --find-links $(WHEELS) $$package \
	  || echo "no wheel of $$package fits; going on without"; done,true)
	touch $@

test: install ## set up, then run the test suite
	$(BIN)/python -m pytest

# Random calls of every CPU operator, with a library that checks addresses and undefined behaviour.
# FUZZ_CALLS is the number for each operator, FUZZ_SEED the first seed.
FUZZ_CALLS ?= 720
FUZZ_SEED ?= 0
test-sanitize: install ## call the CPU operators at random under the sanitizers
	PATH="$(abspath $(BIN)):$$PATH" cmake -S native -B build/sanitize -G Ninja \
	  -DGNNBENCH_CUDA=OFF -DGNNBENCH_SANITIZE=ON -DPython3_EXECUTABLE=$(abspath $(BIN)/python)
	PATH="$(abspath $(BIN)):$$PATH" cmake --build build/sanitize --target gnnbench_cpu
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:allocator_may_return_null=1:handle_segv=0 \
	UBSAN_OPTIONS=print_stacktrace=1 GNNBENCH_NATIVE_DIR=$(abspath build/sanitize) \
	GNNBENCH_FUZZ_CALLS=$(FUZZ_CALLS) GNNBENCH_FUZZ_SEED=$(FUZZ_SEED) \
	  $(BIN)/python -m pytest -n0 -s -o timeout=0 -p no:cacheprovider tests/sanitize

test-gpu: install ## run the tests that need a GPU
	GNNBENCH_REQUIRE_GPU=1 $(BIN)/python -m pytest -m gpu

check: install ## lint, check the format, the types and the layers of packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(filter-out %.txt,$(NATIVE))

$(VENV)/.docs: constraints.txt pyproject.toml | $(VENV)/.installed
	$(PIP) install -q -c constraints.txt $$($(BIN)/python -c 'import tomllib as t; from pathlib import Path as P; \
	  print(*t.loads(P("pyproject.toml").read_text())["project"]["optional-dependencies"]["docs"])')
	touch $@

docs: install $(VENV)/.docs ## build the documentation site into build/site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "documentation: build/site/index.html"

format: install ## fix lint and format the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(filter-out %.txt,$(NATIVE))

# For a copy without .git: runs made there name this revision.
revision: install ## write the revision into a copy without .git
	$(BIN)/python -c 'from gnnbench.measure.machine import write_revision; print(write_revision())'

clean: ## remove the build folder and VENV
	rm -rf build $(VENV)
