"""Elementwise operations in the reference evaluator, against XLA's own CPU programs: every element
type, with special values. Accuracy of functions against mpmath."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("jaxlib", reason="XLA is the oracle")
hlo = pytest.importorskip("lamella.hlo")
xla_oracle = pytest.importorskip("xla_oracle")

SIGNED = ["s2", "s4", "s8", "s16", "s32", "s64"]
UNSIGNED = ["u2", "u4", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
SMALL_FLOATS = {
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3": ml_dtypes.float8_e4m3,
    "f8e3m4": ml_dtypes.float8_e3m4,
    "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f4e2m1fn": ml_dtypes.float4_e2m1fn,
    "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
}
DTYPES = {
    "pred": np.bool_,
    **{t: np.dtype(f"int{t[1:]}") for t in SIGNED if int(t[1:]) >= 8},
    **{t: np.dtype(f"uint{t[1:]}") for t in UNSIGNED if int(t[1:]) >= 8},
    "s2": np.int8,
    "s4": np.int8,
    "u2": np.uint8,
    "u4": np.uint8,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
    **SMALL_FLOATS,
}


class Program:
    """HLO text whose arguments and results are types that NumPy has: others travel as integers."""

    def __init__(self):
        self.lines: list[str] = []
        self.arguments: list[np.ndarray] = []
        self.results: list[tuple[str, str]] = []  # name, element type
        self.outputs: list[str] = []

    def add(self, text: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def argument(self, element: str, values: np.ndarray) -> str:
        values = np.asarray(values, DTYPES[element])
        dims = "[" + ",".join(map(str, values.shape)) + "]"
        number = len(self.arguments)
        if element in ("s2", "s4", "u2", "u4"):
            outer = element[0] + "8"
            self.arguments.append(values)
            name = self.add(f"{outer}{dims} parameter({number})")
            return self.add(f"{element}{dims} convert({name})")
        if element == "f4e2m1fn":
            self.arguments.append(values.view(np.uint8))
            name = self.add(f"u8{dims} parameter({number})")
            name = self.add(f"u4{dims} convert({name})")
            return self.add(f"{element}{dims} bitcast-convert({name})")
        if element in SMALL_FLOATS or element == "bf16":
            outer = f"uint{values.dtype.itemsize * 8}"
            self.arguments.append(values.view(outer))
            name = self.add(f"u{outer[4:]}{dims} parameter({number})")
            return self.add(f"{element}{dims} bitcast-convert({name})")
        self.arguments.append(values)
        return self.add(f"{element}{dims} parameter({number})")

    def result(self, label: str, element: str, dims: str, text: str) -> None:
        """An instruction that is one of the program's results."""
        name = self.add(f"{element}{dims} {text}")
        outer = element
        if element in ("s2", "s4", "u2", "u4"):
            outer = element[0] + "8"
            name = self.add(f"{outer}{dims} convert({name})")
        elif element == "f4e2m1fn":
            outer = "u8"
            name = self.add(f"u4{dims} bitcast-convert({name})")
            name = self.add(f"u8{dims} convert({name})")
        elif element in SMALL_FLOATS or element == "bf16":
            outer = "u16" if element == "bf16" else "u8"
            name = self.add(f"{outer}{dims} bitcast-convert({name})")
        self.results.append((label, element))
        self.outputs.append((name, outer + dims))

    def text(self) -> str:
        names = ", ".join(name for name, _ in self.outputs)
        shapes = ", ".join(shape for _, shape in self.outputs)
        root = f"  ROOT root = ({shapes}) tuple({names})"
        return "\n".join(["HloModule m", "ENTRY e {", *self.lines, root, "}", ""])

    def decoded(self, arrays) -> dict[str, np.ndarray]:
        return {
            label: np.asarray(array).view(DTYPES[element])
            for (label, element), array in zip(self.results, arrays, strict=True)
        }

    def ours(self) -> dict[str, np.ndarray]:
        return self.decoded([one.numpy() for one in hlo.evaluate(self.text(), *self.arguments)])

    def xla(self) -> dict[str, np.ndarray]:
        return self.decoded(xla_oracle.run(self.text(), *self.arguments))


