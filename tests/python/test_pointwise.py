"""Pointwise operators and reductions against PyTorch: values, dtypes, strides, out and in place."""

import itertools
import os
import subprocess
import sys

import numpy as np
import operator_cases
import pytest

import lamella

torch = pytest.importorskip("torch")

ONES = lamella.ones(2)
NAMES = [
    "bool", "uint8", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
FLOATS = ["float16", "bfloat16", "float32", "float64"]
# Relative tolerances; float32 and float64 functions are within a few units in the last place.
TOLERANCE = {
    "float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-13,
    "complex64": 4e-6, "complex128": 1e-12,
}  # fmt: skip


def td(name):
    return getattr(torch, name)


def ld(name):
    return getattr(lamella, name)


def name_of(dtype):
    return str(dtype).split(".")[-1]


def to_lamella(tensor):
    """The same values, shape and strides; bfloat16 by way of float32."""
    if tensor.dim() and not tensor.is_contiguous():
        order = sorted(range(tensor.dim()), key=lambda d: -tensor.stride(d))
        dense = to_lamella(tensor.permute(order).contiguous())
        return dense.permute([order.index(d) for d in range(tensor.dim())])
    if tensor.dtype == torch.bfloat16:
        return lamella.from_numpy(tensor.float().numpy()).to(lamella.bfloat16)
    return lamella.from_numpy(tensor.detach().numpy().copy())


def to_torch(tensor):
    if not isinstance(tensor, lamella.Tensor):
        return tensor
    if name_of(tensor.dtype) == "bfloat16":
        return torch.from_numpy(tensor.to(lamella.float32).numpy()).to(torch.bfloat16)
    return torch.from_numpy(np.array(tensor.numpy()))


def sample(name, shape, seed=0, low=-4.0, high=4.0):
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    dtype = td(name)
    if dtype.is_complex:
        imag = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
        return torch.complex(values, imag).to(dtype)
    if name == "bool":
        return values > 0
    if name == "uint8":
        return (values.abs() * 10).to(dtype)
    return (values * (1 if dtype.is_floating_point else 5)).to(dtype)


def check(got, want, tolerance=None):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            check(g, w, tolerance)
        return
    if not isinstance(want, torch.Tensor):
        assert got == want
        return
    assert name_of(got.dtype) == name_of(want.dtype)
    assert tuple(got.shape) == tuple(want.shape)
    got = to_torch(got)
    rtol = tolerance or TOLERANCE.get(name_of(want.dtype), 0)
    torch.testing.assert_close(got, want, rtol=rtol, atol=rtol, equal_nan=True)


def agree(f, *arguments, tolerance=None, **keywords):
    """f(module, tensors...) gives the same with both libraries, or fails with both."""
    try:
        want = f(torch, *arguments, **keywords)
    except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
        with pytest.raises((RuntimeError, TypeError, IndexError, ValueError)):
            f(lamella, *[to_lamella(a) if isinstance(a, torch.Tensor) else a for a in arguments],
              **keywords)  # fmt: skip
        return
    got = f(
        lamella,
        *[to_lamella(a) if isinstance(a, torch.Tensor) else a for a in arguments],
        **keywords,
    )
    check(got, want, tolerance)


# (operator, lowest, highest value of the sample); complex only where the branch cuts are not in it.
UNARY = [
    ("neg", -4, 4), ("abs", -4, 4), ("sign", -4, 4), ("sgn", -4, 4), ("square", -4, 4),
    ("reciprocal", 0.5, 4), ("sqrt", 0.1, 4), ("rsqrt", 0.1, 4), ("exp", -4, 4), ("exp2", -4, 4),
    ("expm1", -2, 2), ("log", 0.1, 4), ("log2", 0.1, 4), ("log10", 0.1, 4), ("log1p", -0.5, 4),
    ("sin", -4, 4), ("cos", -4, 4), ("tan", -1, 1), ("asin", -0.9, 0.9), ("acos", -0.9, 0.9),
    ("atan", -4, 4), ("sinh", -3, 3), ("cosh", -3, 3), ("tanh", -3, 3), ("asinh", -4, 4),
    ("acosh", 1.1, 4), ("atanh", -0.9, 0.9), ("sigmoid", -4, 4), ("erf", -3, 3), ("erfc", -2, 2),
    ("erfinv", -0.95, 0.95), ("lgamma", 0.5, 8), ("digamma", 0.5, 8), ("ceil", -4, 4),
    ("floor", -4, 4), ("round", -4, 4), ("trunc", -4, 4), ("frac", -4, 4), ("relu", -4, 4),
    ("logical_not", -4, 4), ("bitwise_not", -4, 4), ("isnan", -4, 4), ("isinf", -4, 4),
    ("isfinite", -4, 4), ("signbit", -4, 4), ("nan_to_num", -4, 4), ("angle", -4, 4),
    ("isposinf", -4, 4), ("isneginf", -4, 4),
]  # fmt: skip
# Results near a zero of the function, or with an argument that float16 rounds first.
LOOSE = {"lgamma": 4e-6, "digamma": 2e-5, "erfinv": 4e-6, "expm1": 1e-5, "log": 4e-6}


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("op,low,high", UNARY)
def test_unary(op, low, high, dtype):
    x = sample(dtype, (5, 7), low=low, high=high)
    tolerance = LOOSE.get(op) if dtype in ("float32", "complex64") else None
    if dtype in ("bool", "uint8", "int8", "int16", "int32", "int64"):
        tolerance = 1e-5
    agree(lambda m, x: getattr(m, op)(x), x, tolerance=tolerance)


@pytest.mark.parametrize("op", [row[0] for row in UNARY])
def test_unary_special_values(op):
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e-30, 1e30])
    for dtype in (torch.float32, torch.float64):
        if op in ("sin", "cos", "tan"):
            continue  # of 1e30: compared on moderate arguments only
        agree(lambda m, x: getattr(m, op)(x), x.to(dtype), tolerance=1e-5)


