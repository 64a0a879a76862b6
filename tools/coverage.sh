#!/bin/sh
# usage: tools/coverage.sh [ROOM]
# Builds with counters and runs the tests, or those of one folder of tests/ in C++, then prints which part
# of the lines of each room they ran. JOBS limits the parallel jobs.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
build=build-coverage
room=${1:-}
ctest=ctest
[ ! -x /usr/bin/ctest ] || ctest=/usr/bin/ctest
if [ -n "$room" ]; then
  sh tools/build.sh coverage --native --only -- "tests/$room/all" || exit 1
else
  sh tools/build.sh coverage --native -- lamella_tests || exit 1
fi
find $build -name '*.gcda' -delete
rm -f $build/python.json
failed=0
"$ctest" --test-dir "$build/tests/$room" --output-on-failure -j "${JOBS:-$(nproc)}" -Q -O "$root/$build/ctest.log" || failed=1
tail -n 3 $build/ctest.log | sed '/^$/d'
if [ -z "$room" ]; then
  PYTHONPATH="$root/$build/prefix/lib/python" LAMELLA_BUILD="$root/$build" .venv/bin/python -m pytest -q \
    -p no:cacheprovider -n "${JOBS:-$(nproc)}" --dist worksteal --cov=lamella \
    --cov-report="json:$build/python.json" tests || failed=1
fi
.venv/bin/python tools/coverage_table.py $build || failed=1
exit $failed
