#!/bin/sh
# usage: tools/check_headers.sh PREFIX
# Every header of an installed tree compiles alone without a warning, and abi.h is plain C99.
# The generated headers of operators come from one template and include one header each; if so, one
# source that includes all of them is compiled, which takes seconds instead of minutes for 700. The
# same holds for those under PyTorch's names, ATen/ops. Headers for pybind11 need Python's headers.
set -u
flags="-fsyntax-only -Wall -Wextra -Wno-unused-parameter -Werror"
python=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["include"])') || exit 1
include="-I $1/include -I $1/include/lamella_compat -isystem $python"
export flags include
echo '#include "lamella/abi/abi.h"' | ${CC:-cc} -std=c99 -pedantic $flags $include -x c - || exit 1
generated="$1/include/lamella/api/ops"
[ "$(cat "$generated"/*.h | grep '^#include' | sort -u)" = '#include "lamella/api/operator.h"' ] ||
  { echo "$generated: a header includes more than lamella/api/operator.h"; exit 1; }
named="$1/include/lamella_compat/ATen/ops"
[ "$(cat "$named"/*.h | grep '^#include' | sort -u)" = '#include <ATen/Functions.h>' ] ||
  { echo "$named: a header includes more than ATen/Functions.h"; exit 1; }
for header in "$generated"/*.h "$named"/*.h; do echo "#include \"$header\""; done |
  ${CXX:-c++} -std=c++20 $flags $include -x c++ - || exit 1
find "$1/include" \( -path "$generated" -o -path "$named" \) -prune -o \( -name '*.h' -o -name '*.hpp' \) -print | sort |
  xargs -P "${JOBS:-$(nproc)}" -I{} sh -c '
  echo "#include \"{}\"" | ${CXX:-c++} -std=c++20 $flags $include -x c++ - ||
    { echo "{}: does not compile alone"; exit 1; }'