def ordered(values: np.ndarray) -> np.ndarray:
    """Floats as integers, neighbours one apart."""
    size = values.dtype.itemsize * 8
    code = values.view(f"int{size}").astype(object)
    return np.where(code < 0, -(code & ((1 << (size - 1)) - 1)), code)


def differences(got: np.ndarray, want: np.ndarray, ulp: int = 0) -> np.ndarray:
    """True where the two differ: by value and sign of zero, or by more than `ulp` steps. A
    subnormal number and the 0 that XLA flushes it to are the same."""
    if got.dtype.kind == "c":
        part = np.float32 if got.dtype == np.complex64 else np.float64
        split = [a.view(part).reshape(*a.shape, 2) for a in (got, want)]
        return differences(*split, ulp).any(-1)
    if got.dtype.kind in "biu":
        return got != want
    wide = [a.astype(np.float64) for a in (got, want)]
    nan = [np.isnan(a) for a in wide]
    if ulp == 0:
        same = (wide[0] == wide[1]) & (np.signbit(wide[0]) == np.signbit(wide[1]))
    else:
        same = np.abs(ordered(got) - ordered(want)) <= ulp
    if got.dtype in (np.float32, np.float64, ml_dtypes.bfloat16):
        tiny = float(ml_dtypes.finfo(got.dtype).smallest_normal)
        same |= (np.abs(wide[0]) <= tiny) & (np.abs(wide[1]) <= tiny)
    if got.dtype == ml_dtypes.float8_e8m0fnu:
        same |= (wide[0] == 2.0**-127) & nan[1]
        nan[1] &= wide[0] != 2.0**-127
    return ~((nan[0] & nan[1]) | (same & ~nan[0] & ~nan[1]))


def assert_same(program: Program, ulp: dict[str, int] | int = 0, arguments=()) -> None:
    got, want = program.ours(), program.xla()
    wrong = []
    for label in got:
        allowed = ulp if isinstance(ulp, int) else ulp.get(label, 0)
        bad = differences(got[label], want[label], allowed)
        for place in list(zip(*np.nonzero(np.atleast_1d(bad)), strict=True))[:4]:
            inputs = [str(np.atleast_1d(a)[place]) for a in arguments]
            g, w = np.atleast_1d(got[label])[place], np.atleast_1d(want[label])[place]
            wrong.append(f"{label}({', '.join(inputs)}): expected {w}, got {g}")
    assert not wrong, "\n".join(wrong)


def integers(element: str) -> np.ndarray:
    bits = int(element[1:])
    low = -(1 << (bits - 1)) if element[0] == "s" else 0
    high = (1 << (bits - (element[0] == "s"))) - 1
    wanted = [0, 1, 2, 3, 5, 7, 31, 33, 64, 100, -1, -2, -3, -7, low, low + 1, high, high - 1]
    return np.array([n for n in dict.fromkeys(wanted) if low <= n <= high], DTYPES[element])


def reals(element: str, subnormals: bool = False) -> np.ndarray:
    dtype = DTYPES[element]
    if element in SMALL_FLOATS:
        # The first number of F8E8M0FNU is subnormal in F32, where XLA works.
        first = 1 if element == "f8e8m0fnu" else 0
        return np.arange(first, 16 if element == "f4e2m1fn" else 256, dtype=np.uint8).view(dtype)
    info = ml_dtypes.finfo(dtype)
    some = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.5, 0.1, 0.3, 0.7, 7.3, 12.5, 33.0, 88.5, 100.0]
    some += [float(info.max), float(info.smallest_normal), float(info.eps), np.inf]
    both = some + [-x for x in some] + [np.nan]
    return np.array(both, dtype)


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = len(values)
    return np.repeat(values, n), np.tile(values, n)