@pytest.mark.parametrize("length", [1, 3, 15, 16, 17, 64, 511, 512, 513, 40000])
def test_lengths(length):
    x = sample("float32", (length,))
    agree(lambda m, x: m.exp(x), x)
    agree(lambda m, x: m.add(x, x), x)
    agree(lambda m, x: m.sum(x), x, tolerance=1e-5)
    agree(lambda m, x: m.add(x, 1.5), x.to(torch.float16))


BINARY = [
    "add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "maximum", "minimum",
    "fmax", "fmin", "atan2", "hypot", "copysign", "logaddexp", "logaddexp2", "nextafter", "gcd",
    "lcm", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor", "xlogy",
]  # fmt: skip


@pytest.mark.parametrize(
    "op, dtype",
    list(itertools.product(BINARY, NAMES)),
)
def test_binary(op, dtype):
    low = 0.5 if op in ("pow", "xlogy") else -4
    a, b = sample(dtype, (3, 5), 1, low, 4), sample(dtype, (3, 5), 2, low, 4)
    if op in ("div", "floor_divide", "remainder", "fmod") and not td(dtype).is_floating_point:
        b = torch.where(b == 0, torch.ones_like(b), b)
    tolerance = 2e-5 if op in ("pow", "logaddexp", "logaddexp2") and dtype != "float64" else None
    if dtype in ("float16", "bfloat16"):
        tolerance = None
    agree(lambda m, a, b: getattr(m, op)(a, b), a, b, tolerance=tolerance)


