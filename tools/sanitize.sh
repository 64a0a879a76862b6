#!/bin/sh
# usage: tools/sanitize.sh [asan] [tsan]
# Builds with the address and undefined-behaviour sanitizers (asan), then with the thread sanitizer
# (tsan), and runs the C++ tests and a part of the Python tests under each. Both run even if the
# first fails. JOBS limits the parallel jobs.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
ctest=ctest
[ ! -x /usr/bin/ctest ] || ctest=/usr/bin/ctest
[ $# -gt 0 ] || set -- asan tsan
failed=0
asan_options=allocator_may_return_null=1:max_allocation_size_mb=8192

# Python itself is not instrumented, so the sanitizer's library is preloaded, with the C++ library
# whose throw it intercepts. Only the C++ tests check for leaks: the interpreter keeps memory.
run_python() {
  preset=$1
  library=$2
  options=$3
  shift 3
  LD_PRELOAD="$(g++ -print-file-name="$library") $(g++ -print-file-name=libstdc++.so.6)" \
    PYTHONPATH="$root/build-$preset/prefix/lib/python" PYTHONMALLOC=malloc \
    LAMELLA_BUILD="$root/build-$preset" \
    ASAN_OPTIONS="$options:detect_leaks=0" TSAN_OPTIONS="$options" \
    UBSAN_OPTIONS=print_stacktrace=1 LAMELLA_SANITIZED=$preset \
    .venv/bin/python -m pytest -q -p no:cacheprovider --capture=sys "$@" || failed=1
}

for preset in "$@"; do
  # One capability of vector code: the sanitizers read the same source in each.
  sh tools/build.sh "$preset" --native -- lamella_tests || exit 1
  echo "lamella: C++ tests ($preset)"
  # Memory that is refused is an error of the caller's, as without the sanitizer, which would hand
  # out more than the machine has.
  # Tests of programs in C count instructions or symbols of the release build, not of this one.
  # The fuzzers' programs have one thread.
  leave_out=""
  [ "$preset" != tsan ] || leave_out="-LE fuzz"
  # shellcheck disable=SC2086
  ASAN_OPTIONS=$asan_options \
    "$ctest" --test-dir "build-$preset" --output-on-failure -j "${JOBS:-$(nproc)}" \
    -E '^(include_rule|tree_rules|exported_symbols)$' $leave_out >"build-$preset/ctest.log" 2>&1 || {
    failed=1
    cat "build-$preset/ctest.log"
  }
  tail -n 5 "build-$preset/ctest.log" | sed '/^$/d'
  echo "lamella: Python tests ($preset)"
  case $preset in
    asan)
      run_python asan libasan.so "$asan_options" \
        tests/python/test_parser.py tests/python/test_indexing.py tests/python/test_views.py \
        tests/python/test_interop.py tests/python/test_dlpack.py \
        tests/python/test_factories.py tests/python/test_library.py \
        tests/python/test_autograd_graph.py tests/python/test_autograd_function.py \
        tests/python/test_autograd_function_life.py \
        tests/python/test_autograd_inplace.py tests/python/test_errors.py \
        tests/python/test_nn_ops.py tests/python/test_linalg.py tests/python/test_searching.py \
        tests/python/test_math_operators.py \
        tests/python/test_vmap.py tests/python/test_functionalize.py tests/python/test_trace.py \
        tests/python/test_kept_forms.py tests/python/test_int_mm.py tests/python/test_cdist.py \
        tests/python/test_attention.py tests/python/test_ordering.py tests/python/test_compile.py \
        tests/graph/test_hlo_python.py tests/graph/test_hlo_text.py \
        tests/graph/test_hlo_executor.py
      ;;
    tsan)
      # Locks of libraries that are not instrumented cannot be seen, so their races are not ours.
      run_python tsan libtsan.so ignore_noninstrumented_modules=1:halt_on_error=1 \
        tests/python/test_gil.py tests/python/test_library_custom_op.py
      ;;
  esac
  echo "lamella: kernels of GPUs ($preset)"
  sh tools/build.sh release -- cuda_standin "cuda_standin_$preset" || exit 1
  .venv/bin/python -m pytest -q -p no:cacheprovider tests/cuda/test_sanitized.py || failed=1
done
exit $failed
