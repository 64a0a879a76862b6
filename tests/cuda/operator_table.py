"""Every operator of op_db on "cuda" against the CPU: values, and gradients.

`python tests/cuda/operator_table.py [ENTRY ...]` runs all entries, or those named, prints what
differs, and ends with the number of operators that have kernels of the device (operator_count.py).
checks_table.py runs a sample of the entries in the tests.
"""

from __future__ import annotations

import hashlib
import itertools
import pathlib
import re
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

import operator_count
import torch
from op_db import PRESENT
from op_db_mirror import Absent, fresh, mapped, tensors_in, to_lamella

import lamella

LARGEST = 3000  # elements of all tensors of a sample
DTYPES = (torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64, torch.uint8)
# (relative, absolute), by the bytes of a real number; sums have another order on the device.
TOLERANCES = {2: (3e-2, 3e-2), 4: (2e-4, 2e-4), 8: (1e-6, 1e-6)}
# Entries that this comparison does not fit, and why.
UNFIT = {
    "as_strided.partial_views": "it reads memory beside the tensor, which is not copied along",
    "kthvalue": "of equal elements any index is right",
    "tensor_split": "it takes indices on the CPU alone",
}
# Entries whose values are drawn at random, which a device does from streams of its own.
DRAWN = re.compile(
    r"bernoulli|cauchy|dropout|exponential|geometric|log_normal|multinomial|^normal|randn?|uniform"
)

ENTRIES = [entry for entry in PRESENT if entry.name not in UNFIT]


def is_sampled(name: str, share: int) -> bool:
    """Whether an entry is among one of `share`, by its name."""
    return hashlib.sha256(name.encode()).digest()[0] % share == 0


def on_cuda(value):
    return mapped(
        value,
        lambda t: t.detach().cuda().requires_grad_(t.requires_grad),
        lamella.Tensor,
    )


def samples(entry, dtype, count):
    wants_grad = entry.info.supports_autograd and dtype == torch.float32
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        try:
            made = entry.info.sample_inputs("cpu", dtype, requires_grad=wants_grad)
            made = list(itertools.islice(made, 8))
        except Exception:  # noqa: BLE001  # PyTorch makes no samples of the dtype
            return []
    parts = [[one.input, one.args, one.kwargs] for one in made]
    small = [
        one
        for one, part in zip(made, parts)
        if sum(t.numel() for t in tensors_in(part, torch.Tensor)) <= LARGEST
    ]
    return small[:: max(1, len(small) // count)][:count]


def difference(what: str, got: lamella.Tensor, expected: lamella.Tensor, values: bool) -> str:
    """What differs between tensors; empty if nothing does."""
    got = got.detach().cpu()
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{what}: expected {expected.dtype} {expected.shape}, got {got.dtype} {got.shape}"
    if not values or got.dtype == lamella.complex32:
        return ""
    size = expected.itemsize // 2 if expected.is_complex() else expected.itemsize
    exact = not (expected.is_floating_point() or expected.is_complex())
    relative, absolute = (0, 0) if exact else TOLERANCES.get(size, (0, 0))
    wide = lamella.complex128 if expected.is_complex() else lamella.float64
    wide = expected.dtype if exact else wide
    a, b = got.to(wide), expected.detach().to(wide)
    if lamella.allclose(a, b, rtol=relative, atol=absolute, equal_nan=True):
        return ""
    return f"{what}: expected {b}, got {a}"


def gradients(result, tensors):
    """Of the sum of the results, with respect to the tensors."""
    total = [
        t.abs().sum() if t.is_complex() else t.sum()
        for t in tensors_in(result, lamella.Tensor)
        if t.requires_grad
    ]
    if not total:
        return []
    return lamella.autograd.grad(sum(total[1:], total[0]), tensors, allow_unused=True)


def failure(entry, dtypes=DTYPES, count: int = 2) -> str:
    """The first difference between an entry on the device and on the CPU."""
    function = entry.function()
    for dtype in dtypes:
        if dtype not in entry.info.dtypes:
            continue
        for sample in samples(entry, dtype, count):
            call = fresh(to_lamella([sample.input, list(sample.args), dict(sample.kwargs)]))
            there = on_cuda(call)
            sides = []
            for first, args, kwargs in (call, there):
                lamella.manual_seed(1)
                try:
                    result = function(first, *args, **kwargs)
                except Exception as error:  # noqa: BLE001
                    sides.append((type(error), []))
                    problem = error
                    continue
                leaves = [
                    t for t in tensors_in([first, args, kwargs], lamella.Tensor) if t.requires_grad
                ]
                try:
                    found = gradients(result, leaves)
                except Exception as error:  # noqa: BLE001
                    found = [type(error)]
                sides.append((result, found))
            what = f"{str(dtype)[6:]}"
            here, device = sides
            if isinstance(here[0], type) or isinstance(device[0], type):
                if here[0] is not device[0]:
                    return f"{what}: one of them fails: {problem}"
                continue
            for part, mine, theirs in zip(("value", "gradient"), device, here):
                ours = tensors_in(mine, lamella.Tensor)
                expected = tensors_in(theirs, lamella.Tensor)
                if len(ours) != len(expected):
                    return f"{what}, {part}: expected {len(expected)} tensors, got {len(ours)}"
                for got, wanted in zip(ours, expected):
                    values = entry.has_values and not DRAWN.search(entry.name)
                    said = difference(f"{what}, {part}", got, wanted, values)
                    if said:
                        return said
    return ""


def main(arguments: list[str]) -> int:
    bad = 0
    entries = [entry for entry in ENTRIES if not arguments or entry.name in arguments]
    lamella.cuda.reset_fallbacks()
    for entry in entries:
        try:
            said = failure(entry)
        except Absent:
            continue
        if said:
            bad += 1
            print(f"{entry.name}: {said}", flush=True)
    print(f"{len(entries)} entries, {bad} differ; {operator_count.said()}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
