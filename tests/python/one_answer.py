"""Functions of each element at special values: eager, compiled and evaluated results are the same.

Operators are those of the first rows of operator_rows.py, values and gradients; opcodes are those
that work on each element. Each check draws a length from 1 to 70 and the order of the numbers, so
that over many seeds each number meets each other one in each lane.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import operator_rows

import lamella
from lamella import hlo

FLOATS = ("float32", "float64", "float16", "bfloat16")
# Where formulas change their way, beside what every type has.
EDGES = (
    *(0.1, 0.35, 0.5, 0.55, 0.65, 0.7071, 1, 1.5, 2, 2.5, 3, 4, 6, 8.99, 9.3, 12.5, 15, 20, 20.5),
    *(39, 40.5, 88.8, 104.5, 128, 401, 710, 746, 1e4, 1e18, 3e-5, 1e-3, 3e38),
)  # fmt: skip


def draw(random: np.random.Generator, kind: np.dtype, count: int) -> np.ndarray:
    """Numbers of the dtype in a random order, special ones before others."""
    if kind.kind == "b":
        return random.integers(0, 2, count).astype(bool)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        some = [info.min, info.max, 0, 1, info.max // 2, info.max - 1, 2, 3, 7, kind.itemsize * 8]
        some = [kind.type(one) for one in some] + [~kind.type(0)]
        return random.permutation(np.resize(np.array(some, kind), max(count, len(some))))[:count]
    if kind.kind == "c":
        return draw(random, np.dtype(f"f{kind.itemsize // 2}"), 2 * count).view(kind)
    info = ml_dtypes.finfo(kind)
    some = [0, np.inf, info.max, info.smallest_subnormal, info.tiny, float(info.tiny) * 0.75]
    some += [1 + float(info.eps), 1 - float(info.eps), 3 - 2 * float(info.eps), *EDGES]
    with np.errstate(over="ignore"):
        half = np.array([float(one) for one in some]).astype(kind)
        both = np.concatenate([half, -half, np.array([np.nan], kind)])
    return random.permutation(np.resize(both, max(count, len(both))))[:count]


def tensor(random: np.random.Generator, dtype: str, count: int) -> lamella.Tensor:
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    wide = draw(random, kind, count).astype(np.float64 if dtype == "float64" else np.float32)
    return lamella.from_numpy(wide).to(getattr(lamella, dtype))


def bits(x: lamella.Tensor | np.ndarray) -> np.ndarray:
    """The bits, with one NaN for all."""
    if isinstance(x, lamella.Tensor):
        x = x.detach()
        x = x.float().numpy() if x.dtype in (lamella.bfloat16, lamella.float16) else x.numpy()
    if x.dtype.kind == "c":
        x = x.view(np.dtype(f"f{x.dtype.itemsize // 2}"))
    if x.dtype.kind != "f":
        return x
    return np.where(np.isnan(x), np.nan, x).view(f"i{x.dtype.itemsize}")


# ---- Operators ----


def rows() -> list[operator_rows.Row]:
    return [*itertools.takewhile(lambda row: row.path != "sum", operator_rows.ROWS)]


def results(function, inputs: list[lamella.Tensor]) -> list[lamella.Tensor]:
    """The value, and the gradients of those inputs that have one."""
    inputs = [one.clone().requires_grad_() for one in inputs]
    value = function(*inputs)
    if not value.requires_grad or value.is_complex():
        return [value]
    value.sum().backward()
    return [value, *(one.grad for one in inputs if one.grad is not None)]


def evaluated(function, inputs: list[lamella.Tensor]) -> lamella.Tensor:
    """The value by the evaluator's rules, of the opcodes that the operators become."""
    graph = lamella.trace(function, *inputs, check=False, decompose=True)
    return hlo.evaluate(hlo.from_trace(graph, rules=True), *inputs)[0]


def unlike(a: lamella.Tensor, b: lamella.Tensor) -> np.ndarray:
    """Where one is NaN or infinite and the other is not, or both are zeros of two signs: the
    evaluator's own functions may round otherwise."""
    a, b = (one.detach().to(lamella.float64).numpy() for one in (a, b))
    zeros = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    return (np.isnan(a) != np.isnan(b)) | (np.isfinite(a) != np.isfinite(b)) | zeros