UNARY_OF_SIGNED = ["abs", "negate", "sign", "not", "popcnt", "count-leading-zeros"]
UNARY_OF_UNSIGNED = ["not", "popcnt", "count-leading-zeros"]
EXACT_OF_FLOATS = ["abs", "negate", "sign", "ceil", "floor", "round-nearest-afz"]
EXACT_OF_FLOATS += ["round-nearest-even", "sqrt"]
BINARY_OF_INTEGERS = ["add", "subtract", "multiply", "divide", "remainder", "maximum"]
BINARY_OF_INTEGERS += ["minimum", "and", "or", "xor", "shift-left", "shift-right-arithmetic"]
BINARY_OF_INTEGERS += ["shift-right-logical"]
BINARY_OF_FLOATS = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder"]
DIRECTIONS = ["EQ", "NE", "LT", "LE", "GT", "GE"]


def integer_program(element: str, left: np.ndarray, right: np.ndarray) -> Program:
    program = Program()
    x, y = program.argument(element, left), program.argument(element, right)
    dims = f"[{len(left)}]"
    for op in UNARY_OF_SIGNED if element[0] == "s" else UNARY_OF_UNSIGNED:
        program.result(op, element, dims, f"{op}({x})")
    for op in BINARY_OF_INTEGERS:
        program.result(op, element, dims, f"{op}({x}, {y})")
    for direction in DIRECTIONS:
        text = f"compare({x}, {y}), direction={direction}"
        program.result(direction, "pred", dims, text)
    # XLA's CPU programs read as many bits of an exponent as numbers below the width have.
    exponent = program.argument(element, np.where(right < int(element[1:]), right, 0))
    program.result("power", element, dims, f"power({x}, {exponent})")
    return program


@pytest.mark.parametrize("element", ["s8", "u8", "s16", "s32", "u32", "s64", "u64"])
def test_integers(element):
    left, right = pairs(integers(element))
    assert_same(integer_program(element, left, right), arguments=(left, right))


