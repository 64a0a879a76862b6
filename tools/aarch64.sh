#!/bin/sh
# Cross-builds the library for aarch64 and runs the C++ tests of kernels, tensors and dispatch under QEMU.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
sh tools/build.sh aarch64 -- lamella_tests
ctest=ctest
[ ! -x /usr/bin/ctest ] || ctest=/usr/bin/ctest
echo "lamella: C++ tests under QEMU"
"$ctest" --test-dir build-aarch64 --output-on-failure -j "${JOBS:-$(nproc)}" -L kernels
