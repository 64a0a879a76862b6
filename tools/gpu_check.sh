#!/bin/sh
# usage: tools/gpu_check.sh [OUT]
# Proves the devices "cuda" on a machine with a GPU, from a built tree or an unpacked `make gpu-bundle`.
# Each step has a limit of its own, and its output is in OUT/STEP.txt (default: build/gpu_check) as soon
# as it is there; OUT/table.md is the summary. GPU_CHECK_SECONDS (540) limits all of them together.
# Libraries that build/gpu/lib has are found before the system's: a machine with a GPU may lack OpenBLAS.
# With LAMELLA_CUDA_DRIVER=build/tests/cuda/libcuda_standin.so it runs without a GPU.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
out=${1:-build/gpu_check}
mkdir -p "$out"
python=${PYTHON:-.venv/bin/python}
[ -x "$python" ] || python=python3
PYTHONPATH=build/prefix/lib/python${PYTHONPATH:+:$PYTHONPATH}
LD_LIBRARY_PATH=$root/build/prefix/lib:$root/build/gpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PYTHONPATH LD_LIBRARY_PATH
end=$(($(date +%s) + ${GPU_CHECK_SECONDS:-540}))
table=$out/table.md
failed=0

card=$("$python" -c 'import lamella; print(lamella.cuda.get_device_name() if lamella.cuda.is_available() else lamella.cuda.why_unavailable())' 2>&1 | tail -n 1)
{
  echo "$(date -u +%Y-%m-%d), $card"
  echo
  echo "| step | result | seconds |"
  echo "|---|---|---|"
} >"$table"

# step NAME SECONDS COMMAND...: the last line of the output is the result.
step() {
  name=$1
  limit=$2
  shift 2
  left=$((end - $(date +%s)))
  [ "$left" -ge "$limit" ] || limit=$left
  if [ "$limit" -lt 5 ]; then
    echo "| $name | no time was left | 0 |" >>"$table"
    failed=1
    return
  fi
  begin=$(date +%s)
  timeout "$limit" "$@" >"$out/$name.txt" 2>&1
  status=$?
  result=$(tail -n 1 "$out/$name.txt" | tr '|' '/')
  [ $status -ne 124 ] || result="longer than $limit s; $result"
  [ $status -eq 0 ] || {
    failed=1
    result="FAILED ($status): $result"
  }
  echo "| $name | $result | $(($(date +%s) - begin)) |" >>"$table"
}

step conformance 60 "$python" -m lamella.conformance build/prefix/lib/liblamella_cuda.so --device cuda
step operators 100 "$python" tests/cuda/gpu_operators.py
step programs 50 "$python" tests/cuda/gpu_programs.py
step graphs 40 "$python" tests/cuda/gpu_graphs.py
step random 30 "$python" tests/cuda/gpu_random.py
step timings 120 "$python" tests/cuda/gpu_timings.py
step attention 40 "$python" tests/cuda/gpu_attention.py
step sort 40 "$python" tests/cuda/gpu_sort.py
if [ -x build/tests/seeds/seeds_custom_call_cuda_test ] && [ -z "${LAMELLA_CUDA_DRIVER:-}" ]; then
  step guide 20 build/tests/seeds/seeds_custom_call_cuda_test
fi
[ -n "${LAMELLA_CUDA_DRIVER:-}" ] || step extensions 60 "$python" tests/cuda/gpu_extensions.py
step nccl 30 "$python" tests/cuda/gpu_nccl.py
step count 20 "$python" tests/cuda/operator_count.py
if "$python" -c "import torch.testing._internal.common_methods_invocations" 2>/dev/null; then
  step table 100 "$python" tests/cuda/operator_table.py
fi
if [ -n "$(command -v compute-sanitizer)" ] && [ -z "${LAMELLA_CUDA_DRIVER:-}" ]; then
  step sanitizer 60 compute-sanitizer --report-api-errors no --error-exitcode 3 "$python" tests/cuda/gpu_operators.py --few
fi
cat "$table"
exit $failed
