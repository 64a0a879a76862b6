"""Compares a compiled program's results with those of the reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np

import lamella
from lamella import hlo

# How far a number may lie from the evaluator's: in parts of the largest of its array, or of 1.
# Integers and booleans are equal.
TOLERANCES = {
    "bfloat16": 2e-2,
    "float16": 4e-3,
    "float32": 5e-5,
    "complex64": 5e-5,
    "float64": 1e-11,
    "complex128": 1e-11,
}
Results = list[Any]


def to_numpy(tensor: Any) -> np.ndarray:
    return (tensor.float() if tensor.dtype == lamella.bfloat16 else tensor).numpy()


def between(got: Results, expected: Results, text: str = "") -> str | None:
    """The difference between results, or None. `text`: the program's."""
    for n, (mine, wanted) in enumerate(zip(got, expected)):
        if mine.dtype != wanted.dtype or mine.shape != wanted.shape:
            return f"result {n}: expected {wanted.dtype} {wanted.shape}, got {mine.dtype}"
        kind = str(wanted.dtype).split(".")[-1]
        a, b = to_numpy(mine), to_numpy(wanted)
        if kind not in TOLERANCES:
            if not np.array_equal(a, b):
                return f"result {n}: expected {b}, got {a}"
            continue
        finite = np.abs(b[np.isfinite(b)])
        bound = TOLERANCES[kind] * (max(1.0, float(finite.max())) if finite.size else 1.0)
        if " fft(" in text:
            # Each element of a transform is a sum of all: how infinities meet in it, and whether
            # they leave NaN, is the order's. The evaluator multiplies NaN by each root; kernels add
            # it where the root is 1.
            lost = ~np.isfinite(b)
            a, b = np.where(lost, 0, a), np.where(lost, 0, b)
        # The parts apart, since the difference of two complex infinities is NaN; a number with NaN
        # in one part may have anything in the other.
        if np.iscomplexobj(b):
            both = np.isnan(a) & np.isnan(b)
            a, b = np.where(both, 0, a), np.where(both, 0, b)
        a, b = (np.stack([x.real, x.imag]) if np.iscomplexobj(x) else x for x in (a, b))
        if not np.allclose(a, b, rtol=0, atol=bound, equal_nan=True):
            return f"result {n}: expected {b}, got {a}"
    return None


def difference(text: str, arguments: list[Any]) -> str | None:
    """The difference between both results; None if they are equal."""
    return between(hlo.compile(text)(*arguments), hlo.evaluate(text, *arguments), text)


def for_numbers_of_threads(program: Any, arguments: list[Any]) -> list[Results]:
    """The results of a compiled program with 1, 2, 3 and 8 threads."""
    before, found = lamella.get_num_threads(), []
    try:
        for count in (1, 2, 3, 8):
            lamella.set_num_threads(count)
            found.append(program(*arguments))
    finally:
        lamella.set_num_threads(before)
    return found


def same_bits(a: Results, b: Results) -> bool:
    return all(
        one.dtype == other.dtype and to_numpy(one).tobytes() == to_numpy(other).tobytes()
        for one, other in zip(a, b)
    )


def is_steep(text: str, arguments: list[Any], tries: int = 12) -> bool:
    """Whether the evaluator itself gives something else where the arguments are rounded otherwise,
    so that two right ways to calculate the program may differ by as much."""
    expected = hlo.evaluate(text, *arguments)
    random = np.random.default_rng(0)
    for attempt in range(tries):
        if between(hlo.evaluate(text, *(_nudged(a, random, attempt) for a in arguments)), expected):
            return True
    return False


def _nudged(argument: Any, random: np.random.Generator, attempt: int) -> Any:
    array = argument if isinstance(argument, np.ndarray) else to_numpy(argument)
    if array.dtype.kind not in "fc":
        return argument
    small = isinstance(argument, lamella.Tensor)
    unit = 2.0**-8 if small else 4 * float(np.finfo(array.dtype).eps)
    scale = unit * 4.0 ** (attempt % 3)
    with np.errstate(all="ignore"):
        nudged = array * (1 + scale * random.uniform(-1, 1, array.shape))
    nudged = np.asarray(nudged).astype(array.dtype)
    return lamella.from_numpy(nudged).bfloat16() if small else nudged