@pytest.mark.parametrize("op", ["add", "mul", "div", "lt", "maximum", "pow"])
@pytest.mark.parametrize("pair", list(itertools.product(NAMES, NAMES)))
def test_promotion(op, pair):
    a = sample(pair[0], (2, 3), 1, 1, 3)
    b = sample(pair[1], (2, 3), 2, 1, 3)
    tolerance = 1e-2 if "float16" in pair or "bfloat16" in pair else 1e-5
    agree(lambda m, a, b: getattr(m, op)(a, b), a, b, tolerance=tolerance)
    if "float16" in pair and "complex" in pair[1]:
        return  # complex32 is stored, not computed with
    zero = b.flatten()[0].clone()
    agree(lambda m, a, b: getattr(m, op)(a, b), a, zero, tolerance=tolerance)


@pytest.mark.parametrize(
    "number, dtype",
    # complex32 is stored, not computed with.
    [*itertools.product([2, 1.5, True], NAMES), *((1 + 2j, n) for n in NAMES if n != "float16")],
)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "eq", "ge", "pow", "remainder"])
def test_numbers(op, number, dtype):
    a = sample(dtype, (4,), 3, 1, 3)
    tolerance = 1e-5 if td(dtype).is_complex or dtype == "float32" else None
    agree(lambda m, a: getattr(m, op)(a, number), a, tolerance=tolerance)


SHAPES = [
    ((3, 4), (4,)), ((3, 4), (3, 1)), ((1,), (5,)), ((), (2, 3)), ((2, 1, 4), (3, 1)),
    ((0, 3), (1, 3)), ((2, 3, 4, 5), (5,)), ((7, 1), (1, 600)), ((4, 3), (5,)), ((2, 2), (3, 2)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize(
    "dtypes", [("float32", "float32"), ("float32", "int64"), ("int8", "float16")]
)
def test_broadcast(shapes, dtypes):
    a, b = sample(dtypes[0], shapes[0], 1), sample(dtypes[1], shapes[1], 2)
    agree(lambda m, a, b: m.mul(a, b), a, b, tolerance=1e-3)
    agree(lambda m, a, b: m.mul(b, a), a, b, tolerance=1e-3)
    agree(lambda m, a, b: m.lt(a, b), a, b)


def layouts():
    x = sample("float32", (2, 3, 4, 5))
    yield x
    yield x.transpose(1, 2)
    yield x.permute(3, 1, 0, 2)
    yield x.to(memory_format=torch.channels_last)
    yield x.permute(3, 2, 1, 0)


def test_strides_are_preserved():
    for x in layouts():
        y = to_lamella(x)
        assert y.stride() == x.stride()
        for f in (lambda m, t: m.exp(t), lambda m, t: m.add(t, t), lambda m, t: m.eq(t, t)):
            want, got = f(torch, x), f(lamella, y)
            assert got.stride() == want.stride()
            check(got, want)
        check(lamella.mul(y, y[:, :1]), torch.mul(x, x[:, :1]))


def test_sliced_operands():
    x = sample("float32", (6, 8))
    y = to_lamella(x)
    check(lamella.add(y[::2, 1:5], y[1::2, 3:7]), torch.add(x[::2, 1:5], x[1::2, 3:7]))
    check(lamella.exp(y[:, ::3]), torch.exp(x[:, ::3]))
    y[::2, 1:5].mul_(2)
    x[::2, 1:5].mul_(2)
    check(y, x)


def test_out_and_in_place():
    a, b = sample("float32", (3, 4), 1), sample("float32", (3, 4), 2)
    la, lb = to_lamella(a), to_lamella(b)
    for dtype in ("float32", "float64", "float16", "complex64"):
        want = torch.add(a, b, out=torch.empty(3, 4, dtype=td(dtype)))
        out = lamella.empty(3, 4, dtype=ld(dtype))
        assert lamella.add(la, lb, out=out) is out
        check(out, want)
    small = lamella.empty(0)
    lamella.add(la, lb, out=small)
    check(small, a + b)
    transposed = lamella.empty(4, 3).t()
    lamella.add(la, lb, out=transposed)
    check(transposed, a + b)
    la.add_(lb, alpha=2)
    a.add_(b, alpha=2)
    check(la, a)
    la.add_(1)
    a.add_(1)
    check(la, a)
    la.lt_(lb)
    a.lt_(b)
    check(la, a)


@pytest.mark.parametrize(
    "call,text",
    [
        (lambda: lamella.add(lamella.ones(3, 4), lamella.ones(5)),
         "add: expected 'other' to be broadcastable to [3, 4], got [5]"),
        (lambda: lamella.ones(4).add_(lamella.ones(3, 4)),
         "add_: expected 'self' to have the shape of the result, [3, 4], got [4]"),
        (lambda: lamella.add(ONES, ONES, out=ONES.to(lamella.int64)),
         "add: expected 'out' to have a dtype that the result's, float32, can be cast to, "
         "got int64"),
        (lambda: lamella.ones(1).expand(3).add_(1),
         "add_: expected 'self' to have memory of its own for each element it writes, got one "
         "expanded to [3]; clone it first"),
        (lambda: (lambda x: x[1:].add_(x[:-1]))(lamella.ones(4)),
         "add_: expected 'self' not to share part of its memory with 'other'; clone one of them "
         "first"),
        (lambda: lamella.div(lamella.ones(2), 2, rounding_mode="up"),
         "div: expected 'rounding_mode' to be None, 'trunc' or 'floor', got 'up'"),
        (lambda: lamella.bitwise_and(lamella.ones(2), 1),
         "bitwise_and: expected dtype uint8, int8, int16, int32, int64, bool, uint16, uint32 or "
         "uint64, got float32"),
        (lambda: lamella.mean(lamella.ones(2).to(lamella.int64)),
         "mean: expected 'self' to be floating point or complex, got int64; give a dtype to "
         "convert it first"),
        (lambda: lamella.amax(lamella.empty(0, 2), 0),
         "amax: expected 'self' to have elements along dimension 0, got shape [0, 2]"),
        (lambda: lamella.sum(lamella.ones(2, 2), 2), "sum: expected 'dim' in [-2, 1], got 2"),
        (lambda: lamella.sum(lamella.ones(2, 2), (0, 0)),
         "sum: expected each dimension once in 'dim', got [0, 0]"),
        (lambda: lamella.div(lamella.ones(2).to(lamella.int64), 0, rounding_mode="floor"),
         "div: expected integers in 'other' other than zero, got 0"),
    ],
)  # fmt: skip
def test_errors(call, text):
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)) as caught:
        call()
    assert str(caught.value) == text


