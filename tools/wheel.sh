#!/bin/sh
# usage: tools/wheel.sh [PYTHON...|all] | --runtime
# Builds a wheel for each Python (by default that of .venv; all: each CPython from 3.9 to 3.14 that is
# on the PATH or was installed by pyenv or uv) into build/wheels, with the manylinux tag of the system
# that it needs and the libraries that it brings, and tests it in an empty environment and, as root, in
# an empty root. All share one build folder, which is kept: only the extension modules are compiled anew.
# --runtime: packs lamella-runtime of what `make build` has built, one wheel for all versions of Python, and
# runs its tests with those that are here.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
if [ "${1:-}" = --runtime ]; then
  sh tools/build.sh release
  .venv/bin/python -m pytest -q tests/bridge/test_runtime.py
  wheel=$(.venv/bin/python tools/runtime_wheel.py build/prefix build/wheels)
  echo "lamella: $wheel, $(du -h "$wheel" | cut -f 1)"
  exit
fi
[ $# -gt 0 ] || set -- .venv/bin/python

is_usable='import os, sys, sysconfig
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit("%d.%d" % sys.version_info[:2] != sys.argv[1] or not os.path.exists(header))'
if [ "$*" = all ]; then
  set --
  for version in 3.9 3.10 3.11 3.12 3.13 3.14; do
    found=""
    for python in "$(command -v "python$version" || true)" "$HOME/.pyenv/versions/$version".*/bin/python \
      "$(uv python find --no-project "$version" 2>/dev/null || true)"; do
      if [ -x "$python" ] && "$python" -c "$is_usable" "$version" 2>/dev/null; then found=$python; fi
    done
    if [ -n "$found" ]; then
      set -- "$@" "$found"
    else
      echo "lamella: no wheel for Python $version, which is not installed or has no headers" >&2
    fi
  done
fi
mkdir -p build/wheels/plain
# The same compilers whatever each Python was built with, so that objects serve all.
export CC="${CC:-cc}" CXX="${CXX:-c++}"
for python in "$@"; do
  echo "lamella: building the wheel for $("$python" --version)"
  rm -f build/wheels/plain/*.whl
  empty=$(mktemp -d)
  trap 'rm -rf "$empty"' EXIT
  "$python" -m venv "$empty/venv"
  CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} "$empty/venv/bin/python" -m pip wheel --quiet \
    --disable-pip-version-check --no-deps --wheel-dir build/wheels/plain . >build/wheels/build.log 2>&1 || {
    tail -n 60 build/wheels/build.log >&2
    exit 1
  }
  # LLVM and MPI are used where they are installed. All other libraries come with the wheel.
  PATH="$root/.venv/bin:$PATH" .venv/bin/auditwheel repair --exclude 'libLLVM*' --exclude 'libmpi*' \
    --wheel-dir build/wheels build/wheels/plain/lamella-*.whl >>build/wheels/build.log 2>&1 || {
    tail -n 60 build/wheels/build.log >&2
    exit 1
  }
  wheel=$(ls -t build/wheels/lamella-*.whl | head -n 1)
  "$empty/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps "$wheel"
  (cd "$empty" && "$empty/venv/bin/python" -I "$root/tools/wheel_smoke.py")
  if [ "$(id -u)" = 0 ]; then sh tools/empty_root.sh "$empty/venv/bin/python" "$wheel"; fi
  rm -rf "$empty"
  echo "lamella: $wheel, $(du -h "$wheel" | cut -f 1)"
done
