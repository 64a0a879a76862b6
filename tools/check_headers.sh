#!/bin/sh
# usage: tools/check_headers.sh PREFIX
# Every header of an installed tree compiles alone without a warning, and abi.h is plain C99.
# One source includes all those that only include others, which takes seconds instead of minutes, and
# the generated headers of operators, which come from one template and include one header each, also
# under PyTorch's names, ATen/ops. Headers for pybind11 need Python's headers; xla/ffi/ffi_api.h needs
# jaxlib's and is left out, and so are those of CUDA where its own are not installed.
set -u
flags="-fsyntax-only -Wall -Wextra -Wno-unused-parameter -Werror"
python=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["include"])') || exit 1
include="-I $1/include -I $1/include/lamella_compat -isystem $python"
cuda=${CUDA_HOME:-/usr/local/cuda}/include
without=/cuda/
if [ -e "$cuda/cuda_runtime_api.h" ]; then
  include="$include -isystem $cuda"
  without=/no_such_folder/
fi
export flags include
echo '#include "lamella/abi/abi.h"' | ${CC:-cc} -std=c99 -pedantic $flags $include -x c - || exit 1
generated="$1/include/lamella/api/ops"
[ "$(cat "$generated"/*.h | grep '^#include' | sort -u)" = '#include "lamella/api/operator.h"' ] ||
  { echo "$generated: a header includes more than lamella/api/operator.h"; exit 1; }
named="$1/include/lamella_compat/ATen/ops"
[ "$(cat "$named"/*.h | grep '^#include' | sort -u)" = '#include <ATen/Functions.h>' ] ||
  { echo "$named: a header includes more than ATen/Functions.h"; exit 1; }
headers=$(find "$1/include" \( -path "$generated" -o -path "$named" \) -prune -o \( -name '*.h' -o -name '*.hpp' \) ! -name ffi_api.h -print | grep -v "lamella_compat/.*$without" | sort)
rest=$(grep -lvE '^(//.*|#pragma once|#include .*|)$' $headers)
for header in "$generated"/*.h "$named"/*.h $(printf '%s\n' $headers $rest | sort | uniq -u); do
  echo "#include \"$header\""
done | ${CXX:-c++} -std=c++20 $flags $include -x c++ - || exit 1
printf '%s\n' $rest | xargs -P "${JOBS:-$(nproc)}" -I{} sh -c '
  echo "#include \"{}\"" | ${CXX:-c++} -std=c++20 $flags $include -x c++ - ||
    { echo "{}: does not compile alone"; exit 1; }'
