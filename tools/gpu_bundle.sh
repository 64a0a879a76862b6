#!/bin/sh
# usage: tools/gpu_bundle.sh [FILE]
# Packs what tools/gpu_check.sh needs on a machine with a GPU into FILE (default:
# build/gpu_bundle.tar.xz): the installed libraries and package, for this Python and for each of
# GPU_PYTHONS (default: a python3.12 that has headers), libraries that the machine may lack, and the checks.
# There: tar -xf gpu_bundle.tar.xz && PYTHON=python3 sh tools/gpu_check.sh
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
file=${1:-build/gpu_bundle.tar.xz}
if [ -z "${GPU_PYTHONS+set}" ]; then
  for python in python3.12 "$HOME"/.pyenv/versions/3.12.*/bin/python; do
    "$python" -c 'import os, sys, sysconfig
sys.exit(sys.version_info[:2] != (3, 12) or not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))' \
      2>/dev/null && GPU_PYTHONS=$python
  done
fi
modules=""
for python in ${GPU_PYTHONS:-}; do
  folder=build/gpu/$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
  .venv/bin/python tools/gpu_extensions.py "$python" "$folder"
  modules="$modules $folder/_C.*.so $folder/_hlo.*.so"
done
# Libraries of the system that liblamella_blas.so, liblamella_lapack.so and liblamella_compiler.so link.
rm -rf build/gpu/lib
mkdir -p build/gpu/lib
for library in build/prefix/lib/liblamella_blas.so build/prefix/lib/liblamella_lapack.so; do
  [ ! -e $library ] || ldd $library
done | awk '$3 ~ /lib(dnnl|openblas|blas|lapack|gfortran|quadmath|gomp|OpenCL)/ { print $1, $3 }' | sort -u |
  while read -r name path; do
    cp -L "$path" "build/gpu/lib/$name"
  done
find build/prefix/lib \( -name '__pycache__' -o -path build/prefix/lib/cmake -o -name '*.a' \) -prune \
  -o \( -type f -o -type l \) -print >build/gpu_bundle.list
for path in build/gpu/lib build/gpu/packages build/prefix/include build/tests/seeds/seeds_custom_call_cuda_test \
  build/tests/seeds/libseeds_custom_call_cuda.so; do
  [ ! -e $path ] || find $path \( -type f -o -type l \) -print
done >>build/gpu_bundle.list
for path in tools/gpu_check.sh tests/cuda/gpu_*.py tests/cuda/operator_*.py tests/cuda/test_extensions.py \
  tests/python/op_db*.py tests/python/op_db_known.txt; do
  echo "$path"
done >>build/gpu_bundle.list
for path in $modules; do
  echo "$path"
done >>build/gpu_bundle.list
XZ_OPT="-2 -T0" tar -cJf "$file" --transform 's,^build/gpu/python[0-9.]*/,build/prefix/lib/python/lamella/,' \
  -T build/gpu_bundle.list
bytes=$(stat -c %s "$file")
[ "$bytes" -le 60000000 ] || {
  echo "tools/gpu_bundle.sh: expected at most 60 MB, got $bytes bytes" >&2
  exit 1
}
echo "lamella: $file, $((bytes / 1000000)) MB"