@pytest.mark.parametrize("dtype", FLOATS + ["int64"])
@pytest.mark.parametrize(
    "name,f",
    [
        ("div trunc", lambda m, a, b: m.div(a, b, rounding_mode="trunc")),
        ("div floor", lambda m, a, b: m.div(a, b, rounding_mode="floor")),
        ("rsub", lambda m, a, b: m.rsub(a, b)),
        ("rsub number", lambda m, a, b: m.rsub(a, 3)),
        ("pow number", lambda m, a, b: m.pow(2, b.abs() if m else b)),
        ("pow 0.5", lambda m, a, b: m.pow(a.abs(), 0.5)),
        ("pow 2", lambda m, a, b: m.pow(a, 2)),
        ("pow 3", lambda m, a, b: m.pow(a, 3)),
        ("pow -1", lambda m, a, b: m.pow(a, -1)),
        ("where", lambda m, a, b: m.where(a > b, a, b)),
        ("where number", lambda m, a, b: m.where(a > b, a, 1.0)),
        ("lerp", lambda m, a, b: m.lerp(a, b, 0.25)),
        ("addcmul", lambda m, a, b: m.addcmul(a, b, b, value=2)),
        ("addcdiv", lambda m, a, b: m.addcdiv(a, b, b, value=2)),
        ("clamp", lambda m, a, b: m.clamp(a, -1, 2)),
        ("clamp float", lambda m, a, b: m.clamp(a, min=-0.5)),
        ("clamp tensor", lambda m, a, b: m.clamp(a, b, b + 1)),
        ("clamp_min", lambda m, a, b: m.clamp_min(a, 1)),
        ("clamp_max", lambda m, a, b: m.clamp_max(a, b)),
        ("leaky_relu", lambda m, a, b: m.nn.functional.leaky_relu(a)),
        ("elu", lambda m, a, b: m.nn.functional.elu(a)),
        ("softplus", lambda m, a, b: m.nn.functional.softplus(a)),
        ("silu", lambda m, a, b: m.nn.functional.silu(a)),
        ("gelu", lambda m, a, b: m.nn.functional.gelu(a)),
        ("gelu tanh", lambda m, a, b: m.nn.functional.gelu(a, approximate="tanh")),
        ("hardtanh", lambda m, a, b: m.nn.functional.hardtanh(a)),
        ("relu6", lambda m, a, b: m.nn.functional.relu6(a)),
        ("threshold", lambda m, a, b: m.nn.functional.threshold(a, 0, 1)),
        ("round decimals", lambda m, a, b: m.round(a, decimals=1)),
        ("isclose", lambda m, a, b: m.isclose(a, b, rtol=0.5)),
        ("equal", lambda m, a, b: m.equal(a, a)),
        ("allclose", lambda m, a, b: m.allclose(a, b)),
    ],
)
def test_other_pointwise(name, f, dtype):
    a, b = sample(dtype, (4, 5), 1), sample(dtype, (4, 5), 2)
    b = torch.where(b == 0, torch.ones_like(b), b)
    agree(f, a, b, tolerance=2e-5 if dtype in ("float32", "int64") else None)