def check_row(row: operator_rows.Row, dtype: str, random: np.random.Generator) -> str | None:
    function, given = row.call("float64")
    count = int(random.integers(1, 71))
    inputs = [tensor(random, dtype, count) for _ in given]
    try:
        eager = results(function, inputs)
        if eager[0].shape != inputs[0].shape or eager[0].dtype == lamella.complex32:
            return None  # not a function of each element, or without buffers
    except RuntimeError:
        return None  # not with this dtype, or these sizes
    if not eager[0].is_complex():
        found = evaluated(function, inputs)
        for at in np.flatnonzero(unlike(eager[0], found))[:1]:
            return (
                f"{row.name} of {dtype}[{count}] at {[one[at].item() for one in inputs]}: "
                f"eager {eager[0][at].item()!r}, evaluated {found[at].item()!r}"
            )
    for n, (expected, got) in enumerate(zip(eager, results(lamella.compile(function), inputs))):
        if expected.dtype != got.dtype:
            return f"{row.name}: expected {expected.dtype}, got {got.dtype}"
        wrong = np.flatnonzero(bits(expected) != bits(got))
        if wrong.size:
            at = wrong[0] // (2 if expected.is_complex() else 1)
            of = "the value" if n == 0 else f"gradient {n}"
            return (
                f"{row.name} of {dtype}[{count}], {of} at {[one[at].item() for one in inputs]}: "
                f"eager {expected[at].item()!r}, compiled {got[at].item()!r}"
            )
    return None


def operators(seed: int, dtypes: tuple[str, ...]) -> Iterator[str]:
    for number, row in enumerate(rows()):
        for dtype in dtypes:
            found = check_row(
                row, dtype, np.random.default_rng([seed, number, FLOATS.index(dtype)])
            )
            if found is not None:
                yield found


# ---- Opcodes ----

SIGNED, UNSIGNED = ("s8", "s16", "s32", "s64"), ("u8", "u16", "u32", "u64")
HLO_FLOATS, COMPLEX = ("f32", "f64", "f16", "bf16"), ("c64",)
INTEGERS, REALS = SIGNED + UNSIGNED, SIGNED + UNSIGNED + HLO_FLOATS
KINDS = {
    "pred": np.bool_,
    **{one: f"i{int(one[1:]) // 8}" for one in SIGNED},
    **{one: f"u{int(one[1:]) // 8}" for one in UNSIGNED},
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "c64": np.complex64,
}  # fmt: skip
# Opcodes whose results are rounded once, or are exact, so that no bit may differ.
EXACT = {
    "abs": REALS, "negate": REALS + COMPLEX, "sign": REALS, "not": ("pred", *INTEGERS),
    "ceil": HLO_FLOATS, "floor": HLO_FLOATS, "round-nearest-afz": HLO_FLOATS,
    "round-nearest-even": HLO_FLOATS, "is-finite": HLO_FLOATS, "sqrt": HLO_FLOATS,
    "popcnt": INTEGERS, "count-leading-zeros": INTEGERS,
    "add": ("pred", *REALS), "subtract": REALS, "multiply": ("pred", *REALS), "divide": REALS,
    "remainder": REALS, "maximum": ("pred", *REALS), "minimum": ("pred", *REALS),
    "and": ("pred", *INTEGERS), "or": ("pred", *INTEGERS), "xor": ("pred", *INTEGERS),
    "shift-left": INTEGERS, "shift-right-arithmetic": INTEGERS, "shift-right-logical": INTEGERS,
}  # fmt: skip
BINARY = set(list(EXACT)[list(EXACT).index("add") :])
# Those with the kernels' functions, beside the evaluator's own: how far they may differ, in ULP.
CLOSE = {
    **dict.fromkeys(
        "acos acosh asin asinh atan atanh cbrt cosh cosine erf exponential exponential-minus-one "
        "log log-plus-one logistic rsqrt sine sinh tan tanh".split(), 4,
    ),
    "atan2": 4, "power": 4,
}  # fmt: skip
TWO = ("atan2", "power")


