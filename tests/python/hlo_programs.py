"""Small HLO programs, their arguments, and the results of the reference evaluator."""

from __future__ import annotations

import re

import numpy as np
import pytest

hlo = pytest.importorskip("lamella.hlo")

TYPES = {
    "pred": np.bool_,
    "s8": np.int8,
    "s16": np.int16,
    "s32": np.int32,
    "s64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}


def combiner(name: str, element: str, *lines: str) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return (
        f"{name} {{\n  a = {element}[] parameter(0)\n  b = {element}[] parameter(1)\n{body}\n}}\n"
    )


def plain(name: str, opcode: str, element: str = "f32") -> str:
    return combiner(name, element, f"ROOT r = {element}[] {opcode}(a, b)")


COMPUTATIONS = (
    plain("add", "add")
    + plain("max", "maximum")
    + plain("sub", "subtract")
    + plain("mul", "multiply")
    + combiner("ge", "f32", "ROOT r = pred[] compare(a, b), direction=GE")
    + combiner("lt", "f32", "ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER")
    + combiner("odd", "f32", "t = f32[] tanh(b)", "ROOT r = f32[] subtract(a, t)")
    + """two {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(a, b), direction=GE
  v = f32[] select(p, a, b)
  k = s32[] select(p, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k)
}
keys {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  v = f32[] parameter(2)
  w = f32[] parameter(3)
  e = pred[] compare(a, b), direction=EQ
  l = pred[] compare(a, b), direction=LT
  g = pred[] compare(v, w), direction=GT
  ROOT r = pred[] select(e, g, l)
}
loop_condition {
  s = (f32[], s32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=1
  three = s32[] constant(3)
  ROOT r = pred[] compare(n, three), direction=LT
}
loop_body {
  s = (f32[], s32[]) parameter(0)
  v = f32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  w = f32[] add(v, v)
  m = s32[] add(n, one)
  ROOT t = (f32[], s32[]) tuple(w, m)
}
looped {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  zero = s32[] constant(0)
  s = (f32[], s32[]) tuple(b, zero)
  w = (f32[], s32[]) while(s), condition=loop_condition, body=loop_body
  v = f32[] get-tuple-element(w), index=0
  ROOT r = f32[] add(a, v)
}
called {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] call(b, a), to_apply=sub
  ROOT r = f32[] call(a, c), to_apply=add
}
step {
  x = f32[3] parameter(0)
  c = f32[3] parameter(1)
  s = f32[3] add(x, c)
  m = f32[3] multiply(x, c)
  ROOT t = (f32[3], f32[3]) tuple(m, s)
}
"""
)


def program(operands: str, root: str) -> str:
    lines = [f"  p{n} = {shape} parameter({n})" for n, shape in enumerate(operands.split())]
    entry = "\n".join([*lines, f"  ROOT r = {root}"])
    return f"HloModule m\n{COMPUTATIONS}ENTRY e {{\n{entry}\n}}\n"


def arguments(operands: str, seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    arrays = []
    for shape in operands.split():
        element, sizes = re.match(r"(\w+)\[([\d,]*)\]", shape).groups()
        dims = [int(n) for n in sizes.split(",") if n]
        kind = np.dtype(TYPES[element]).kind
        if kind in "iub":
            values = random.integers(0 if kind != "i" else -9, 2 if kind == "b" else 9, size=dims)
        else:
            values = random.normal(size=dims)
            if kind == "c":
                values = values + 1j * random.normal(size=dims)
        arrays.append(np.asarray(values, TYPES[element]))
    return arrays


def ours(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    return [one.numpy() for one in hlo.evaluate(text, *arrays)]


def assert_near(got, want, tolerance=2e-5):
    assert len(got) == len(want)
    for one, other in zip(got, want):
        assert one.dtype == other.dtype and one.shape == other.shape
        if one.dtype.kind in "iub":
            np.testing.assert_array_equal(one, other)
        else:
            close = 1e-12 if one.dtype in (np.float64, np.complex128) else tolerance
            close = 4e-3 if one.dtype == np.float16 else close
            np.testing.assert_allclose(one, other, rtol=close, atol=close)


def error_of(operands: str, root: str, *arrays: np.ndarray) -> str:
    with pytest.raises(RuntimeError) as caught:
        hlo.evaluate(program(operands, root), *arrays)
    return str(caught.value)