REDUCTIONS = [
    ("sum", {}), ("mean", {}), ("prod", {}), ("amax", {}), ("amin", {}), ("argmax", {}),
    ("argmin", {}), ("all", {}), ("any", {}), ("var", {}), ("std", {}), ("logsumexp", {}),
    ("count_nonzero", {}), ("max", {}), ("min", {}), ("cumsum", {}), ("cumprod", {}),
]  # fmt: skip


def calling(op, *arguments, **keywords):
    """A call of `op`, for agree(); tuples of any kind are compared as plain ones."""

    def call(m, t):
        result = getattr(m, op)(t, *arguments, **keywords)
        return tuple(result) if isinstance(result, tuple) else result

    return call


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("op,extra", REDUCTIONS)
def test_reductions(op, extra, dtype):
    x = sample(dtype, (3, 4, 5), 5, 0.5 if op in ("prod", "cumprod") else -4, 2)
    tolerance = (
        2e-5 if dtype in ("float32", "complex64") or not td(dtype).is_floating_point else None
    )
    for dim in (None, 0, 1, -1):
        if dim is None and op in ("logsumexp", "cumsum", "cumprod"):
            continue
        arguments = () if dim is None else (dim,)
        for t in (x, x.transpose(0, 2), x[:, ::2]):
            agree(calling(op, *arguments, **extra), t, tolerance=tolerance)
            if dim is not None and op not in ("count_nonzero", "cumsum", "cumprod"):
                agree(calling(op, *arguments, keepdim=True), t, tolerance=tolerance)


def test_reductions_of_several_dimensions():
    x = sample("float32", (3, 4, 5, 6))
    for dims in ((0, 2), (1, 3), (0, 1), (2, 3), (0, 1, 2, 3), ()):
        for op in ("sum", "mean", "amax", "logsumexp"):
            if op == "logsumexp" and dims == ():
                continue  # PyTorch fails
            agree(calling(op, dims), x, tolerance=1e-5)
            agree(calling(op, dims, keepdim=True), x, tolerance=1e-5)
    agree(lambda m, t: m.var_mean(t, (0, 2)), x, tolerance=1e-5)
    agree(lambda m, t: m.aminmax(t, dim=1), x)
    for p in (0, 1, 2, 3, float("inf"), float("-inf"), 0.5):
        agree(lambda m, t, p=p: m.linalg.vector_norm(t, p, (1, 2)), x, tolerance=1e-5)
        agree(calling("norm", p), x, tolerance=1e-5)
    agree(lambda m, t: m.sum(t, 1, dtype=m.float64), x)
    agree(lambda m, t: m.sum(t, 0), torch.empty(0, 3))
    agree(lambda m, t: m.prod(t), torch.empty(0))


