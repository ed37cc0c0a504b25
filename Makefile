# The front door. Each target sets up what it needs; `make help` lists them.
.DEFAULT_GOAL := build
JOBS ?= $(shell nproc)
VENV := $(or $(CHUTE_VENV),$(CURDIR)/.venv)
SOURCES = $(shell git ls-files 'src/*.cpp' 'src/*.h' 'include/*.h' 'bench/*.cpp' 'python/*.cpp')

.PHONY: build demo test generated bench arm fuzz format format-check tidy docs clean help

build: ## build the release executable, build/release/chute
	@tools/bootstrap --build-only
	@cmake --preset release > /dev/null
	@cmake --build --preset release -j$(JOBS)

demo: ## convert, verify, run and compare the models under examples/
	@tools/bootstrap
	@$(MAKE) --no-print-directory build
	@CHUTE=build/release/chute $(VENV)/bin/python tools/demo

test: ## everything that CI checks; one stage: tools/run-tests tree|unit|text|e2e|corpus|asan|fuzz|scale
	@tools/bootstrap
	@tools/run-tests

generated: ## 50 random programs of every operator against PyTorch; SEED=n for other ones, OPERATORS="…" for some (test/e2e/generated_operators.py)
	@tools/bootstrap
	@cmake --preset dev > /dev/null && cmake --build --preset dev -j$(JOBS) --target chute
	@$(VENV)/bin/python test/e2e/generated_operators.py --jobs $(JOBS) --seed $(or $(SEED),0) $(OPERATORS)

bench: ## run the micro-benchmarks, then chute beside its peers into bench/results.md (an hour; BENCH="convert --no-peers")
	@tools/bootstrap
	@cmake --preset bench > /dev/null
	@cmake --build --preset bench -j$(JOBS)
	@for b in build/bench/*_bench; do [ ! -x $$b ] || $$b || exit 1; done
	@$(VENV)/bin/python bench/run.py $(BENCH)

arm: ## networks that ExecuTorch's quantizer made, to TOSA, Ethos-U and .pte (installs ExecuTorch, 2 GB)
	@tools/bootstrap --arm
	@cmake --preset dev > /dev/null
	@cmake --build --preset dev -j$(JOBS) --target chute
	@cd test/e2e && PATH=$(CURDIR)/build/bench/venv-arm/bin:$$PATH python -m pytest -q test_tosa_models.py test_executorch.py test_ethosu.py test_pte.py

fuzz: ## fuzz every target for FUZZ_SECONDS (default 600) each
	@tools/bootstrap
	@CHUTE_FUZZ_SECONDS=$${FUZZ_SECONDS:-600} tools/run-tests fuzz

format: ## reformat every C++ source
	@clang-format-19 -i $(SOURCES)

format-check: ## fail when a source is not formatted
	@clang-format-19 --dry-run -Werror $(SOURCES)

tidy: ## clang-tidy on the files that differ from main (all of them: make tidy BASE=)
	@cmake --preset dev > /dev/null
	@tools/tidy $(BASE)

docs: build ## regenerate the reference pages that the executable itself describes
	@tools/docs build/release/chute

clean: ## remove every build folder
	@rm -rf build

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14
