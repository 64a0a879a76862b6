#!/bin/sh
# usage: tools/check_headers.sh PREFIX
# Every header of an installed tree compiles alone without a warning, and abi.h is plain C99.
set -u
flags="-fsyntax-only -Wall -Wextra -Wno-unused-parameter -Werror"
include="-I $1/include -I $1/include/lamella_compat"
export flags include
echo '#include "lamella/abi/abi.h"' | ${CC:-cc} -std=c99 -pedantic $flags $include -x c - || exit 1
find "$1/include" -name '*.h' -o -name '*.hpp' | sort | xargs -P "${JOBS:-$(nproc)}" -I{} sh -c '
  echo "#include \"{}\"" | ${CXX:-c++} -std=c++20 $flags $include -x c++ - ||
    { echo "{}: does not compile alone"; exit 1; }'
