"""The accuracy of mathematical functions: the table for test_accuracy.py and docs/accuracy.md.

A row has a function, its domains and the largest allowed error in units in the last place (ULP) of
float32 and float64, against mpmath with 40 digits. `accuracy.py --write` measures every CPU
capability and writes the page, with PyTorch's errors for comparison.
`accuracy.py --every STEP NAME...` measures functions that NumPy has too at every STEPth float32.
"""

from __future__ import annotations

import functools
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from mpmath import mp, mpf

mp.dps = 40
PAGE = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"
CAPABILITIES = ("default", "avx2", "avx512")
DTYPES = ("float32", "float64")


class Row(NamedTuple):
    name: str  # in lamella, lamella.special or lamella.nn.functional
    domains: tuple[tuple[float, float], ...]  # of each argument, for one argument: several in turn
    allowed: tuple[float, float]  # ULP in float32 and float64
    reference: Callable[..., Any]
    arguments: int = 1


def normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def inverse(f: Callable[[Any], Any], slope: Callable[[Any], Any], y: Any, x: Any) -> Any:
    """The x at which f is y, by Newton's method from nearby."""
    for _ in range(6):
        x -= (f(x) - y) / slope(x)
    return x


def erfinv(y: Any) -> Any:
    import torch

    x = mpf(float(torch.erfinv(torch.tensor(float(y), dtype=torch.float64))))
    slope = lambda t: 2 / mp.sqrt(mp.pi) * mp.exp(-t * t)  # noqa: E731
    return inverse(lambda t: -mp.erfc(t), slope, y - 1, x) if y > 0 else -erfinv(-y) if y else y


def ndtri(p: Any) -> Any:
    import torch

    x = mpf(float(torch.special.ndtri(torch.tensor(float(p), dtype=torch.float64))))
    slope = lambda t: mp.exp(-t * t / 2) / mp.sqrt(2 * mp.pi)  # noqa: E731
    return inverse(normal, slope, p, x)


def logaddexp(a: Any, b: Any) -> Any:
    return max(a, b) + mp.log1p(mp.exp(-abs(a - b)))


