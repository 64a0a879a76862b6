"""Elementary functions: compiled ones have the bits of the operators, for every CPU capability."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

lamella = pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")

# An opcode and the operator that it is.
UNARY = {
    "acos": lamella.acos,
    "acosh": lamella.acosh,
    "asin": lamella.asin,
    "asinh": lamella.asinh,
    "atan": lamella.atan,
    "atanh": lamella.atanh,
    "cosh": lamella.cosh,
    "cosine": lamella.cos,
    "erf": lamella.erf,
    "exponential": lamella.exp,
    "exponential-minus-one": lamella.expm1,
    "log": lamella.log,
    "log-plus-one": lamella.log1p,
    "logistic": lamella.sigmoid,
    "rsqrt": lamella.rsqrt,
    "sine": lamella.sin,
    "sinh": lamella.sinh,
    "sqrt": lamella.sqrt,
    "tan": lamella.tan,
    "tanh": lamella.tanh,
}
BINARY = {"atan2": lamella.atan2, "power": lamella.pow, "remainder": lamella.fmod}
# Operators that no opcode is, as lamella.compile() makes them.
COMPILED = {
    "elu": lamella.nn.functional.elu,
    "erfc": lamella.erfc,
    "erfinv": lamella.erfinv,
    "exp2": lamella.exp2,
    "gelu": lamella.nn.functional.gelu,
    "gelu_tanh": functools.partial(lamella.nn.functional.gelu, approximate="tanh"),
    "log10": lamella.log10,
    "log2": lamella.log2,
    "logit": lamella.logit,
    "logsigmoid": lamella.nn.functional.logsigmoid,
    "mish": lamella.nn.functional.mish,
    "silu": lamella.nn.functional.silu,
    "softplus": lamella.nn.functional.softplus,
}
DTYPES = {
    "f32": lamella.float32,
    "f64": lamella.float64,
    "f16": lamella.float16,
    "bf16": lamella.bfloat16,
}


def numbers(element: str, count: int, seed: int) -> lamella.Tensor:
    """Special ones first, and where functions change their way; then some of all sizes."""
    info = ml_dtypes.finfo({"f16": np.float16, "f64": np.float64}.get(element, np.float32))
    some = [0.0, np.inf, float(info.max), float(info.smallest_subnormal), 1.0, float(info.tiny)]
    some += [0.55, 1 + float(info.eps), 1 - float(info.eps), 3e-5, 12.5, 88.8, 104.5, 710, 746, 1e6]
    some += [9.3, 127, 128, 2.5, 401, 1e18, 3e38, float(info.tiny) * 0.75, 0.7071, 20.1, 40.5]
    random = np.random.default_rng(seed)
    normal = [random.normal(size=count) * scale for scale in (1, 30, 500)]
    sizes = 10.0 ** random.uniform(-44, 38, count)
    with np.errstate(over="ignore"):
        mixed = np.concatenate([*normal, sizes, -sizes])
        random.shuffle(mixed)
        both = np.concatenate([np.array(some), -np.array(some), [np.nan]])
        all_ = np.concatenate([np.roll(both, seed), mixed])[:count]
        wide = all_.astype(np.float64 if element == "f64" else np.float32)
    return lamella.from_numpy(wide).to(DTYPES[element])


def differing(got: lamella.Tensor, expected: lamella.Tensor) -> list[int]:
    """Where the bits differ. One NaN is as good as another."""
    word = {2: lamella.int16, 4: lamella.int32, 8: lamella.int64}[got.element_size()]
    assert got.dtype == expected.dtype and got.shape == expected.shape
    same = (got.view(word) == expected.view(word)) | (got.isnan() & expected.isnan())
    return [i for i, one in enumerate(same.tolist()) if not one]


def compiled(opcode: str, element: str, *arguments: lamella.Tensor) -> lamella.Tensor:
    shape = f"{element}[{len(arguments[0])}]"
    names = [f"x{i}" for i in range(len(arguments))]
    lines = [f"{name} = {shape} parameter({i})" for i, name in enumerate(names)]
    lines.append(f"ROOT r = {shape} {opcode}({', '.join(names)})")
    return hlo.compile("HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}")(*arguments)[0]


def lengths(number: int, element: str) -> list[int]:
    """Lengths from 1 to 70 and a long one: each is some function's, and each function has some."""
    step = 11 if element in ("f32", "f64") else 23
    return [*range(1 + number % step, 71, step), 5000]


def report() -> list[str]:
    found = []

    def check(name: str, call, operator, element: str, operands: int, count: int) -> None:
        arguments = [numbers(element, count, seed=count + 5 * i) for i in range(operands)]
        expected = operator(*arguments)
        got = call(*arguments)
        for i in differing(got, expected)[:1]:
            inputs = [one[i].item() for one in arguments]
            found.append(
                f"{name} of {element}[{count}], {inputs}: "
                f"expected {expected[i].item()!r}, got {got[i].item()!r}"
            )

    opcodes = [(name, operator, 1) for name, operator in UNARY.items()]
    # Without a compiler powers are the evaluator's.
    if os.environ.get("LAMELLA_COMPILER") != "0":
        opcodes += [(name, operator, 2) for name, operator in BINARY.items()]
    for element in DTYPES:
        for number, (name, operator, operands) in enumerate(opcodes):
            for count in lengths(number, element):
                call = functools.partial(compiled, name, element)
                check(name, call, operator, element, operands, count)
        for name, operator in COMPILED.items():
            for count in (9, 5000):
                check(name, lamella.compile(operator), operator, element, 1, count)
    return found


@pytest.mark.parametrize(
    "settings",
    [
        {"LAMELLA_CPU_CAPABILITY": "default"},
        {"LAMELLA_CPU_CAPABILITY": "avx2"},
        {"LAMELLA_CPU_CAPABILITY": "avx512"},
        {"LAMELLA_COMPILER": "0"},
    ],
    ids=lambda settings: "=".join(next(iter(settings.items()))),
)
def test_functions_have_the_bits_of_operators(settings):
    # The settings are read when the library is first used.
    done = subprocess.run(
        [sys.executable, __file__], env={**os.environ, **settings},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("", 0), done.stdout[:3000] + done.stderr[-3000:]


if __name__ == "__main__":
    print("\n".join(report()), end="")