def python_integer(op: str, a: int, b: int, bits: int, signed: bool) -> int:
    """The exact result of an operation, before it is reduced to the type's bits."""
    mask = (1 << bits) - 1
    quotient = (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else -1
    beyond = (b & mask) >= bits
    return {
        "abs": lambda: abs(a),
        "negate": lambda: -a,
        "sign": lambda: (a > 0) - (a < 0),
        "not": lambda: ~a,
        "popcnt": lambda: (a & mask).bit_count(),
        "count-leading-zeros": lambda: bits - (a & mask).bit_length(),
        "add": lambda: a + b,
        "subtract": lambda: a - b,
        "multiply": lambda: a * b,
        "divide": lambda: quotient,
        "remainder": lambda: a - quotient * b if b else a,
        "maximum": lambda: max(a, b),
        "minimum": lambda: min(a, b),
        "and": lambda: a & b,
        "or": lambda: a | b,
        "xor": lambda: a ^ b,
        "shift-left": lambda: 0 if beyond else a << (b & mask),
        "shift-right-arithmetic": lambda: signed_value(a, bits) >> (bits if beyond else b & mask),
        "shift-right-logical": lambda: 0 if beyond else (a & mask) >> (b & mask),
        "power": lambda: a**b if b >= 0 else {1: 1, -1: (-1) ** (b % 2)}.get(a, 0),
        "EQ": lambda: a == b,
        "NE": lambda: a != b,
        "LT": lambda: a < b,
        "LE": lambda: a <= b,
        "GT": lambda: a > b,
        "GE": lambda: a >= b,
    }[op]()


def signed_value(n: int, bits: int) -> int:
    n &= (1 << bits) - 1
    return n - (1 << bits) if n >> (bits - 1) else n


@pytest.mark.parametrize("element", SIGNED + UNSIGNED)
def test_integers_are_cut_to_their_bits(element):
    # XLA's CPU programs keep more than 4 bits of s4 and u4 inside a fusion.
    bits, signed = int(element[1:]), element[0] == "s"
    left, right = pairs(integers(element))
    program = integer_program(element, left, right)
    wrong = []
    for op, got in program.ours().items():
        for a, b, value in zip(left.tolist(), right.tolist(), got.tolist(), strict=True):
            if op == "power" and b >= bits:
                b = 0
            want = python_integer(op, a, b, bits, signed)
            if op not in DIRECTIONS:
                want = signed_value(want, bits) if signed else want & ((1 << bits) - 1)
            if value != want:
                wrong.append(f"{op}({a}, {b}): expected {want}, got {value}")
    assert wrong == []


def test_large_powers_of_integers_wrap():
    base, exponent = pairs(integers("u64"))
    program = Program()
    x, y = program.argument("u64", base), program.argument("u64", exponent)
    program.result("power", "u64", f"[{len(base)}]", f"power({x}, {y})")
    want = [pow(int(b), int(e), 2**64) for b, e in zip(base, exponent, strict=True)]
    assert program.ours()["power"].tolist() == want


def test_truth_values():
    left, right = pairs(np.array([False, True]))
    program = Program()
    x, y = program.argument("pred", left), program.argument("pred", right)
    for op in ["add", "multiply", "maximum", "minimum", "and", "or", "xor"]:
        program.result(op, "pred", "[4]", f"{op}({x}, {y})")
    program.result("not", "pred", "[4]", f"not({x})")
    for direction in DIRECTIONS:
        text = f"compare({x}, {y}), direction={direction}"
        program.result(direction, "pred", "[4]", text)
    assert_same(program, arguments=(left, right))


@pytest.mark.parametrize("element", FLOATS + list(SMALL_FLOATS))
def test_exact_operations_of_floats(element):
    values = reals(element)
    left, right = pairs(values) if element not in SMALL_FLOATS else pairs(values[::7])
    program = Program()
    x, y = program.argument(element, left), program.argument(element, right)
    dims = f"[{len(left)}]"
    for op in EXACT_OF_FLOATS:
        program.result(op, element, dims, f"{op}({x})")
    program.result("is-finite", "pred", dims, f"is-finite({x})")
    # XLA takes its time to compile; what small floats share with F32 is not tried for each.
    few = element in SMALL_FLOATS and element not in ("f8e4m3fn", "f4e2m1fn")
    for op in BINARY_OF_FLOATS if not few else ["add", "divide", "maximum"]:
        program.result(op, element, dims, f"{op}({x}, {y})")
    for direction in DIRECTIONS if not few else ["LT"]:
        text = f"compare({x}, {y}), direction={direction}"
        program.result(direction, "pred", dims, text)
        program.result("total " + direction, "pred", dims, text + ", type=TOTALORDER")
    assert_same(program, arguments=(left, right))


FUNCTIONS = ["cbrt", "cosine", "erf", "exponential", "exponential-minus-one", "log"]
FUNCTIONS += ["log-plus-one", "logistic", "rsqrt", "sine", "tan", "tanh"]


@pytest.mark.parametrize("element", [*FLOATS, "f8e4m3fn", "f8e5m2"])
def test_functions_against_xla(element):
    # XLA's own functions are a few steps off.
    values = reals(element)
    left, right = pairs(values) if element in FLOATS else pairs(values[::7])
    program = Program()
    x, y = program.argument(element, left), program.argument(element, right)
    dims = f"[{len(left)}]"
    for op in FUNCTIONS:
        if op == "logistic" and element == "f16":
            continue  # XLA's exp(-x) overflows F16 for x below -11
        program.result(op, element, dims, f"{op}({x})")
    for op in ["power", "atan2"]:
        program.result(op, element, dims, f"{op}({x}, {y})")
    assert_same(program, ulp=4 if element in ("f32", "f64") else 1, arguments=(left, right))


ACCURATE = {
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "cbrt": "cbrt",
    "cosh": "cosh",
    "cosine": "cos",
    "erf": "erf",
    "exponential": "exp",
    "exponential-minus-one": "expm1",
    "log": "log",
    "log-plus-one": "log1p",
    "logistic": None,
    "rsqrt": None,
    "sine": "sin",
    "sinh": "sinh",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}
OTHERS = {
    "logistic": lambda m, x: 1 / (1 + m.exp(-x)),
    "rsqrt": lambda m, x: 1 / m.sqrt(x),
    "cbrt": lambda m, x: m.sign(x) * m.cbrt(abs(x)),
    "exponential-minus-one": lambda m, x: m.expm1(x),
}


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_functions_are_accurate(element):
    """Within 2 steps of the real number's rounding, wherever that is a real number."""
    mpmath = pytest.importorskip("mpmath")
    dtype = np.dtype(DTYPES[element])
    generator = np.random.default_rng(7)
    spread = generator.uniform(-1, 1, 60) * 10.0 ** generator.integers(-6, 3, 60)
    values = np.concatenate([spread, generator.uniform(-1, 1, 20)]).astype(dtype)
    program = Program()
    x = program.argument(element, values)
    for op in ACCURATE:
        program.result(op, element, f"[{len(values)}]", f"{op}({x})")
    wrong = []
    with mpmath.workdps(60):
        for op, got in program.ours().items():
            function = OTHERS.get(op) or (lambda m, x, op=op: getattr(m, ACCURATE[op])(x))
            for argument, value in zip(values.tolist(), got, strict=True):
                want = function(mpmath, mpmath.mpf(argument))
                if isinstance(want, mpmath.mpc) or abs(want) > 1e38:
                    continue
                step = float(np.spacing(abs(np.array(float(want), dtype))))
                error = abs(mpmath.mpf(float(value)) - want) / step
                if not error <= (1 if element == "f32" else 2):
                    wrong.append(f"{op}({argument!r}): expected {want}, got {value!r}")
    assert wrong == []


def complexes(element: str) -> np.ndarray:
    part = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -3.25, 1e-3, np.inf, -np.inf, np.nan]
    real, imaginary = pairs(np.array(part))
    values = np.empty(len(real), DTYPES[element])
    values.real, values.imag = real, imaginary
    return values