TWO, SMALL, POSITIVE, INSIDE = (-2.0, 2.0), (-1e-3, 1e-3), (0.01, 4.0), (-1.0, 1.0)
WIDE, LARGE = (1e-30, 1e30), (-1e30, 1e30)
ROWS = [
    Row("exp", (TWO, (-87, 88)), (1, 1), mp.exp),
    Row("exp2", (TWO, (-125, 127)), (1.2, 1.2), lambda x: mpf(2) ** x),
    Row("expm1", (TWO, SMALL, (-30, 88)), (2, 2), mp.expm1),
    Row("log", (POSITIVE, (0.9, 1.1), WIDE), (1, 1), mp.log),
    Row("log2", (POSITIVE, (0.9, 1.1), WIDE), (1.7, 1.7), lambda x: mp.log(x) / mp.log(2)),
    Row("log10", (POSITIVE, (0.9, 1.1), WIDE), (1.7, 1.5), lambda x: mp.log(x) / mp.log(10)),
    Row("log1p", ((-0.9, 4), SMALL, WIDE), (1, 1), mp.log1p),
    Row("sin", (TWO, (-300, 300), (-1e5, 1e5), LARGE), (1, 1), mp.sin),
    Row("cos", (TWO, (-300, 300), (-1e5, 1e5), LARGE), (1, 1), mp.cos),
    Row("tan", (TWO, (-300, 300), (-1e5, 1e5), LARGE), (2, 2), mp.tan),
    Row("asin", (INSIDE, SMALL), (1.5, 1.6), mp.asin),
    Row("acos", (INSIDE, (0.99, 1)), (1.5, 1.5), mp.acos),
    Row("atan", (TWO, LARGE), (1.7, 1.5), mp.atan),
    Row("sinh", (TWO, (-88, 88)), (2, 2), mp.sinh),
    Row("cosh", (TWO, (-88, 88)), (1.5, 1.5), mp.cosh),
    Row("tanh", (TWO, SMALL, (-12, 12)), (1.5, 2), mp.tanh),
    Row("asinh", (TWO, LARGE), (2, 2), mp.asinh),
    Row("acosh", ((1, 1.1), (1, 4), (1, 1e30)), (2, 2), mp.acosh),
    Row("atanh", ((-0.999, 0.999), SMALL), (2, 2), mp.atanh),
    Row("sqrt", (POSITIVE, WIDE), (0.5001, 0.5001), mp.sqrt),
    Row("rsqrt", (POSITIVE, WIDE), (1.5, 1.5), lambda x: 1 / mp.sqrt(x)),
    Row("sigmoid", (TWO, (-85, 85)), (2, 2), lambda x: 1 / (1 + mp.exp(-x))),
    Row("erf", (TWO, SMALL, (-7, 7)), (1.5, 1.5), mp.erf),
    Row("erfc", (TWO, (-6, 9)), (2, 2), mp.erfc),
    Row("erfinv", ((-0.95, 0.95), (0.999, 0.99999)), (2, 2), erfinv),
    Row("lgamma", (POSITIVE, (4, 100), (0.9, 2.2)), (1, 2.2), mp.loggamma),
    Row("digamma", (POSITIVE, (4, 100), (1.4, 1.5)), (1, 2.2), mp.digamma),
    Row("logit", ((0.01, 0.99), (0.45, 0.55)), (2.5, 2.5), lambda x: mp.log(x / (1 - x))),
    Row("sinc", (TWO, (-50, 50)), (2, 2.2), lambda x: mp.sinpi(x) / (mp.pi * x)),
    Row("i0", (TWO, (-80, 80)), (2.2, 2), lambda x: mp.besseli(0, x)),
    Row("special.i0e", (TWO, (-200, 200)), (2, 2), lambda x: mp.exp(-abs(x)) * mp.besseli(0, x)),
    Row("special.i1", (TWO, (-80, 80)), (2.5, 2.2), lambda x: mp.besseli(1, x)),
    Row(
        "special.i1e", (TWO, (-200, 200)), (2.3, 2.3), lambda x: mp.exp(-abs(x)) * mp.besseli(1, x)
    ),
    Row("special.entr", (POSITIVE,), (2, 2), lambda x: -x * mp.log(x)),
    Row("special.erfcx", (TWO, (0, 60)), (2.5, 2.5), lambda x: mp.exp(x * x) * mp.erfc(x)),
    Row("special.log_ndtr", (TWO, (-30, 3)), (2.5, 2.5), lambda x: mp.log(normal(x))),
    Row("special.ndtri", ((0.05, 0.95), (1e-6, 1e-2)), (2, 2.8), ndtri),
    Row("nn.functional.gelu", (TWO, (-12, 12)), (2, 2.2), lambda x: x * normal(x)),
    Row(
        "gelu_tanh",
        (TWO, (-8, 12)),
        (2, 2),
        lambda x: x / (1 + mp.exp(-2 * mp.sqrt(2 / mp.pi) * (x + mpf("0.044715") * x**3))),
    ),
    Row("nn.functional.silu", (TWO, (-85, 85)), (2.2, 2.2), lambda x: x / (1 + mp.exp(-x))),
    Row("nn.functional.mish", (TWO, (-20, 20)), (3, 3), lambda x: x * mp.tanh(mp.log1p(mp.exp(x)))),
    Row("nn.functional.logsigmoid", (TWO, (-80, 80)), (2.5, 2.5), lambda x: -mp.log1p(mp.exp(-x))),
    Row("nn.functional.softplus", (TWO, (-80, 19)), (2.5, 2.5), lambda x: mp.log1p(mp.exp(x))),
    Row("pow", (POSITIVE, (-20, 20)), (1, 1.5), mp.power, 2),
    Row("atan2", (TWO, TWO), (2, 2), mp.atan2, 2),
    Row("hypot", (TWO, TWO), (1, 1.2), lambda x, y: mp.sqrt(x * x + y * y), 2),
    Row("xlogy", (TWO, POSITIVE), (2, 2), lambda x, y: x * mp.log(y), 2),
    Row("special.xlog1py", (TWO, (-0.9, 4)), (2, 2), lambda x, y: x * mp.log1p(y), 2),
    Row("logaddexp", ((0.1, 9), (0.1, 9)), (2, 2), logaddexp, 2),
]


def function_of(module: Any, name: str) -> Any:
    if name == "gelu_tanh":
        return functools.partial(module.nn.functional.gelu, approximate="tanh")
    return functools.reduce(getattr, name.split("."), module)


def inputs(row: Row, dtype: str, count: int) -> list[Any]:
    random = numpy.random.default_rng(7)

    def draw(low: float, high: float) -> Any:
        if high >= 1e20:  # sizes spread over the exponents
            sizes = numpy.exp(random.uniform(math.log(max(low, 1e-30)), math.log(high), count))
            return sizes if low >= 0 else sizes * random.choice([-1, 1], count)
        return random.uniform(low, high, count)

    if row.arguments > 1:
        return [draw(*domain).astype(dtype) for domain in row.domains]
    values = numpy.concatenate([draw(*domain) for domain in row.domains]).astype(dtype)
    return [values[values != 0]]


