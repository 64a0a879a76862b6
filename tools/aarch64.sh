#!/bin/sh
# Cross-builds the library for aarch64 and runs the C++ tests of its kernels under QEMU.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
sh tools/build.sh aarch64 -- lamella_kernel_tests
ctest=ctest
[ ! -x /usr/bin/ctest ] || ctest=/usr/bin/ctest
echo "lamella: C++ tests of the kernels under QEMU"
# Left out are two tests at which QEMU itself fails: a child of a process with threads ends in an
# assertion of its own, and its memory counts as the program's.
export GTEST_FILTER=-Parallel.WorksInAForkedChild:Parallel.AThreadEndsWhereMemoryIsExhausted
"$ctest" --test-dir build-aarch64 --output-on-failure -j "${JOBS:-$(nproc)}" -L kernels