COMPLEX_FUNCTIONS = ["exponential", "exponential-minus-one", "log", "log-plus-one", "logistic"]
COMPLEX_FUNCTIONS += ["sqrt", "rsqrt", "cosine", "sine", "tan", "tanh"]


@pytest.mark.parametrize("element", ["c64", "c128"])
def test_complex_arithmetic(element):
    left, right = pairs(complexes(element)[::5])
    program = Program()
    x, y = program.argument(element, left), program.argument(element, right)
    dims = f"[{len(left)}]"
    part = "f32" if element == "c64" else "f64"
    for op in ["negate", "sign"]:
        program.result(op, element, dims, f"{op}({x})")
    for op in ["real", "imag"]:
        program.result(op, part, dims, f"{op}({x})")
    for op in ["add", "subtract", "multiply", "divide"]:
        program.result(op, element, dims, f"{op}({x}, {y})")
    for direction in ["EQ", "NE"]:
        program.result(direction, "pred", dims, f"compare({x}, {y}), direction={direction}")
    one, other = program.argument(part, left.real), program.argument(part, right.imag)
    program.result("complex", element, dims, f"complex({one}, {other})")
    assert_same(program, {"sign": 2, "multiply": 2, "divide": 4}, arguments=(left, right))


@pytest.mark.parametrize("element", ["c64", "c128"])
def test_complex_functions_against_xla(element):
    values = complexes(element)
    # XLA takes the root of -x - 0i above its cut, C99 and NumPy below.
    cut = (values.real < 0) & (values.imag == 0) & np.signbit(values.imag)
    values = values[np.isfinite(values) & ~cut]
    left, right = pairs(values)
    program = Program()
    x = program.argument(element, values)
    y, z = program.argument(element, left), program.argument(element, right)
    for op in COMPLEX_FUNCTIONS:
        program.result(op, element, f"[{len(values)}]", f"{op}({x})")
    program.result("abs", "f32" if element == "c64" else "f64", f"[{len(values)}]", f"abs({x})")
    program.result("power", element, f"[{len(left)}]", f"power({y}, {z})")
    got, want = program.ours(), program.xla()
    for op in got:
        tolerance = 3e-5 if element == "c64" else 2e-13
        np.testing.assert_allclose(got[op], want[op], rtol=tolerance, atol=1e-30, err_msg=op)