def ulps(got: Any, exact: list[Any], dtype: str) -> float:
    """The largest error in units in the last place of the exact value."""
    digits, least = (24, -125) if dtype == "float32" else (53, -1021)
    worst = mpf(0)
    for value, want in zip(got.tolist(), exact):
        if value != value:
            return math.inf
        unit = mpf(2) ** (max(mp.frexp(want)[1], least) - digits) if want else mpf(2) ** least
        worst = max(worst, abs(mpf(value) - want) / unit)
    return float(worst)


@functools.cache
def cases(count: int) -> dict[str, tuple[list[Any], list[Any]]]:
    """row/dtype -> arguments and exact results."""
    out = {}
    for row in ROWS:
        for dtype in DTYPES:
            given = inputs(row, dtype, count)
            columns = [[mpf(x) for x in a.tolist()] for a in given]
            out[f"{row.name}/{dtype}"] = (given, [row.reference(*x) for x in zip(*columns)])
    return out


def errors_of(module: str, capability: str, count: int) -> dict[str, float]:
    """row/dtype -> the largest error of a library at a capability, in a process of its own."""
    arrays = {
        f"{key}/{i}": a for key, (given, _) in cases(count).items() for i, a in enumerate(given)
    }
    with tempfile.TemporaryDirectory() as folder:
        numpy.savez(f"{folder}/in.npz", **{k.replace("/", "|"): v for k, v in arrays.items()})
        environment = {**os.environ, "LAMELLA_CPU_CAPABILITY": capability}
        command = [sys.executable, __file__, "--run", module, folder]
        subprocess.run(command, check=True, env=environment)
        results = numpy.load(f"{folder}/out.npz")
        return {
            key: ulps(results[key.replace("/", "|")], exact, key.split("/")[1])
            for key, (_, exact) in cases(count).items()
        }


def run(name: str, folder: str) -> None:
    module = __import__(name)
    given, out = numpy.load(f"{folder}/in.npz"), {}
    for row in ROWS:
        for dtype in DTYPES:
            key = f"{row.name}|{dtype}"
            tensors = [module.from_numpy(given[f"{key}|{i}"]) for i in range(row.arguments)]
            out[key] = function_of(module, row.name)(*tensors).numpy()
    numpy.savez(f"{folder}/out.npz", **out)


def allowed(key: str) -> float:
    name, dtype = key.split("/")
    return next(r for r in ROWS if r.name == name).allowed[DTYPES.index(dtype)]


def page(count: int) -> str:
    ours = {c: errors_of("lamella", c, count) for c in CAPABILITIES}
    theirs = errors_of("torch", "default", count)
    shown = lambda x: f"{x:.2f}" if x < 100 else f"{x:.1e}"  # noqa: E731
    lines = [
        "# Accuracy of mathematical functions",
        "",
        "`tests/python/accuracy.py --write` made this page: the largest error against mpmath,",
        "in units in the last place, over random arguments of the domains. The largest of SSE2,",
        "AVX2 and AVX-512 is shown, then what the tests allow. float16 and bfloat16 compute in",
        "float32.",
        "",
        "| function | domains | float32 | allowed | PyTorch | float64 | allowed | PyTorch |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        domains = ", ".join(f"[{a:g}, {b:g}]" for a, b in row.domains)
        cells = []
        for i, dtype in enumerate(DTYPES):
            key = f"{row.name}/{dtype}"
            worst = max(ours[c][key] for c in CAPABILITIES)
            cells += [shown(worst), f"{row.allowed[i]:g}", shown(theirs[key])]
        lines.append(f"| `{row.name}` | {domains} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def worst_of_every(name: str, step: int) -> tuple[float, float]:
    """The largest error of a function over every step-th finite float32, and where it is."""
    import lamella

    worst = (0.0, 0.0)
    for first in range(0, 0x7F800000, 1 << 23):
        for sign in (0, 1 << 31):
            bits = numpy.arange(first + sign, first + sign + (1 << 23), step, dtype=numpy.uint32)
            x = bits.view(numpy.float32)
            got = getattr(lamella, name)(lamella.from_numpy(x)).numpy().astype(numpy.float64)
            with numpy.errstate(all="ignore"):
                want = getattr(numpy, name)(x.astype(numpy.float64))
                finite = numpy.isfinite(want) & (abs(want) < 2.0**128)
                _, exponent = numpy.frexp(want)
                unit = numpy.ldexp(1.0, numpy.maximum(exponent, -125) - 24)
                error = numpy.where(finite, abs(got - want) / unit, 0)
            error[numpy.isnan(error)] = math.inf
            worst = max(worst, (float(error.max()), float(x[error.argmax()])))
    return worst


if __name__ == "__main__":
    if "--every" in sys.argv:
        for name in sys.argv[3:]:
            print(name, *worst_of_every(name, int(sys.argv[2])))
    elif "--run" in sys.argv:
        run(*sys.argv[2:])
    elif "--write" in sys.argv:
        PAGE.write_text(page(200))
    else:
        print(page(60))
