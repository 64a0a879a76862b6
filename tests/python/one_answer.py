"""Special values: eager, compiled and evaluated results are the same.

Operators are those of the first rows of operator_rows.py, values and gradients; opcodes are those
that work on each element, that reduce, and that move elements. Each check draws a length from 1 to
70 and the order of the numbers, so that over many seeds each number meets each other one in each
lane.
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


def evaluated(function, inputs: list[lamella.Tensor], wanted: int) -> list[lamella.Tensor]:
    """The value and `wanted` - 1 gradients by the evaluator's rules, of the opcodes that the
    operators and their gradients become."""

    def joint(*tensors):
        value, pullback = lamella.func.vjp(function, *tensors)
        return value, *pullback(lamella.ones_like(value))

    traced = joint if wanted > 1 else function
    graph = lamella.trace(traced, *inputs, check=False, decompose=True)
    return list(hlo.evaluate(hlo.from_trace(graph, rules=True), *inputs))[:wanted]


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
    compiled = lamella.compile(function)
    try:
        eager = results(function, inputs)
    except RuntimeError as error:
        # Not with this dtype, or these sizes: compiled code must say the same.
        try:
            results(compiled, inputs)
        except RuntimeError as other:
            same = type(error) is type(other) and str(error) == str(other)
            if same and str(error).startswith(row.path.split(".")[-1].rstrip("_")):
                return None
            return f"{row.name} of {dtype}: eager raises {error}, compiled {other}"
        return f"{row.name} of {dtype}: eager raises {error}, compiled does not"
    if eager[0].shape != inputs[0].shape or eager[0].dtype == lamella.complex32:
        return None  # not a function of each element, or without buffers
    if not eager[0].is_complex():
        for n, found in enumerate(evaluated(function, inputs, len(eager))):
            for at in np.flatnonzero(unlike(eager[n], found))[:1]:
                of = "" if n == 0 else f", gradient {n}"
                return (
                    f"{row.name} of {dtype}[{count}]{of} at {[one[at].item() for one in inputs]}: "
                    f"eager {eager[n][at].item()!r}, evaluated {found[at].item()!r}"
                )
    for n, (expected, got) in enumerate(zip(eager, results(compiled, inputs))):
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
        self.computations: list[str] = []

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
        entry = "\n".join([*self.lines, root])
        return "\n".join(["HloModule m", *self.computations, f"ENTRY e {{\n{entry}\n}}"])


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


REDUCERS = {
    "maximum": REALS, "minimum": REALS, "add": (*REALS, *COMPLEX), "multiply": REALS,
    "and": ("pred", *INTEGERS), "or": ("pred", *INTEGERS), "xor": ("pred", *INTEGERS),
}  # fmt: skip


def moving_program(element: str, count: int) -> Program:
    """Reductions, windows, sorts and movements. Operands of sums must be small whole numbers,
    infinities or NaN, so that no order of the sums matters."""
    program = Program(element, count)
    reducers = [name for name, elements in REDUCERS.items() if element in elements]
    for name in reducers:
        scalars = f"x = {element}[] parameter(0)\n y = {element}[] parameter(1)"
        program.computations.append(
            f"r_{name} {{\n {scalars}\n ROOT r = {element}[] {name}(x, y)\n}}"
        )
    for direction in ("lt", "gt") if element in REALS else ():
        program.computations.append(
            f"c_{direction} {{\n x = {element}[] parameter(0)\n y = {element}[] parameter(1)\n"
            f" ROOT r = pred[] compare(x, y), direction={direction.upper()}"
            f"{', type=TOTALORDER' if element in HLO_FLOATS else ''}\n}}"
        )
    program.lines += [
        f"one = {element}[1] slice(p1), slice={{[0:1]}}",
        f"init = {element}[] reshape(one)",
        f"both = {element}[2,{count}] concatenate(row0, row1), dimensions={{0}}",
    ]
    at = len(program.lines) - 1
    program.lines[at:at] = [f"row{n} = {element}[1,{count}] reshape(p{n})" for n in (0, 1)]

    def add(shape: str, text: str) -> None:
        name = f"v{len(program.lines)}"
        program.lines.append(f"{name} = {shape} {text}")
        program.outputs.append((name, shape))

    line, pair = f"{element}[{count}]", f"{element}[2,{count}]"
    for name in reducers:
        apply = f"to_apply=r_{name}"
        add(f"{element}[]", f"reduce(p0, init), dimensions={{0}}, {apply}")
        add(f"{element}[2]", f"reduce(both, init), dimensions={{1}}, {apply}")
        add(line, f"reduce(both, init), dimensions={{0}}, {apply}")
        add(line, f"reduce-window(p0, init), window={{size=3 pad=1_1}}, {apply}")
        for pad in (f"{count - 1}_0", f"0_{count - 1}"):
            add(line, f"reduce-window(p0, init), window={{size={count} pad={pad}}}, {apply}")
    for direction in ("lt", "gt") if element in REALS else ():
        add(line, f"sort(p0), dimensions={{0}}, is_stable=true, to_apply=c_{direction}")
    add(f"{element}[{count},2]", "transpose(both), dimensions={1,0}")
    add(pair, "reverse(both), dimensions={0,1}")
    add(f"{element}[{2 * count + 2}]", "pad(p0, init), padding=2_1_1")
    add(f"{element}[{(count + 1) // 2}]", f"slice(p0), slice={{[0:{count}:2]}}")
    add(f"{element}[3,{count}]", "broadcast(p0), dimensions={1}")
    add(f"{element}[{2 * count}]", "reshape(both)")
    add(f"{element}[{2 * count}]", "concatenate(p0, p1), dimensions={0}")
    return program


# How far functions of complex numbers may differ, in parts of the larger number's size.
COMPLEX_FUNCTIONS = (
    "abs negate sign exponential exponential-minus-one log log-plus-one logistic sqrt rsqrt cbrt "
    "sine cosine tan tanh real imag"
).split()


def complex_program(count: int) -> Program:
    program = Program("c64", count)
    for opcode in COMPLEX_FUNCTIONS:
        program.add(f"{opcode}(p0)", "f32" if opcode in ("abs", "real", "imag") else "")
    for opcode in ("add", "subtract", "multiply", "divide", "power"):
        program.add(f"{opcode}(p0, p1)")
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


def small(random: np.random.Generator, kind: np.dtype, count: int) -> np.ndarray:
    """Numbers that may be added in any order, and special values."""
    if kind.kind in "biu":
        return draw(random, kind, count)
    if kind.kind == "c":
        return small(random, np.dtype(f"f{kind.itemsize // 2}"), 2 * count).view(kind)
    rare = np.array([0.0, -0.0, 1, -1, 2, 0.0, -0.0, 1, np.inf, -np.inf, np.nan])
    return random.choice(rare[: random.choice([2, 5, 9, 11])], count).astype(kind)


def moving(seed: int) -> Iterator[str]:
    for number, element in enumerate(KINDS):
        random = np.random.default_rng([seed, 2000 + number])
        kind, count = np.dtype(KINDS[element]), int(random.integers(1, 71))
        arguments = [small(random, kind, count) for _ in range(3)]
        yield from differences(moving_program(element, count), arguments, element, None)


def complex_functions(seed: int) -> Iterator[str]:
    random = np.random.default_rng([seed, 3000])
    count = int(random.integers(1, 71))
    arguments = [small(random, np.dtype(np.complex64), count) for _ in range(3)]
    yield from differences(complex_program(count), arguments, "c64", 1e-5)


def differences(
    program: Program, arguments: list[np.ndarray], element: str, rounding: float | None
) -> Iterator[str]:
    """Where the compiled and the evaluated results differ: in a bit, or with `rounding` by that
    part, or in what is finite or NaN."""
    text = program.text()
    given = arguments
    if element == "bf16":
        given = [
            lamella.from_numpy(one.astype(np.float32)).to(lamella.bfloat16) for one in arguments
        ]
    compiled, evaluated = hlo.compile(text)(*given), hlo.evaluate(text, *given)
    for (name, _), got, expected in zip(program.outputs, compiled, evaluated):
        line = next(one for one in program.lines if one.startswith(f"{name} ="))
        if rounding is None:
            wrong = bits(expected.reshape(-1)) != bits(got.reshape(-1))
        else:
            parts = [one.numpy() for one in (got, expected)]
            if expected.is_complex():
                parts = [one.view(np.float32) for one in parts]
            a, b = (one.astype(np.float64) for one in parts)
            with np.errstate(all="ignore"):
                far = np.abs(a - b) > rounding * np.maximum(np.abs(a), np.abs(b)) + 1e-6
            far &= np.isfinite(a) & np.isfinite(b)
            wrong = far | (np.isnan(a) != np.isnan(b)) | (np.isinf(a) != np.isinf(b))
        for at in np.flatnonzero(wrong)[:1]:
            at //= 2 if expected.is_complex() else 1
            here = [one[at] if at < one.size else None for one in arguments]
            one, other = (x.reshape(-1)[at].item() for x in (expected, got))
            yield f"{line}, of {here}: evaluated {one!r}, compiled {other!r}"