def test_complex_functions_of_infinities_are_those_of_c99():
    values = complexes("c128")
    program = Program()
    x = program.argument("c128", values)
    numpy = {"exponential": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh}
    numpy |= {"sine": np.sin, "cosine": np.cos, "asin": np.arcsin, "acosh": np.arccosh}
    for op in numpy:
        program.result(op, "c128", f"[{len(values)}]", f"{op}({x})")
    with np.errstate(all="ignore"):
        for op, got in program.ours().items():
            np.testing.assert_allclose(got, numpy[op](values), rtol=1e-14, err_msg=op)


FEW_TARGETS = ["pred", "s8", "u4", "f16", "bf16", "f32", "f8e5m2", "f8e4m3fn", "f8e8m0fnu", "c64"]


@pytest.mark.parametrize("element", [e for e in DTYPES if e not in ("f4e2m1fn", "s2", "u2")])
def test_conversions(element):
    if element == "pred":
        values = np.array([False, True])
    elif element[0] in "su":
        values = integers(element)
    elif element[0] == "c":
        values = complexes(element)
    else:
        values = reals(element)
    if element in ("f32", "f64"):
        edges = [n + d for n in (7, 15, 127, 255, 32767, 2.0**31, 2.0**63, 2.0**64) for d in (0, 1)]
        some = [-n for n in edges] + edges + [0.9, -0.9, 127.5, 1 + 2**-8 + 2**-20, 448, 464, 465]
        values = np.concatenate([values, np.array(some, values.dtype)])
    program = Program()
    x = program.argument(element, values)
    for target in DTYPES:
        # XLA's CPU programs have no conversion from complex numbers to PRED and small floats.
        if target == element or (element[0] == "c" and target not in ("f32", "f64", "c64", "c128")):
            continue
        if element in SMALL_FLOATS and target not in FEW_TARGETS:
            continue  # each of them is a number of F32 first
        program.result(target, target, f"[{len(values)}]", f"convert({x})")
    assert_same(program, arguments=(values,))


def test_parts_of_bits():
    program = Program()
    words = np.array([0x01234567, 0x89ABCDEF, 0xFEDCBA98], np.uint32)
    x = program.argument("u32", words)
    y = program.argument("c128", np.array([1.5 + 2j, -3 + 0.25j]))
    for target, dims in [("u8", "[3,4]"), ("s16", "[3,2]"), ("f32", "[3]"), ("u4", "[3,8]")]:
        program.result(target, target, dims, f"bitcast-convert({x})")
    for target, dims in [("f64", "[2,2]"), ("u64", "[2,2]"), ("u16", "[2,8]"), ("u8", "[2,16]")]:
        program.result("complex " + target, target, dims, f"bitcast-convert({y})")
    got = program.ours()
    for target in ["u8", "s16", "f32"]:
        want = words.view(DTYPES[target]).reshape(got[target].shape)
        assert np.array_equal(got[target], want)
    assert got["u4"][0].tolist() == [7, 6, 5, 4, 3, 2, 1, 0]  # the lowest bits come first
    assert got["complex f64"].tolist() == [[1.5, 2], [-3, 0.25]]
    back = Program()
    for element, dims in [("u8", "[3]"), ("s4", "[3,2]"), ("u2", "[3,4]"), ("u1", "[3,8]")]:
        x = back.argument("u8", np.array([0x1F, 0xA5, 0x80], np.uint8))
        parts = back.add(f"{element}{dims} bitcast-convert({x})")
        back.result(element, "u8", "[3]", f"bitcast-convert({parts})")
    for got in back.ours().values():
        assert got.tolist() == [0x1F, 0xA5, 0x80]


