#!/bin/sh
# usage: tests/fuzz/run_parsers.sh SECONDS_PER_TARGET SEED
# Every parser under mutated input: the targets of tests/fuzz/parsers under libFuzzer, with the
# address and undefined-behaviour sanitizers, and Python's readers under tests/fuzz/mutate.py. All
# run even if one fails; inputs that fail are left in build-fuzz/findings.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
seconds=$1
seed=$2
failed=0
sh tools/install_debian.sh tools/debian-packages-fuzz.txt || exit 1
targets="schema yaml dlpack abi safetensors hlo_text hlo_run json stablehlo"
binaries=""
for target in $targets; do binaries="$binaries fuzz_$target"; done
# shellcheck disable=SC2086
sh tools/build.sh fuzz -- $binaries || exit 1
findings=$root/build-fuzz/findings
mkdir -p "$findings"
# Inputs ask for more memory than there is, and expect an error rather than the end.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export LAMELLA_LIBRARY_PATH=$root/build-fuzz/lib
for target in $targets; do
  binary=$(find build-fuzz/tests/fuzz -name "fuzz_$target" -type f | head -n 1)
  place=$root/build-fuzz/seeds-$target
  rm -rf "$place"
  FUZZ_SEEDS=$place "$binary" || failed=1
  log=$root/build-fuzz/fuzz-$target.log
  words=""
  [ ! -s "$place/words" ] || words="-dict=$place/words"
  # A program may take its time; one that takes 20 seconds of a small input hangs.
  # shellcheck disable=SC2086
  if "$binary" $words -seed="$seed" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 \
    -malloc_limit_mb=3000 -max_len=65536 -artifact_prefix="$findings/$target-" \
    "$place/corpus" >"$log" 2>&1; then
    echo "fuzz_$target: $(grep -Eo 'Done [0-9]+ runs' "$log" | tail -n 1), seed $seed, no findings"
  else
    failed=1
    tail -n 60 "$log" >&2
  fi
done
(cd "$findings" && "$root/.venv/bin/python" "$root/tests/fuzz/mutate.py" --seed "$seed" \
  --seconds "$seconds") || failed=1
exit $failed
