#!/bin/sh
# usage: tools/gpu_bundle.sh [FILE]
# Packs what tools/gpu_check.sh needs on a machine with a GPU and the same version of Python into FILE
# (default: build/gpu_bundle.tar.xz): the installed libraries and package, and the checks.
# There: tar -xf gpu_bundle.tar.xz && PYTHON=python3 sh tools/gpu_check.sh
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
file=${1:-build/gpu_bundle.tar.xz}
find build/prefix/lib \( -name '__pycache__' -o -path build/prefix/lib/cmake -o -name '*.a' \) -prune \
  -o \( -type f -o -type l \) -print >build/gpu_bundle.list
for path in tools/gpu_check.sh tests/cuda/gpu_operators.py tests/cuda/gpu_timings.py; do
  echo "$path" >>build/gpu_bundle.list
done
XZ_OPT=-2 tar -cJf "$file" -T build/gpu_bundle.list
bytes=$(stat -c %s "$file")
[ "$bytes" -le 60000000 ] || {
  echo "tools/gpu_bundle.sh: expected at most 60 MB, got $bytes bytes" >&2
  exit 1
}
echo "lamella: $file, $((bytes / 1000000)) MB"
