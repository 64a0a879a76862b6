"""Kinds of instructions in machine code, against NumPy: complex numbers, small float formats,
windows of several arrays, products of mixed types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

lamella = pytest.importorskip("lamella")
hlo = pytest.importorskip("lamella.hlo")

ODD = [0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 3e38, 1e-40]


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def complex_numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return numbers(*shape, seed=seed) + 1j * numbers(*shape, seed=seed + 1)


def run(entry: str, *arguments: np.ndarray, before: str = "") -> list[Any]:
    """The results as machine code, for one thread and for three."""
    text = f"HloModule m\n{before}\nENTRY e {{\n{entry}\n}}\n"
    program = hlo.compile(text)
    explained = program.explain()
    rules = explained.replace("rule of tuple: r (between steps)", "")
    assert "there is no compiler" in explained or "rule of" not in rules, explained
    given = [lamella.tensor(a) for a in arguments]
    results = [r.numpy() for r in program(*given)]
    threads = lamella.get_num_threads()
    try:
        lamella.set_num_threads(3)
        again = [r.numpy() for r in program(*given)]
    finally:
        lamella.set_num_threads(threads)
    assert [r.tobytes() for r in results] == [r.tobytes() for r in again]
    return results


@pytest.mark.parametrize("size", [1, 3, 37, 5000])
@pytest.mark.parametrize(
    ("opcode", "function"),
    [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide)],
)
def test_complex_arithmetic(opcode, function, size):
    x, y = complex_numbers(size), complex_numbers(size, seed=5)
    (got,) = run(
        f"a = c64[{size}] parameter(0)\nb = c64[{size}] parameter(1)\n"
        f"ROOT r = c64[{size}] {opcode}(a, b)",
        x,
        y,
    )
    np.testing.assert_allclose(got, function(x, y), rtol=2e-6)


def test_complex_parts_and_abs_of_odd_numbers():
    pairs = np.array([complex(a, b) for a in ODD for b in ODD], np.complex64)
    n = len(pairs)
    got = run(
        f"a = c64[{n}] parameter(0)\nx = f32[{n}] real(a)\ni = f32[{n}] imag(a)\n"
        f"s = f32[{n}] abs(a)\nm = c64[{n}] negate(a)\ne = pred[{n}] compare(a, a), direction=EQ\n"
        f"d = pred[{n}] compare(a, m), direction=NE\nc = c64[{n}] complex(i, x)\n"
        f"ROOT r = (f32[{n}], f32[{n}], f32[{n}], c64[{n}], pred[{n}], pred[{n}], c64[{n}]) "
        "tuple(x, i, s, m, e, d, c)",
        pairs,
    )
    expected = [pairs.real, pairs.imag, np.abs(pairs), -pairs, pairs == pairs, pairs != -pairs]
    for mine, wanted in zip(got, expected):
        np.testing.assert_array_equal(mine, wanted)
    np.testing.assert_array_equal(got[6].real, pairs.imag)
    np.testing.assert_array_equal(got[6].imag, pairs.real)


def test_complex_division_by_zero():
    x = np.array([1 + 2j, -1 + 0j, 0j], np.complex64)
    (got,) = run(
        "a = c64[3] parameter(0)\nz = c64[] constant((0, 0))\n"
        "b = c64[3] broadcast(z), dimensions={}\nROOT r = c64[3] divide(a, b)",
        x,
    )
    assert np.isinf(got[:2]).all()
    assert np.isnan(got[2])


REDUCER = "f {{\n  p = c64[] parameter(0)\n  q = c64[] parameter(1)\n  ROOT r = c64[] {}(p, q)\n}}"


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize(("opcode", "start"), [("add", 0), ("multiply", 1)])
def test_complex_reductions(opcode, start, dims):
    x = complex_numbers(9, 37) * 0.9
    result = [n for d, n in enumerate(x.shape) if d not in dims]
    (got,) = run(
        f"a = c64[9,37] parameter(0)\nz = c64[] constant(({start}, 0))\n"
        f"ROOT r = c64[{','.join(map(str, result))}] reduce(a, z), "
        f"dimensions={{{','.join(map(str, dims))}}}, to_apply=f",
        x,
        before=REDUCER.format(opcode),
    )
    function = np.sum if opcode == "add" else np.prod
    expected = function(x.astype(np.complex128), axis=dims)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_complex_elements_move():
    x, n = complex_numbers(6, 5), np.array([4, 0, 9, -3], np.int32)
    got = run(
        "a = c64[6,5] parameter(0)\nn = s32[4] parameter(1)\nz = c64[] constant((7, -8))\n"
        "t = c64[5,6] transpose(a), dimensions={1,0}\nv = c64[5,6] reverse(t), dimensions={1}\n"
        "p = c64[7,9] pad(v, z), padding=1_1x0_3\n"
        "g = c64[4,5] gather(a, n), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1,5}\n"
        "c = c64[10,5] concatenate(a, g), dimensions={0}\n"
        "ROOT r = (c64[7,9], c64[10,5]) tuple(p, c)",
        x,
        n,
    )
    padded = np.pad(x.T[:, ::-1], ((1, 1), (0, 3)), constant_values=np.complex64(7 - 8j))
    np.testing.assert_array_equal(got[0], padded)
    np.testing.assert_array_equal(got[1], np.concatenate([x, x[[4, 0, 5, 0]]]))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize(("exponent", "mantissa"), [(5, 10), (8, 7), (4, 3), (3, 0), (1, 2)])
def test_reduce_precision(dtype, exponent, mantissa):
    exponents = np.linspace(-60, 60, 400)
    values = np.concatenate([np.sign(np.sin(exponents * 99)) * 1.37 * 2.0**exponents, ODD])
    kinds = {"f16": lamella.float16, "bf16": lamella.bfloat16, "f32": lamella.float32}
    with np.errstate(over="ignore"):
        x = lamella.tensor(values).to(kinds.get(dtype, lamella.float64))
    text = (
        f"HloModule m\nENTRY e {{\na = {dtype}[{len(values)}] parameter(0)\n"
        f"ROOT r = {dtype}[{len(values)}] reduce-precision(a), exponent_bits={exponent}, "
        f"mantissa_bits={mantissa}\n}}\n"
    )
    (got,), (expected,) = hlo.compile(text)(x), hlo.evaluate(text, x)
    np.testing.assert_array_equal(got.double().numpy(), expected.double().numpy())


def test_window_of_two_arrays():
    x, y = numbers(11, 23), numbers(11, 23, seed=3)
    got = run(
        "a = f32[11,23] parameter(0)\nb = f32[11,23] parameter(1)\nm = f32[] constant(-inf)\n"
        "z = f32[] constant(0)\n"
        "w = (f32[11,12], f32[11,12]) reduce-window(a, b, m, z), "
        "window={size=1x3 stride=1x2 pad=0_0x1_1}, to_apply=f\n"
        "v = f32[11,12] get-tuple-element(w), index=1\nn = f32[11,12] negate(v)\n"
        "k = f32[11,12] get-tuple-element(w), index=0\n"
        "ROOT r = (f32[11,12], f32[11,12]) tuple(k, n)",
        x,
        y,
        before="""f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  m = f32[] maximum(a, c)
  g = pred[] compare(a, c), direction=GT
  s = f32[] select(g, b, d)
  ROOT t = (f32[], f32[]) tuple(m, s)
}""",
    )
    wide = np.pad(x, ((0, 0), (1, 1)), constant_values=-np.inf)
    behind = np.pad(y, ((0, 0), (1, 1)))
    at = np.arange(12) * 2
    windows = np.stack([wide[:, at + k] for k in range(3)])
    which = windows.argmax(0)
    np.testing.assert_array_equal(got[0], windows.max(0))
    chosen = np.take_along_axis(np.stack([behind[:, at + k] for k in range(3)]), which[None], 0)[0]
    np.testing.assert_array_equal(got[1], -chosen)


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("s8", "s8", "s32"),
        ("u8", "s8", "s32"),
        ("s32", "s32", "s8"),
        ("pred", "s16", "s64"),
        ("bf16", "bf16", "f32"),
        ("f16", "bf16", "f32"),
        ("f32", "f32", "f64"),
        ("f32", "f32", "bf16"),
        ("f64", "f32", "f32"),
        ("s32", "f32", "f32"),
        ("f32", "c64", "c64"),
    ],
)
def test_products_of_mixed_types(left, right, result):
    random = np.random.default_rng(1)
    kinds = {
        "s8": lamella.int8, "u8": lamella.uint8, "s16": lamella.int16, "s32": lamella.int32,
        "s64": lamella.int64, "pred": lamella.bool, "f16": lamella.float16,
        "c64": lamella.complex64,
        "bf16": lamella.bfloat16, "f32": lamella.float32, "f64": lamella.float64,
    }  # fmt: skip
    a = lamella.tensor(random.integers(-3 if left[0] != "u" else 0, 9, (17, 40)))
    b = lamella.tensor(random.integers(-3, 9, (40, 19)))
    a, b = a.to(kinds[left]), b.to(kinds[right])
    text = (
        f"HloModule m\nENTRY e {{\na = {left}[17,40] parameter(0)\n"
        f"b = {right}[40,19] parameter(1)\nROOT r = {result}[17,19] dot(a, b), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    )
    program = hlo.compile(text)
    assert "rule of dot" not in program.explain()
    (got,), (expected,) = program(a, b), hlo.evaluate(text, a, b)
    assert got.dtype == expected.dtype == kinds[result]
    wide = lamella.complex128 if result == "c64" else lamella.float64
    np.testing.assert_allclose(got.to(wide).numpy(), expected.to(wide).numpy(), rtol=1e-5)


@pytest.mark.parametrize("labels", ["bf_oi->bf", "fb_io->fb"])
def test_convolution_without_dimensions_is_a_product(labels):
    x, k = numbers(6, 9), numbers(9, 4, seed=2)
    a, b = (x, k.T.copy()) if labels.startswith("b") else (x.T.copy(), k)
    shape = (6, 4) if labels.startswith("b") else (4, 6)
    (got,) = run(
        f"a = f32[{a.shape[0]},{a.shape[1]}] parameter(0)\n"
        f"b = f32[{b.shape[0]},{b.shape[1]}] parameter(1)\n"
        f"ROOT r = f32[{shape[0]},{shape[1]}] convolution(a, b), dim_labels={labels}",
        a,
        b,
    )
    expected = x @ k
    np.testing.assert_allclose(
        got, expected if labels[0] == "b" else expected.T, rtol=2e-5, atol=1e-5
    )


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "s32", "u8"])
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
@pytest.mark.parametrize(
    ("sizes", "dims"),
    [((7, 100), (1,)), ((100, 7), (0,)), ((4, 1), (1,)), ((3, 700), (1,)), ((140000,), (0,))],
)
def test_extremes(dtype, opcode, sizes, dims):
    random = np.random.default_rng(len(sizes))
    kinds = {"f16": lamella.float16, "bf16": lamella.bfloat16, "f32": lamella.float32,
             "f64": lamella.float64, "s32": lamella.int32, "u8": lamella.uint8}  # fmt: skip
    is_float = dtype[-1] != "8" and dtype != "s32"
    extremes = [0.0, -0.0, np.inf, -np.inf, 3.0, -3.0, np.nan, -np.nan]
    result = [n for d, n in enumerate(sizes) if d not in dims]
    text = (
        f"HloModule m\nf {{\np = {dtype}[] parameter(0)\nq = {dtype}[] parameter(1)\n"
        f"ROOT r = {dtype}[] {opcode}(p, q)\n}}\nENTRY e {{\n"
        f"a = {dtype}[{','.join(map(str, sizes))}] parameter(0)\ni = {dtype}[] parameter(1)\n"
        f"ROOT r = {dtype}[{','.join(map(str, result))}] reduce(a, i), "
        f"dimensions={{{','.join(map(str, dims))}}}, to_apply=f\n}}\n"
    )
    program = hlo.compile(text)
    # The rows hold zeros alone, infinities, and numbers beside a NaN, of either sign.
    for count, start in ((2, 0.0), (2, -0.0), (4, np.inf), (4, -np.inf), (8, 1.0)):
        x = np.array(extremes[:count])[random.integers(0, count, sizes)]
        if count == 8:
            odd = random.random(sizes) > 2 / sizes[dims[0]]
            x = np.where(odd, random.normal(size=sizes), x)
        if not is_float:
            x, start = random.integers(0, 100, sizes), 50
        a, i = lamella.tensor(x).to(kinds[dtype]), lamella.tensor(start).to(kinds[dtype])
        (got,), (expected,) = program(a, i), hlo.evaluate(text, a, i)
        mine, wanted = got.double().numpy(), expected.double().numpy()
        np.testing.assert_array_equal(mine, wanted)
        zeros = wanted == 0
        np.testing.assert_array_equal(np.signbit(mine)[zeros], np.signbit(wanted)[zeros])


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("size", [3, 16, 100, 127, 300])
def test_short_rows_are_those_of_numpy(rows, size):
    x = numbers(rows, size)
    got = run(
        f"a = f32[{rows},{size}] parameter(0)\nm = f32[] constant(-inf)\nz = f32[] constant(0)\n"
        f"h = f32[{rows}] reduce(a, m), dimensions={{1}}, to_apply=g\n"
        f"b = f32[{rows},{size}] broadcast(h), dimensions={{0}}\n"
        f"d = f32[{rows},{size}] subtract(a, b)\ne = f32[{rows},{size}] exponential(d)\n"
        f"s = f32[{rows}] reduce(e, z), dimensions={{1}}, to_apply=f\n"
        f"t = f32[{rows},{size}] broadcast(s), dimensions={{0}}\n"
        f"q = f32[{rows},{size}] divide(e, t)\n"
        f"ROOT r = (f32[{rows},{size}], f32[{rows}], f32[{rows},{size}]) tuple(q, s, e)",
        x,
        before="f {\np = f32[] parameter(0)\nq = f32[] parameter(1)\nROOT r = f32[] add(p, q)\n}\n"
        "g {\np = f32[] parameter(0)\nq = f32[] parameter(1)\nROOT r = f32[] maximum(p, q)\n}\n",
    )
    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(got[0], wide / wide.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(got[1], wide.sum(1), rtol=1e-5)
    np.testing.assert_allclose(got[2], wide, rtol=1e-5)


@pytest.mark.parametrize("opcode", ["maximum", "minimum", "add", "multiply"])
def test_halves(opcode):
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 6e-8, 1.0])
    values = np.concatenate([np.repeat(special, 8), np.random.default_rng(2).normal(size=59)])
    other = np.concatenate([np.tile(special, 8), np.random.default_rng(3).normal(size=59)])
    a, b = (lamella.tensor(v).to(lamella.float16) for v in (values, other))
    n = len(values)
    text = (
        f"HloModule m\nENTRY e {{\na = f16[{n}] parameter(0)\nb = f16[{n}] parameter(1)\n"
        f"o = f16[] constant(1.5)\nc = f16[{n}] broadcast(o), dimensions={{}}\n"
        f"d = f16[{n}] maximum(b, c)\nx = f16[{n}] {opcode}(a, b)\n"
        f"l = pred[{n}] compare(x, b), direction=LT\n"
        f"s = f16[{n}] select(l, x, a)\nm = f16[{n}] abs(s)\n"
        f"ROOT r = (f16[{n}], pred[{n}], f16[{n}], f16[{n}], f16[{n}]) tuple(x, l, m, c, d)\n}}\n"
    )
    for got, expected in zip(hlo.compile(text)(a, b), hlo.evaluate(text, a, b)):
        mine, wanted = got.double().numpy(), expected.double().numpy()
        np.testing.assert_array_equal(mine, wanted)
        np.testing.assert_array_equal(
            np.signbit(mine)[wanted == 0], np.signbit(wanted)[wanted == 0]
        )


@pytest.mark.parametrize("columns", [2, 3, 7])
@pytest.mark.parametrize("rows", [1, 5, 33, 40000])
def test_short_last_dimension(rows, columns):
    x, y = np.abs(numbers(rows)) + 0.5, numbers(columns)
    shape = f"f32[{rows},{columns}]"
    (got,) = run(
        f"a = f32[{rows}] parameter(0)\nb = f32[{columns}] parameter(1)\n"
        f"c = {shape} broadcast(a), dimensions={{0}}\nd = {shape} broadcast(b), dimensions={{1}}\n"
        f"ROOT r = {shape} power(c, d)",
        x,
        y,
    )
    np.testing.assert_allclose(got, x[:, None].astype(np.float64) ** y[None], rtol=1e-5)


@pytest.mark.parametrize("dtype", ["u8", "bf16", "f32", "f64", "c64"])
@pytest.mark.parametrize(
    ("sizes", "order"),
    [((150, 131), (1, 0)), ((7, 1, 60, 50), (3, 0, 1, 2)), ((6, 5, 30, 40), (0, 2, 3, 1))],
)
def test_many_elements_are_transposed(dtype, sizes, order):
    kinds = {"u8": lamella.uint8, "bf16": lamella.bfloat16, "f32": lamella.float32,
             "f64": lamella.float64, "c64": lamella.complex64}  # fmt: skip
    x = lamella.tensor(np.random.default_rng(0).integers(0, 200, sizes)).to(kinds[dtype])
    to = ",".join(str(sizes[d]) for d in order)
    text = (
        f"HloModule m\nENTRY e {{\na = {dtype}[{','.join(map(str, sizes))}] parameter(0)\n"
        f"b = {dtype}[{','.join(map(str, sizes))}] add(a, a)\n"
        f"t = {dtype}[{to}] transpose(a), dimensions={{{','.join(map(str, order))}}}\n"
        f"u = {dtype}[{to}] transpose(b), dimensions={{{','.join(map(str, order))}}}\n"
        f"s = {dtype}[{to}] add(t, u)\nn = {dtype}[{x.numel()}] reshape(u)\n"
        f"ROOT r = ({dtype}[{to}], {dtype}[{to}], {dtype}[{x.numel()}]) tuple(t, s, n)\n}}\n"
    )
    turned = x.permute(order)
    got = hlo.compile(text)(x)
    assert lamella.equal(got[0], turned.contiguous())
    assert lamella.equal(got[1], turned + (turned + turned))
    assert lamella.equal(got[2], (turned + turned).reshape(-1))


@pytest.mark.parametrize("dtype", ["u8", "f16", "f32", "f64", "c64"])
@pytest.mark.parametrize("stride", [2, 3, 4, 5])
@pytest.mark.parametrize("size", [5, 64, 1001])
def test_elements_apart(dtype, stride, size):
    kinds = {"u8": lamella.uint8, "f16": lamella.float16, "f32": lamella.float32,
             "f64": lamella.float64, "c64": lamella.complex64}  # fmt: skip
    x = lamella.tensor(np.random.default_rng(0).integers(0, 99, (3, size))).to(kinds[dtype])
    count = len(range(1, size, stride))
    text = (
        f"HloModule m\nENTRY e {{\na = {dtype}[3,{size}] parameter(0)\n"
        f"s = {dtype}[3,{count}] slice(a), slice={{[0:3], [1:{size}:{stride}]}}\n"
        f"ROOT r = {dtype}[3,{count}] add(s, s)\n}}\n"
    )
    (got,) = hlo.compile(text)(x)
    assert lamella.equal(got, x[:, 1::stride] + x[:, 1::stride])


@pytest.mark.parametrize("columns", [1, 3, 40, 100, 1000, 2048, 2501])
@pytest.mark.parametrize("opcode", ["add", "maximum"])
def test_columns_are_reduced(opcode, columns):
    x = numbers(37, columns)
    (got,) = run(
        f"a = f32[37,{columns}] parameter(0)\nz = f32[] constant(0.5)\n"
        f"b = f32[37,{columns}] multiply(a, a)\n"
        f"ROOT r = f32[{columns}] reduce(b, z), dimensions={{0}}, to_apply=f",
        x,
        before=f"f {{\np = f32[] parameter(0)\nq = f32[] parameter(1)\n"
        f"ROOT r = f32[] {opcode}(p, q)\n}}",
    )
    wide = x.astype(np.float64) ** 2
    expected = wide.sum(0) + 0.5 if opcode == "add" else np.maximum(wide.max(0), 0.5)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


NARROW = {
    "bf16": (lamella.bfloat16, "f32"),
    "s8": (lamella.int8, "s32"),
    "u8": (lamella.uint8, "s32"),
}


@pytest.mark.parametrize("kind", list(NARROW))
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 64, 96), (3, 130, 50), (8, 384, 192), (40, 96, 49), (33, 7, 65)]
)
@pytest.mark.parametrize("turned", [False, True])
def test_products_of_narrow_numbers_with_kept_weights(kind, m, k, n, turned):
    dtype, sums = NARROW[kind]
    right = "s8" if kind == "u8" else kind
    random = np.random.default_rng(m)
    low = 0 if kind == "u8" else -128
    x = lamella.tensor(random.integers(low, 128, (m, k))).to(dtype)
    shape = (n, k) if turned else (k, n)
    w = lamella.tensor(random.integers(-128, 128, shape)).to(NARROW[right][0])
    row = random.integers(-9, 9, n).astype(np.float32 if sums == "f32" else np.int32)
    program = hlo.compile(
        f"HloModule m\nENTRY e {{\nx = {kind}[{m},{k}] parameter(0)\n"
        f"w = {right}[{shape[0]},{shape[1]}] parameter(1)\nrow = {sums}[{n}] parameter(2)\n"
        f"p = {sums}[{m},{n}] dot(x, w), lhs_contracting_dims={{1}}, "
        f"rhs_contracting_dims={{{int(turned)}}}\n"
        f"b = {sums}[{m},{n}] broadcast(row), dimensions={{1}}\n"
        f"ROOT r = {sums}[{m},{n}] add(p, b)\n}}\n"
    )

    def wide(t: Any) -> np.ndarray:
        return t.to(lamella.float64).numpy()

    # Products of these numbers are whole and below 2^15 k, so float32 sums of them are exact.
    for _ in range(4):
        (got,) = program(x, w, lamella.tensor(row))
        right_side = wide(w).T if turned else wide(w)
        np.testing.assert_array_equal(wide(got), wide(x) @ right_side + row)
        last = np.copy(wide(got))
    w.mul_(-1) if kind == "bf16" else w.bitwise_not_()
    (got,) = program(x, w, lamella.tensor(row))
    right_side = wide(w).T if turned else wide(w)
    np.testing.assert_array_equal(wide(got), wide(x) @ right_side + row)
    assert not np.array_equal(last, wide(got))


@pytest.mark.parametrize("kind", list(NARROW))
def test_batches_of_products_of_narrow_numbers(kind):
    dtype, sums = NARROW[kind]
    right = "s8" if kind == "u8" else kind
    random = np.random.default_rng(5)
    x = random.integers(0, 100, (2, 3, 20, 64))
    y = random.integers(-100, 100, (2, 24, 3, 64))
    program = hlo.compile(
        f"HloModule m\nENTRY e {{\nx = {kind}[2,3,20,64] parameter(0)\n"
        f"y = {right}[2,24,3,64] parameter(1)\n"
        f"t = {right}[2,3,24,64] transpose(y), dimensions={{0,2,1,3}}\n"
        f"ROOT r = {sums}[2,3,20,24] dot(x, t), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,1}}, "
        "lhs_contracting_dims={3}, rhs_contracting_dims={3}\n}\n"
    )
    (got,) = program(lamella.tensor(x).to(dtype), lamella.tensor(y).to(NARROW[right][0]))
    np.testing.assert_array_equal(got.to(lamella.int64).numpy(), np.einsum("abik,ajbk->abij", x, y))


def test_rounded_products_of_bfloat16():
    random = np.random.default_rng(6)
    x = lamella.tensor(random.normal(size=(20, 512)).astype(np.float32)).to(lamella.bfloat16)
    w = lamella.tensor(random.normal(size=(512, 80)).astype(np.float32)).to(lamella.bfloat16)
    program = hlo.compile(
        "HloModule m\nENTRY e {\nx = bf16[20,512] parameter(0)\nw = bf16[512,80] parameter(1)\n"
        "ROOT p = f32[20,80] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    )
    left, right = x.to(lamella.float64).numpy(), w.to(lamella.float64).numpy()
    (got,) = program(x, w)
    assert np.all(np.abs(got.numpy() - left @ right) < 512 * 2e-7 * (np.abs(left) @ np.abs(right)))


def test_long_programs_with_small_arrays():
    """Small arrays are on the stack; the loops that threads share find them in tables."""
    layers = 45
    lines = ["x0 = f32[32,384] parameter(0)", "zero = f32[] constant(0)"]
    for n in range(layers):
        lines += [
            f"w{n} = f32[384,384] parameter({n + 1})",
            f"t{n} = f32[32,384] tanh(x{n})",
            f"a{n} = f32[32,384] multiply(t{n}, t{n})",
            f"sum{n} = f32[32] reduce(a{n}, zero), dimensions={{1}}, to_apply=sum",
            f"p{n} = f32[32,384] dot(t{n}, w{n}), lhs_contracting_dims={{1}}, "
            "rhs_contracting_dims={0}",
            f"less{n} = f32[32] negate(sum{n})",
            f"b{n} = f32[32,384] broadcast(less{n}), dimensions={{0}}",
            f"h{n} = f32[32,384] tanh(p{n})",
            f"{'ROOT ' if n == layers - 1 else ''}x{n + 1} = f32[32,384] maximum(h{n}, b{n})",
        ]
    before = "sum { a = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT r = f32[] add(a, b) }"
    x, weights = numbers(32, 384), [0.055 * numbers(384, 384, seed=n) for n in range(layers)]
    (got,) = run("\n".join(lines), x, *weights, before=before)
    expected = x.astype(np.float64)
    for w in weights:
        t = np.tanh(expected)
        expected = np.maximum(np.tanh(t @ w), -(t * t).sum(1, keepdims=True))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