class Program:
    def __init__(self, element: str, count: int):
        self.element, self.count = element, count
        self.lines = [f"p{n} = {self.shape()} parameter({n})" for n in range(3)]
        self.outputs: list[tuple[str, str]] = []

    def shape(self, element: str = "") -> str:
        return f"{element or self.element}[{self.count}]"

    def add(self, text: str, element: str = "") -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {self.shape(element)} {text}")
        self.outputs.append((name, self.shape(element)))
        return name

    def text(self) -> str:
        names, shapes = zip(*self.outputs)
        root = f"ROOT r = ({', '.join(shapes)}) tuple({', '.join(names)})"
        return "HloModule m\nENTRY e {\n" + "\n".join([*self.lines, root]) + "\n}"


def exact_program(element: str, count: int) -> Program:
    program = Program(element, count)
    for opcode, elements in EXACT.items():
        if element in elements:
            operands = "p0, p1" if opcode in BINARY else "p0"
            program.add(f"{opcode}({operands})", "pred" if opcode == "is-finite" else "")
    directions = ("EQ", "NE") if element in ("pred", *COMPLEX) else "EQ NE LT LE GT GE".split()
    kinds = ("", ", type=TOTALORDER") if element in HLO_FLOATS else ("",)
    for direction, kind in itertools.product(directions, kinds):
        condition = program.add(f"compare(p0, p1), direction={direction}{kind}", "pred")
    program.add(f"select({condition}, p1, p2)")
    if element in REALS:
        program.add("clamp(p0, p1, p2)")
        for other in ("pred", *REALS):
            program.add("convert(p0)", other)
    if element == "pred":
        for other in REALS:
            program.add("convert(p0)", other)
    if element in HLO_FLOATS:
        for exponent, mantissa in ((5, 10), (8, 7), (4, 3), (5, 2)):
            program.add(f"reduce-precision(p0), exponent_bits={exponent}, mantissa_bits={mantissa}")
    return program


def close_program(element: str, count: int) -> Program:
    program = Program(element, count)
    for opcode in CLOSE:
        program.add(f"{opcode}({'p0, p1' if opcode in TWO else 'p0'})")
    return program


def ulps_apart(a: np.ndarray, b: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Infinity where only one is NaN, or infinite, or where signs differ."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    info = ml_dtypes.finfo(kind)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.maximum(np.abs(b), float(info.tiny))))
        apart = np.abs(a - b) / (2.0**exponent * float(info.eps))
    unlike = (np.isfinite(a) != np.isfinite(b)) | (np.isnan(a) != np.isnan(b))
    unlike |= ~np.isnan(a) & (np.signbit(a) != np.signbit(b))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(unlike, np.inf, np.where(same, 0, apart))


def opcodes(seed: int) -> Iterator[str]:
    for number, element in enumerate(KINDS):
        random = np.random.default_rng([seed, 1000 + number])
        count = int(random.integers(1, 71))
        kind = np.dtype(KINDS[element])
        arguments = [draw(random, kind, count) for _ in range(3)]
        programs = [exact_program(element, count)]
        if element in HLO_FLOATS:
            programs.append(close_program(element, count))
        for exact, program in zip((True, False), programs):
            text = program.text()
            given = (
                [
                    lamella.from_numpy(one.astype(np.float32)).to(lamella.bfloat16)
                    for one in arguments
                ]
                if element == "bf16"
                else arguments
            )
            compiled, evaluated = hlo.compile(text)(*given), hlo.evaluate(text, *given)
            for (name, _), got, expected in zip(program.outputs, compiled, evaluated):
                line = next(one for one in program.lines if one.startswith(f"{name} ="))
                if exact:
                    wrong = bits(expected) != bits(got)
                else:
                    limit = CLOSE[line.split("] ", 1)[1].split("(")[0]]
                    as_numbers = [one.to(lamella.float64).numpy() for one in (got, expected)]
                    wrong = ulps_apart(*as_numbers, kind) > limit
                for at in np.flatnonzero(wrong)[:1]:
                    at //= 2 if expected.is_complex() else 1
                    yield (
                        f"{line}, of {[one[at] for one in arguments]}: "
                        f"evaluated {expected[at].item()!r}, compiled {got[at].item()!r}"
                    )