@pytest.mark.parametrize("op", ["sum", "prod", "amax", "amin", "argmax", "all", "nansum", "var"])
def test_reductions_of_few_elements_at_a_time(op):
    """Rows and lines shorter than a vector, rows that end within one, and elements apart."""
    for dtype in ("float32", "float64", "bfloat16", "int8", "uint8", "bool"):
        if dtype == "bool" and op in ("argmax", "var") or op == "var" and dtype[0] in "iu":
            continue
        for n in (1, 2, 3, 4, 5, 7, 15, 17, 56, 100):
            x = sample(dtype, (3, 300, n))
            if op == "prod":
                x = (x > 0).to(x.dtype)
            for view in (x, x[..., ::2], x.transpose(0, 1)):
                for dim in (0, 1, 2):
                    tolerance = 2e-2 if dtype == "bfloat16" else 1e-4
                    agree(calling(op, dim), view, tolerance=tolerance)


def test_reductions_of_nan():
    x = torch.tensor([[1.0, float("nan"), 3.0, float("nan")], [4.0, 2.0, 4.0, 1.0]])
    for op in ("amax", "amin", "argmax", "argmin", "sum"):
        agree(calling(op, 1), x)
        agree(calling(op, 0), x)
        agree(calling(op, 0), x.t())


def test_long_sums_are_accurate():
    x = torch.rand(1_000_003, dtype=torch.float32, generator=torch.Generator().manual_seed(1))
    exact = x.double().sum().item()
    assert abs(lamella.sum(to_lamella(x)).item() - exact) / exact < 2e-7
    columns = x[:1_000_000].reshape(100_000, 10)
    got = to_torch(lamella.sum(to_lamella(columns), 0)).double()
    want = columns.double().sum(0)
    assert ((got - want).abs() / want).max() < 5e-7
    shifted = x + 1000
    got = lamella.var(to_lamella(shifted)).item()
    assert abs(got - shifted.double().var().item()) < 1e-6


def test_large_and_parallel():
    x = sample("float32", (1000, 300))
    for f in (
        lambda m, t: m.add(t, t.t()[:300, :1].reshape(1, 300) if False else t[0]),
        lambda m, t: m.sum(t, 0), lambda m, t: m.sum(t, 1), lambda m, t: m.exp(t.t()),
        lambda m, t: m.argmax(t, 0), lambda m, t: m.argmax(t, 1), lambda m, t: m.amax(t),
        lambda m, t: m.mul(t.to(m.float16), t), lambda m, t: m.cumsum(t, 0),
    ):  # fmt: skip
        agree(f, x, tolerance=2e-5)


def test_types():
    for a, b in itertools.product(NAMES, NAMES):
        assert lamella.can_cast(ld(a), ld(b)) == torch.can_cast(td(a), td(b))
        assert name_of(lamella.promote_types(ld(a), ld(b))) == name_of(
            torch.promote_types(td(a), td(b))
        )
        x, y = torch.ones(2, dtype=td(a)), torch.ones((), dtype=td(b))
        want = torch.result_type(x, y)
        assert name_of(lamella.result_type(to_lamella(x), to_lamella(y))) == name_of(want)
        for number in (1, 1.0, True, 1j):
            want = torch.result_type(x, number)
            assert name_of(lamella.result_type(to_lamella(x), number)) == name_of(want)


