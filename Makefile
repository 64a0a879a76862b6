# make demo | test | bench | lint | sanitize | fuzz | coverage | aarch64 | wheel | gpu-bundle | reference | site: each installs what it needs, builds, and runs.
# `make test ROOM=kernels` tests one folder of tests/. JOBS=n limits parallel jobs; PYTHON=… chooses the interpreter (3.9 or newer).
# `make bench TOPIC` measures one topic: kernels, cpp, python, autograd, layers, graph, size, extensions, packages, distributed, bridge or jax.

PYTHON ?= python3
ROOT := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
VPY := $(ROOT).venv/bin/python
QUERY ?=
export QUERY

.PHONY: all build demo test bench lint sanitize fuzz coverage aarch64 wheel gpu-bundle release reference site format clean
all: build

# Debian packages and .venv with the groups a target needs; then the installed tree, build/prefix.
define prepare
	@cd $(ROOT) && sh tools/install_debian.sh tools/debian-packages.txt
	@cd $(ROOT) && sh tools/venv.sh "$(PYTHON)" $(1)
endef

# LLVM, without which programs run by rules instead of machine code.
define compiler
	@cd $(ROOT) && sh tools/install_debian.sh tools/debian-packages-compiler.txt
endef

# MPI, without which there are no jobs of many processes.
define mpi
	@cd $(ROOT) && sh tools/install_debian.sh tools/debian-packages-mpi.txt
endef

build:
	$(call prepare,build)
	@cd $(ROOT) && sh tools/build.sh release --native

demo:
	$(call prepare,build demo)
	@cd $(ROOT) && sh tools/build.sh release --native --base
	@cd $(ROOT) && $(VPY) examples/semantic_search/main.py

test:
	$(compiler)
	$(mpi)
	$(call prepare,build test demo)
	@cd $(ROOT) && sh tools/build.sh release -- $(or $(ROOM:%=tests/%/all),lamella_tests bench_dispatch)
	@cd $(ROOT) && sh tools/run_tests.sh $(ROOM)

bench:
	$(compiler)
	$(mpi)
	$(call prepare,build test bench)
	@cd $(ROOT) && sh tools/build.sh release -- lamella_bench
	@cd $(ROOT) && $(VPY) bench/run.py $(addprefix --only ,$(TOPIC))

# The words behind `bench` are topics of it.
ifeq (bench,$(firstword $(MAKECMDGOALS)))
TOPIC := $(wordlist 2,9,$(MAKECMDGOALS))
.PHONY: $(TOPIC)
$(TOPIC): bench
	@:
endif

lint:
	$(compiler)
	$(call prepare,build lint)
	@cd $(ROOT) && sh tools/build.sh release
	@cd $(ROOT) && sh tools/lint.sh

# The address, undefined-behaviour and thread sanitizers, over the C++ tests and a part of Python's.
sanitize:
	$(compiler)
	$(call prepare,build test)
	@cd $(ROOT) && sh tools/sanitize.sh

# Every operator with hostile arguments in guarded memory, and valid calls beside PyTorch.
fuzz:
	$(call prepare,build test)
	@cd $(ROOT) && sh tools/build.sh release
	@cd $(ROOT) && sh tools/fuzz.sh

# Which lines the tests run, as a table by room; `make coverage ROOM=schema` runs one folder of tests/.
coverage:
	$(compiler)
	$(mpi)
	$(call prepare,build test demo coverage)
	@cd $(ROOT) && sh tools/coverage.sh $(ROOM)

# A wheel for this Python, for each of PYTHONS="python3.9 python3.13", or for every CPython from 3.9 to
# 3.14 that is there (PYTHONS=all), in build/wheels, tried in an empty environment and an empty root.
wheel:
	$(compiler)
	$(call prepare,build wheel)
	@cd $(ROOT) && sh tools/wheel.sh $(PYTHONS)

# What `sh tools/gpu_check.sh` needs on a machine with a GPU, in build/gpu_bundle.tar.xz.
gpu-bundle:
	$(compiler)
	$(call prepare,build)
	@cd $(ROOT) && sh tools/build.sh release
	@cd $(ROOT) && sh tools/gpu_bundle.sh

# `make release VERSION=0.2.0`: version, changelog, wheels, source archive, checksums in build/release. With
# DRY_RUN=1 nothing is built, and the sources are as before at the end.
release:
	$(compiler)
	$(mpi)
	$(call prepare,build wheel)
	@cd $(ROOT) && PYTHONS="$(PYTHONS)" sh tools/release.sh $(VERSION) $(DRY_RUN:%=--dry-run)

# The library for aarch64, cross-built, and the tests of its kernels under an emulator.
aarch64:
	@cd $(ROOT) && sh tools/install_debian.sh tools/debian-packages-aarch64.txt
	$(call prepare,build)
	@cd $(ROOT) && sh tools/build.sh release
	@cd $(ROOT) && sh tools/aarch64.sh

# The C++ and Python reference as pages, in build/reference.
reference:
	@cd $(ROOT) && sh tools/install_debian.sh tools/debian-packages-reference.txt
	$(call prepare,build reference)
	@cd $(ROOT) && sh tools/build.sh release
	@cd $(ROOT) && sh tools/reference.sh

# The documentation as a site with search, in build/site.
site:
	$(call prepare,build docs)
	@cd $(ROOT) && sh tools/site.sh

format:
	$(call prepare,build lint)
	@cd $(ROOT) && git ls-files '*.h' '*.cpp' '*.c' | xargs .venv/bin/clang-format -i
	@cd $(ROOT) && .venv/bin/ruff format -q .

clean:
	@rm -rf $(ROOT)build $(ROOT)build-dev $(ROOT)build-clang $(ROOT)build-coverage $(ROOT)build-asan $(ROOT)build-tsan $(ROOT)build-aarch64 $(ROOT).venv
