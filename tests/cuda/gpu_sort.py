"""Sorting on "cuda" beside the CPU, and its times beside PyTorch's, for tools/gpu_check.sh."""

from __future__ import annotations

import math
import sys

from gpu_timings import HEAD, STANDS_IN, best, pytorch_with_cuda, row, value

import lamella

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64")
DTYPES += ("float16", "bfloat16", "float32", "float64")
SIZES = [(1, 1), (3, 1000), (2, 5000), (2, 70_001), (40, 9000)] + (
    [] if STANDS_IN else [(1, 3_000_001)]
)
# What is sorted, its dtype, lines and the length of one.
TIMED = [
    ("sort", "float32", 1, 25_000_000),
    ("sort", "int64", 1, 25_000_000),
    ("sort", "bfloat16", 1, 25_000_000),
    ("sort", "float64", 1, 25_000_000),
    ("sort", "float32", 100, 250_000),
    ("sort", "float32", 5000, 5000),
    ("sort", "float32", 100_000, 250),
    ("argsort", "int32", 1, 25_000_000),
    ("unique", "int64", 1, 25_000_000),
    ("topk", "float32", 1, 25_000_000),
    ("randperm", "int64", 1, 25_000_000),
]


def differences() -> list[str]:
    """The cases that are not sorted as on the CPU, by values or by indices."""
    found = []
    lamella.manual_seed(0)
    for name in DTYPES:
        dtype = getattr(lamella, name)
        for lines, length in SIZES:
            x = (lamella.randn(lines, length) * 50).to(dtype)
            if dtype.is_floating_point:
                x[:, ::7] = math.nan
                x[:, 1::7] = -0.0
                x[:, 2::7] = 0.0
            for descending in (False, True):
                order = {"stable": True, "descending": descending}
                expected, got = x.sort(**order), x.cuda().sort(**order)
                same = expected.indices.equal(got.indices.cpu()) and expected.values.nan_to_num(
                    1, 2, 3
                ).equal(got.values.cpu().nan_to_num(1, 2, 3))
                if not same:
                    found.append(f"{name} {lines} x {length} {'descending' if descending else ''}")
    return found


def speed(library, what: str, dtype: str, lines: int, length: int) -> float:
    """10⁹ elements in a second."""
    if STANDS_IN:
        lines, length = min(lines, 2), min(length, 5000)
    x = (library.randn(lines, length, device="cuda") * 1e4).to(getattr(library, dtype))
    x = x if lines > 1 else x[0]
    calls = {
        "sort": x.sort,
        "argsort": x.argsort,
        "unique": x.unique,
        "topk": lambda: x.topk(length // 10),
        "randperm": lambda: library.randperm(length, device="cuda"),
    }
    repeats = 1 if STANDS_IN else 3
    return 1e-9 * lines * length / best(calls[what], library.cuda.synchronize, repeats)


def main() -> int:
    wrong = differences()
    for text in wrong:
        print("differs:", text, flush=True)
    print(HEAD, flush=True)
    torch = pytorch_with_cuda()
    for case in TIMED:
        what, dtype, lines, length = case
        mine = value(lambda c=case: speed(lamella, *c))
        other = math.nan if torch is None else value(lambda c=case: speed(torch, *c))
        print(row(f"{what}, {dtype}, {lines} × {length:,}, 10⁹/s", mine, other), flush=True)
    print(f"{2 * len(DTYPES) * len(SIZES)} cases, {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
