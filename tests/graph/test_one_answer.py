"""Eager, compiled and evaluated results are one answer, at special values: see one_answer.py."""

from __future__ import annotations

import math
import pathlib
import sys

import numpy as np
import pytest

lamella = pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

one_answer = pytest.importorskip("one_answer")


@pytest.mark.parametrize("dtype", one_answer.FLOATS)
def test_operators(dtype):
    assert list(one_answer.operators(1, (dtype,))) == []


@pytest.mark.parametrize("seed", range(6))
def test_opcodes(seed):
    assert list(one_answer.opcodes(seed)) == []


@pytest.mark.parametrize("seed", range(6))
def test_reductions_and_movements(seed):
    assert list(one_answer.moving(seed)) == []


@pytest.mark.parametrize("seed", range(6))
def test_complex_functions(seed):
    assert list(one_answer.complex_functions(seed)) == []


INF, NAN = math.inf, math.nan
F = lamella.nn.functional
# Gradients that PyTorch has; those of gelu at infinities are limits, for which PyTorch has NaN.
GRADIENTS = {
    "celu": (F.celu, [NAN], [1]),
    "elu": (F.elu, [NAN], [1]),
    "gelu": (F.gelu, [INF, -INF], [1, 0]),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), [INF, -INF, 3e38], [1, 0, 1]),
    "hardshrink": (F.hardshrink, [NAN, 0.5, -0.5], [1, 0, 0]),
    "hardsigmoid": (F.hardsigmoid, [NAN, 3, -3], [0, 0, 0]),
    "hardswish": (F.hardswish, [3, -3], [1, 0]),
    "hardtanh": (F.hardtanh, [NAN, 1, -1], [1, 0, 0]),
    "logit": (lambda x: lamella.logit(x, 0.1), [NAN, 2, -2], [NAN, 0, 0]),
    "relu6": (F.relu6, [NAN, 0, 6], [1, 0, 0]),
    "selu": (F.selu, [NAN], [1.0507010221481323]),
    "softshrink": (F.softshrink, [NAN, 0.5, -0.5], [1, 0, 0]),
}


@pytest.mark.parametrize("count", [1, 7, 40])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_at_edges(name, count):
    function, inputs, expected = GRADIENTS[name]
    for run in (function, lamella.compile(function)):
        for x, wanted in zip(inputs, expected):
            leaf = lamella.full((count,), float(x)).requires_grad_()
            run(leaf).sum().backward()
            np.testing.assert_array_equal(leaf.grad.numpy(), np.full(count, wanted, np.float32))


# The zero that PyTorch gives; where its answer depends on the length, that of whole vectors.
ZEROS = {
    "clamp": (lambda x: lamella.clamp(x, min=0.0), [-0.0]),
    "maximum": (lambda x: lamella.maximum(x, -x), [-0.0, 0.0]),
    "minimum": (lambda x: lamella.minimum(x, -x), [-0.0, 0.0]),
    "norm": (lambda x: lamella.linalg.vector_norm(x.reshape(-1, 1), math.inf, 1), [0.0]),
    "relu": (F.relu, [-0.0]),
    "relu6": (F.relu6, [-0.0]),
}
OTHER = ("maximum", "minimum")  # the second operand, which is the negated one


@pytest.mark.parametrize("count", [1, 7, 40])
@pytest.mark.parametrize("name", ZEROS)
def test_signs_of_zero(name, count):
    function, expected = ZEROS[name]
    for run in (function, lamella.compile(function)):
        for wanted in expected:
            x = lamella.full((count,), -wanted if name in OTHER or name == "norm" else wanted)
            got = run(x).numpy()
            assert (got == 0).all() and (np.signbit(got) == np.signbit(wanted)).all()


@pytest.mark.parametrize("count", [1, 7, 40])
@pytest.mark.parametrize(("opcode", "wanted"), [("maximum", 0.0), ("minimum", -0.0)])
def test_extremes_of_zeros(opcode, wanted, count):
    shape = f"f32[{count}]"
    text = f"HloModule m\nENTRY e {{\n x = {shape} parameter(0)\n y = {shape} parameter(1)\n"
    text += f" ROOT r = {shape} {opcode}(x, y)\n}}"
    zeros = [np.full(count, zero, np.float32) for zero in (0.0, -0.0)]
    for arguments in (zeros, zeros[::-1]):
        for run in (hlo.evaluate, lambda text, *x: hlo.compile(text)(*x)):
            got = run(text, *arguments)[0].numpy()  # as IEEE 754's, and XLA's
            assert (got == 0).all() and (np.signbit(got) == np.signbit(wanted)).all()


def kinds_of(numbers):
    """What each part is: NaN, an infinity of some sign, zero or another number."""
    parts = numbers.view(np.float32)
    other = np.where(parts == 0, 0.0, 1.0)
    return np.where(np.isnan(parts), 9.0, np.where(np.isinf(parts), np.sign(parts) * 5, other))


@pytest.mark.parametrize("opcode", ["divide", "multiply"])
def test_complex_numbers_with_special_parts(opcode):
    """Opcodes give what XLA does, and operators, compiled ones too, what NumPy does."""
    parts = [0.0, -0.0, 1.0, -2.0, INF, -INF, NAN]
    every = np.array([complex(a, 0) for a in parts for _ in parts], np.complex64)
    every.imag = parts * len(parts)
    x, y = np.repeat(every, every.size), np.tile(every, every.size)
    operator = np.divide if opcode == "divide" else np.multiply
    with np.errstate(all="ignore"):
        expected = operator(x, y)
    function = lamella.div if opcode == "divide" else lamella.mul
    for run in (function, lamella.compile(function)):
        got = run(lamella.from_numpy(x), lamella.from_numpy(y)).numpy()
        np.testing.assert_array_equal(kinds_of(got), kinds_of(expected))
    xla_oracle = pytest.importorskip("xla_oracle")
    pytest.importorskip("jaxlib._hlo", reason="XLA is the reference")
    shape = f"c64[{x.size}]"
    text = f"HloModule m\nENTRY e {{\n x = {shape} parameter(0)\n y = {shape} parameter(1)\n"
    text += f" ROOT r = {shape} {opcode}(x, y)\n}}"
    (expected,) = xla_oracle.run(text, x, y)
    for run in (hlo.evaluate, lambda text, *x: hlo.compile(text)(*x)):
        got = run(text, x, y)[0].numpy()
        np.testing.assert_array_equal(kinds_of(got), kinds_of(expected))