@pytest.mark.parametrize("element", FLOATS)
def test_reduced_precision(element):
    generator = np.random.default_rng(3)
    spread = generator.uniform(-2, 2, 64) * 2.0 ** generator.integers(-20, 20, 64)
    spread = np.clip(spread, -6e4, 6e4)
    values = np.concatenate([spread.astype(DTYPES[element]), reals(element)])
    program = Program()
    x = program.argument(element, values)
    for e, m in [(5, 10), (8, 7), (5, 2), (4, 3), (8, 23), (2, 1), (11, 52), (3, 0), (8, 0)]:
        text = f"reduce-precision({x}), exponent_bits={e}, mantissa_bits={m}"
        program.result(f"e{e}m{m}", element, f"[{len(values)}]", text)
    assert_same(program, arguments=(values,))


def test_stochastic_rounding():
    program = Program()
    values = np.array([1.25, 1.25, -1.25, -1.25, 3.0, 300.0, -300.0, np.nan, np.inf], np.float32)
    words = [0x3FFFFFFF, 0x40000000, 0x3FFFFFFF, 0x40000000, 0, 0, 0, 0, 0]
    x, y = program.argument("f32", values), program.argument("u32", np.array(words, np.uint32))
    program.result("s8", "s8", "[9]", f"stochastic-convert({x}, {y})")
    assert program.ours()["s8"].tolist() == [2, 1, -2, -1, 3, 127, -128, 0, 127]


@pytest.mark.parametrize("element", ["pred", "s4", "u8", "s32", "f16", "f32", "f8e4m3fn", "c128"])
def test_choices(element):
    generator = np.random.default_rng(5)
    if element == "f8e4m3fn":
        left, right = reals(element)[:64], reals(element)[100:164]
    else:
        left, right = (generator.integers(0, 8, 64).astype(DTYPES[element]) for _ in range(2))
    program = Program()
    which = program.argument("pred", generator.integers(0, 2, 64).astype(bool))
    one = program.argument("pred", np.array(True))
    x, y = program.argument(element, left), program.argument(element, right)
    program.result("each", element, "[64]", f"select({which}, {x}, {y})")
    program.result("all", element, "[64]", f"select({one}, {x}, {y})")
    assert_same(program)


@pytest.mark.parametrize("element", ["s8", "u64", "f16", "bf16", "f32", "f64", "f8e5m2"])
def test_clamps(element):
    values = integers(element) if element[0] in "su" else reals(element)
    # Which zero stays is not XLA's own rule: it differs between types.
    values = values[~((values == 0) & np.signbit(values.astype(np.float64)))]
    left, right = pairs(values[::3] if len(values) > 40 else values)
    program = Program()
    x, y = program.argument(element, left), program.argument(element, right)
    low, high = program.argument(element, values[1]), program.argument(element, values[4])
    dims = f"[{len(left)}]"
    program.result("scalars", element, dims, f"clamp({low}, {x}, {high})")
    program.result("arrays", element, dims, f"clamp({x}, {y}, {high})")
    program.result("from one to itself", element, dims, f"clamp({low}, {y}, {x})")
    assert_same(program, arguments=(left, right))
