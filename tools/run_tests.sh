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
"$ctest" --test-dir build --output-on-failure --progress -j "${JOBS:-$(nproc)}" ||
  failed=1
echo "lamella: Python tests"
.venv/bin/python -m pytest -q -p no:cacheprovider tests || failed=1
exit $failed
