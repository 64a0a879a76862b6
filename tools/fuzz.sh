#!/bin/sh
# usage: tools/fuzz.sh [SEED]
# Calls every operator with hostile arguments, 400 calls an overload, in every dtype and on mixed
# devices, then with valid ones beside PyTorch; passes objects with lying methods to every public
# Python function; compiles 1,000 functions that read random state, which changes between calls; runs
# 20,000 programs of random HLO as compiled code, with LLVM and without, and compares with the
# evaluator, and functions of each element at special values; gives every parser mutated input for a
# minute. Without SEED a new seed is chosen; it is printed. All parts run even if one fails.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
seed=${1:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
jobs=${JOBS:-$(nproc)}
failed=0
fuzz() {
  .venv/bin/python tests/fuzz/operators.py --seed "$seed" --jobs "$jobs" "$@" || failed=1
}
echo "lamella: fuzzing operators, seed $seed"
fuzz --calls 400
echo "lamella: fuzzing operators in every dtype, on mixed devices, at extremes"
fuzz --calls 320 --sweep --no-leaks
for layer in autograd vmap functionalize trace; do
  echo "lamella: fuzzing operators under $layer"
  fuzz --calls 60 --layer $layer --no-leaks
done
echo "lamella: valid calls beside PyTorch"
# Under seed 0 each difference is explained in tests/fuzz/known_differences.txt; differences under a
# new seed are only printed.
fuzz --calls 8 --seed 0 --compare
fuzz --calls 20 --compare --allow difference
echo "lamella: throwing objects at Python's functions"
.venv/bin/python tests/fuzz/objects.py --calls 60 --seed "$seed" || failed=1
echo "lamella: compiled functions that read random state"
.venv/bin/python tests/fuzz/reads.py --count 1000 --seed "$seed" || failed=1
echo "lamella: random programs of HLO, compiled with LLVM and without"
.venv/bin/python tests/fuzz/programs.py --seed "$seed" --count 20000 --jobs "$jobs" || failed=1
echo "lamella: mutating what parsers read"
sh tests/fuzz/run_parsers.sh 60 "$seed" || failed=1
exit $failed
