#!/bin/sh
# Format, static checks and the project's own rules. Every check runs; the exit status says whether
# all passed. CLANG_TIDY_FILES="a.cpp b.cpp" names other files for clang-tidy.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
bin=.venv/bin
failed=0
check() {
  label=$1
  shift
  if out=$("$@" 2>&1); then
    echo "ok      $label"
  else
    printf "%s\n" "$out" | tail -n 60
    echo "FAILED  $label"
    failed=1
  fi
}

sources() { git ls-files "$@" | while read -r file; do [ ! -f "$file" ] || echo "$file"; done; }

cxx=$(sources '*.h' '*.hpp' '*.cpp' '*.c')
check "clang-format" $bin/clang-format --dry-run --Werror $cxx
check "ruff" $bin/ruff check -q .
check "ruff format" $bin/ruff format -q --check .
check "table of rooms" $bin/python tools/rooms.py --check
check "include rule" $bin/python tools/check_includes.py
check "tree rules" $bin/python tools/check_tree.py
check "C ABI" $bin/python tools/check_abi.py build/prefix/lib/liblamella.so
check "reference" $bin/python tools/reference.py --check
check "public headers" sh tools/check_headers.sh build/prefix

# clang-tidy takes four seconds a file, so it checks only the sources that the last commit or the work
# tree changes, and two of each room. CLANG_TIDY_FILES=all checks all 400, which takes a quarter of an
# hour on two cores; none skips it.
tidy=${CLANG_TIDY_FILES:-$(
  {
    git diff --name-only HEAD~1 -- '*.cpp' 2>/dev/null | grep -E '^(codegen|lamella|python)/'
    for room in codegen lamella/abi lamella/bridge lamella/core lamella/cuda lamella/dispatch lamella/graph lamella/kernels \
      lamella/layers lamella/pjrt lamella/schema python/src python/src_hlo; do
      sources "$room/*.cpp" | head -n 2
    done
  } | sort -u | while read -r file; do [ ! -f "$file" ] || echo "$file"; done
)}
[ "$tidy" != none ] || tidy=
[ "$tidy" != all ] || tidy=$(sources 'codegen/*.cpp' 'lamella/*.cpp' 'python/*.cpp')
run_tidy() {
  # clang-tidy rejects options and precompiled headers that only GCC knows.
  mkdir -p build/clang-tidy
  sed -e 's/ -fno-gnu-unique//g' -e 's# -include [^ ]*cmake_pch[^ ]*##g' build/compile_commands.json >build/clang-tidy/compile_commands.json
  printf '%s\n' "$@" |
    xargs -P "${JOBS:-$(nproc)}" -n 1 $bin/clang-tidy -p build/clang-tidy --quiet 2>&1 |
    grep -E -A6 '(warning|error):' && return 1
  return 0
}
[ -z "$tidy" ] || check "clang-tidy" run_tidy $tidy

package=build/prefix/lib/python/lamella
if [ -d "$package" ]; then
  check "mypy" $bin/mypy --config-file pyproject.toml "$package"
fi
exit $failed
