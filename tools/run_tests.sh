#!/bin/sh
# Runs the C++ tests, then the Python tests, on what `make test` built. Both run even if the first
# fails.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
ctest=ctest
[ ! -x /usr/bin/ctest ] || ctest=/usr/bin/ctest
failed=0
echo "lamella: C++ tests"
log=$root/build/ctest.log
if "$ctest" --test-dir build --output-on-failure -j "${JOBS:-$(nproc)}" -Q -O "$log"; then
  tail -n 5 "$log" | sed '/^$/d'
else
  failed=1
  cat "$log"
fi
echo "lamella: Python tests"
# Each process runs consecutive files, so that shared fixtures are made once, and takes over tests of
# another process when it is done.
.venv/bin/python -m pytest -q -p no:cacheprovider -n "${JOBS:-$(nproc)}" --dist worksteal tests ||
  failed=1
exit $failed
