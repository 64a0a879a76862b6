#!/bin/sh
# usage: tools/build.sh PRESET [--native] [--base | --only] [CMAKE_OPTION...] [-- NINJA_TARGET...]
# Configures build folder PRESET if need be, builds everything and the targets, and installs the tree
# under its prefix. Quiet unless something is wrong. JOBS limits the parallel jobs.
# --native: kernels for this machine alone; --base: the core alone, without programs, collectives and the
# families of kernels in liblamella_more.so. What an earlier call built is kept up to date all the same.
# --only: the targets alone, and nothing is installed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
preset=$1
shift
options=""
native=""
parts=all
while [ $# -gt 0 ] && [ "$1" != "--" ]; do
  case $1 in
    --native) native=-DLAMELLA_CAPABILITIES=native ;;
    --base) parts=lamella_base ;;
    --only) parts="" ;;
    -*) options="$options $1" ;;
    *)
      echo "tools/build.sh: expected --native, --base, --only, -DNAME=VALUE or -- before the targets, got $1" >&2
      exit 2
      ;;
  esac
  shift
done
[ $# -eq 0 ] || shift
case $preset in
  release) build=build ;;
  *) build=build-$preset ;;
esac
# What was built before, with all capabilities or all parts, stays so.
[ -z "$native" ] || grep -qs '^LAMELLA_CAPABILITIES:STRING=all' "$build/CMakeCache.txt" ||
  options="$options $native"
[ -z "$parts" ] || [ ! -f "$build/lib/liblamella_graph.so" ] || parts=all
# Debian's tools first: the same ones whatever else is on the PATH.
cmake=cmake
[ ! -x /usr/bin/cmake ] || cmake=/usr/bin/cmake
ninja=ninja
[ ! -x /usr/bin/ninja ] || ninja=/usr/bin/ninja

asked="$preset$options -DPython3_EXECUTABLE=$root/.venv/bin/python $root"
# Some tests are declared only if a Python package is installed, so new packages force a configure.
groups=$(cat "$root"/.venv/.installed-* 2>/dev/null | cksum)
if [ ! -f "$build/build.ninja" ] || [ "$(cat "$build/.asked" 2>/dev/null)" != "$asked" ] ||
  [ "$(cat "$build/.groups" 2>/dev/null)" != "$groups" ]; then
  echo "lamella: configuring $build"
  mkdir -p "$build"
  log=$build/configure.log
  # A cache of another tree, or of a tool that went away, cannot be reused.
  if [ -f "$build/.asked" ] && [ "$(cat "$build/.asked")" != "$asked" ]; then
    rm -f "$build/CMakeCache.txt" "$build/.asked"
  fi
  if ! "$cmake" --preset "$preset" -DCMAKE_MAKE_PROGRAM="$(command -v "$ninja")" \
    -DPython3_EXECUTABLE="$root/.venv/bin/python" $options >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
  echo "$asked" >"$build/.asked"
  echo "$groups" >"$build/.groups"
fi
echo "lamella: building${*:+ ($*)}"
log=$build/build.log
# On a terminal the log is shown as it grows, elsewhere only if something failed.
if [ -t 1 ]; then
  "$ninja" -C "$build" ${JOBS:+-j "$JOBS"} ${parts:+"$parts"} "$@"
else
  "$ninja" -C "$build" ${JOBS:+-j "$JOBS"} ${parts:+"$parts"} "$@" >"$log" 2>&1 || {
    grep -v -e '^\[[0-9]*/[0-9]*\]' -e '^ninja: Ent' -e '^-- ' "$log" | tail -n 100 >&2
    exit 1
  }
  # Warnings are shown even if the build succeeded.
  grep -v -e '^\[[0-9]*/[0-9]*\]' -e '^ninja: ' -e '^-- ' "$log" >&2 || true
fi
[ -n "$parts" ] || exit 0
"$cmake" --install "$build" >"$build/install.log" 2>&1 || {
  cat "$build/install.log" >&2
  exit 1
}