@pytest.mark.skipif(
    os.environ.get("LAMELLA_CPU_CAPABILITY") is not None, reason="runs each capability itself"
)
@pytest.mark.parametrize("capability", ["default", "avx2", "avx512"])
def test_capabilities(capability):
    environment = dict(os.environ, LAMELLA_CPU_CAPABILITY=capability)
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__, "-k",
        "test_unary or test_binary or test_lengths or test_reductions or test_large",
    ]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


NUMBERS = [1e300, -1e300, 3.5e38, float("inf"), float("nan"), 2**62 + 3, 5 - 2**63, 300]
WITH_NUMBER = ["add", "sub", "mul", "div", "remainder", "eq", "ne", "lt", "ge", "rsub"]


# A number takes the dtype of the operation as a tensor would: it becomes infinite, or wraps.
@pytest.mark.parametrize("name", WITH_NUMBER)
@pytest.mark.parametrize("number", NUMBERS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8], ids=str)
def test_numbers_that_the_dtype_cannot_hold(name, number, dtype):
    x = operator_cases.make(6, dtype=dtype, low=1, high=4)
    if name == "remainder" and dtype == torch.int8 and number in (2**62, -(2**63)):
        with pytest.raises(RuntimeError) as caught:  # it wraps to 0
            operator_cases.run(
                lamella, "remainder.Scalar", [operator_cases.to_lamella(x), number], {}
            )
        text = "remainder: expected integers in 'other' other than zero, got 0"
        assert str(caught.value) == text
        return
    operator_cases.check(f"{name}.Scalar", x, number)
    if name in ("add", "mul") and (isinstance(number, int) or dtype != torch.int8):
        operator_cases.check(f"{name}_.Scalar", x, number)


def test_a_number_that_float_cannot_hold():
    assert (lamella.ones(1) + 1e300).tolist() == [float("inf")]
    assert (-1e300 * lamella.ones(1)).tolist() == [float("-inf")]
    assert (lamella.ones(1) / 1e300).tolist() == [0]
    assert (lamella.ones(1) < 1e300).tolist() == [True]
    with pytest.raises(RuntimeError) as caught:  # as fill_ and full in PyTorch
        lamella.ones(1).fill_(1e300)
    assert str(caught.value) == "Scalar: expected a value that fits float32, got 1e+300"


# What reads a tensor of bool, given as x, beside another one.
READS_BOOL = {
    "to": lambda m, x, y: [x.to(getattr(m, name)) for name in NAMES if name != "bool"],
    "compare": lambda m, x, y: (x == y, x < y, x >= y, x == True),  # noqa: E712
    "logic": lambda m, x, y: (~x, x & y, x ^ y, x.logical_not(), m.logical_xor(x, y), x | y),
    "arithmetic": lambda m, x, y: (x + y, x * y, x + 1, x * 2.5, m.minimum(x, y)),
    "select": lambda m, x, y: (m.where(x, 1, 2), m.arange(40)[x], x.nonzero(), m.where(y, x, ~x)),
    "sums": lambda m, x, y: (x.sum(), x.cumsum(0), x.count_nonzero(), x.prod(), x.float().mean()),
    "any": lambda m, x, y: (x.any(), x.all(), x.view(5, 8).any(1), x.view(5, 8).all(0)),
    "extremes": lambda m, x, y: (x.max(), x.view(5, 8).amin(0), x.view(5, 8).max(1)[0]),
    "order": lambda m, x, y: (x.sort()[0], x.unique(), x.cummax(0)[0]),
    "one": lambda m, x, y: m.tensor([x[i].item() for i in range(8)]),
}


@pytest.mark.parametrize("name", READS_BOOL)
def test_any_byte_is_a_bool(name):
    """Memory that was written as something else may be seen as bool: all but 0 is true."""
    x = torch.tensor([190, 0, 2, 1, 3, 0, 255, 128] * 5, dtype=torch.uint8)
    y = torch.tensor([1, 1, 0, 1, 0, 0, 1, 0] * 5, dtype=torch.bool)
    agree(lambda m, x, y: READS_BOOL[name](m, x.view(m.bool), y), x, y)
