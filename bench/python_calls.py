"""Small calls from Python: nanoseconds of one call, medians over repeats of hot loops.

Usage: python_calls.py lamella|torch|numpy|tvm_ffi [path of libbench_custom.so]
Prints one JSON object a line.
"""

from __future__ import annotations

import json
import statistics
import sys
import timeit
from typing import Any

CALLS, REPEATS = 20_000, 41


def measure(statement: str, names: dict[str, Any]) -> float:
    timer = timeit.Timer(statement, globals=names)
    timer.timeit(CALLS)
    return statistics.median(timer.timeit(CALLS) / CALLS * 1e9 for _ in range(REPEATS))


def report(row: str, statement: str, names: dict[str, Any]) -> None:
    print(json.dumps({"row": row, "ns": round(measure(statement, names), 1)}), flush=True)


def tensors(module: Any) -> dict[str, Any]:
    """The operands that all modules share; NumPy spells them the same way."""
    names: dict[str, Any] = {"m": module}
    for size in (1, 64):
        names[f"a{size}"] = module.ones(size, dtype=module.float32)
        names[f"b{size}"] = module.ones(size, dtype=module.float32)
        names[f"o{size}"] = module.empty(size, dtype=module.float32)
    names["matrix"] = module.ones((4, 4), dtype=module.float32)
    return names


def shared_rows(names: dict[str, Any], shape: str) -> None:
    for size in (1, 64):
        label = "1 element" if size == 1 else f"{size} elements"
        report(f"add(a, b), {label}", f"m.add(a{size}, b{size})", names)
        report(f"a + b, {label}", f"a{size} + b{size}", names)
        report(f"a + 1.5, {label}", f"a{size} + 1.5", names)
        report(f"add(out=), {label}", f"m.add(a{size}, b{size}, out=o{size})", names)
    report(
        "transpose",
        "matrix.transpose(1, 0)" if shape == "numpy" else "matrix.transpose(0, 1)",
        names,
    )
    report("a[1:3]", "a64[1:3]", names)
    report("reshape", "a64.reshape(8, 8)", names)
    report("empty(4)", "m.empty(4)", names)
    report("sum", "a64.sum()", names)


def main() -> None:
    kind = sys.argv[1]
    if kind == "numpy":
        import numpy

        shared_rows(tensors(numpy), kind)
    elif kind == "torch":
        import torch

        names = tensors(torch)
        shared_rows(names, kind)
        library = torch.library.Library("bench_py", "DEF")
        library.define("noop(Tensor self) -> Tensor")
        library.define("add(Tensor self, Tensor other) -> Tensor")
        library.impl("noop", lambda self: self, "CPU")
        library.impl("add", torch.add, "CPU")
        names["ops"] = torch.ops.bench_py
        report("custom no-op", "ops.noop(a1)", names)
        report("custom add", "ops.add(a1, b1)", names)
    elif kind == "tvm_ffi":
        import tvm_ffi

        # Without an argument: the least that a call can cost there.
        report("custom no-op", "f()", {"f": tvm_ffi.get_global_func("testing.nop")})
    elif kind == "lamella":
        import lamella

        names = tensors(lamella)
        shared_rows(names, kind)
        lamella.load_library(sys.argv[2])
        names["noop"] = lamella.ops.bench_custom.noop
        names["custom_add"] = lamella.ops.bench_custom.add
        names["add"] = lamella.add
        report("custom no-op", "noop(a1)", names)
        report("custom add", "custom_add(a1, b1)", names)
        report("built-in add, bound", "add(a1, b1)", names)
    else:
        sys.exit(f"unknown kind '{kind}'")


if __name__ == "__main__":
    main()
