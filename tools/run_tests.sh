#!/bin/sh
# usage: tools/run_tests.sh [ROOM]
# Runs the C++ tests, then the Python tests, on what `make test` built. Both run even if the first
# fails. With ROOM (a folder of tests/) only what tests that room, within a minute.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
ctest=ctest
[ ! -x /usr/bin/ctest ] || ctest=/usr/bin/ctest
room=${1:-}
failed=0
tests=tests/$room
cxx=build/tests/$room
# The tests of a room that tests/python holds.
case $room in
  kernels) names="pointwise products matmul ordering searching indexing moving linalg factories math_operators nn_ops operator_errors" ;;
  layers) names="autograd_engine autograd_graph autograd_inplace conj functionalize trace vmap" ;;
  graph) names="compile compile_steps" ;;
  *) names="" ;;
esac
if [ -n "$room" ]; then
  [ -d "$tests" ] || {
    echo "lamella: expected ROOM to be a folder of tests/, got $room" >&2
    exit 2
  }
  ls "$tests"/test_*.py >/dev/null 2>&1 || tests=""
  for name in $names; do tests="$tests tests/python/test_$name.py"; done
fi
if [ -d "$cxx" ]; then
  echo "lamella: C++ tests"
  log=$root/build/ctest.log
  if "$ctest" --test-dir "$cxx" --output-on-failure -j "${JOBS:-$(nproc)}" -Q -O "$log"; then
    tail -n 5 "$log" | sed '/^$/d'
  else
    failed=1
    cat "$log"
  fi
fi
[ -n "$tests" ] || exit $failed
echo "lamella: Python tests"
# Each process takes a row of files, so that what their tests share is made once, and takes over
# tests from another when it is done.
.venv/bin/python -m pytest -q -p no:cacheprovider -n "${JOBS:-$(nproc)}" --dist worksteal $tests ||
  failed=1
exit $failed
