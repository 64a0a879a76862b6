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


UNARY = (
    "neg abs sign sgn square reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p asin acos"
    " atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc erfinv lgamma digamma ceil floor round"
    " trunc frac relu logical_not bitwise_not isnan isinf isfinite signbit nan_to_num angle"
    " isposinf isneginf"
).split()


@pytest.mark.parametrize("op", UNARY)
def test_unary_special_values(op):
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e-30, 1e30])
    for dtype in (torch.float32, torch.float64):
        agree(lambda m, x: getattr(m, op)(x), x.to(dtype), tolerance=1e-5)


@pytest.mark.parametrize("length", [1, 3, 15, 16, 17, 64, 511, 512, 513, 40000])
def test_lengths(length):
    x = sample("float32", (length,))
    agree(lambda m, x: m.exp(x), x)
    agree(lambda m, x: m.add(x, x), x)
    agree(lambda m, x: m.sum(x), x, tolerance=1e-5)
    agree(lambda m, x: m.add(x, 1.5), x.to(torch.float16))


@pytest.mark.parametrize("op", ["add", "mul", "div", "lt", "maximum", "pow"])
@pytest.mark.parametrize("pair", list(itertools.product(NAMES, NAMES)))
def test_promotion(op, pair):
    a = sample(pair[0], (2, 3), 1, 1, 3)
    b = sample(pair[1], (2, 3), 2, 1, 3)
    tolerance = 1e-2 if "float16" in pair or "bfloat16" in pair else 1e-5
    agree(lambda m, a, b: getattr(m, op)(a, b), a, b, tolerance=tolerance)
    if "float16" in pair and "complex" in pair[1]:
        return  # NumPy has no complex32, which has a test of its own
    zero = b.flatten()[0].clone()
    agree(lambda m, a, b: getattr(m, op)(a, b), a, zero, tolerance=tolerance)


@pytest.mark.parametrize(
    "number, dtype",
    # NumPy has no complex32, which has a test of its own.
    [*itertools.product([2, 1.5, True], NAMES), *((1 + 2j, n) for n in NAMES if n != "float16")],
)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "eq", "ge", "pow", "remainder"])
def test_numbers(op, number, dtype):
    a = sample(dtype, (4,), 3, 1, 3)
    tolerance = 1e-5 if td(dtype).is_complex or dtype == "float32" else None
    agree(lambda m, a: getattr(m, op)(a, number), a, tolerance=tolerance)


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


@pytest.mark.parametrize("name", ["add", "minimum", "atan2", "lt", "where", "lerp", "addcmul"])
def test_out_over_an_operand_that_is_smaller(name):
    wide = sample("float32", (5, 3), 1)
    has_three = name in ("where", "lerp", "addcmul")
    for over in range(int(name == "where"), 3 if has_three else 2):
        for alias in (lambda t: t, lambda t: t.view(1, 3), lambda t: t.detach()):
            given = [sample("float32", (1, 3), 2), sample("float32", (1, 3), 3)]
            given.insert(0 if over else 1, wide)
            if name == "where":
                given[0] = wide > 0
            given = given if has_three else given[:2]
            want = getattr(torch, name)(*given).to(torch.float32)
            ours = [to_lamella(t).clone() for t in given]  # memory of Lamella's can be resized
            out = alias(ours[over])
            getattr(lamella, name)(*ours, out=out)
            check(out, want)


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


def calling(op, *arguments, **keywords):
    """A call of `op`, for agree(); tuples of any kind are compared as plain ones."""

    def call(m, t):
        result = getattr(m, op)(t, *arguments, **keywords)
        return tuple(result) if isinstance(result, tuple) else result

    return call


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


# The tests above run the machine's own.
OWN = lamella._C._cpu_capability().lower()
OTHERS = [one for one in ("default", "avx2", "avx512") if one != OWN]


@pytest.mark.skipif(
    os.environ.get("LAMELLA_CPU_CAPABILITY") is not None, reason="runs each capability itself"
)
@pytest.mark.parametrize("capability", OTHERS)
def test_other_capabilities(capability):
    environment = dict(os.environ, LAMELLA_CPU_CAPABILITY=capability)
    command = [
        sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__, "-k",
        "test_unary or test_lengths or test_reductions or test_large",
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


def test_complex32_is_computed_as_complex64():
    a = torch.tensor([1 + 2j, 3 - 1j, -0.5 + 0j, 100 - 200j]).to(torch.complex32)
    b = torch.tensor([300 + 200j, 0.1 - 0.7j, -1.5 + 9j, 100 - 200j]).to(torch.complex32)
    x, y = (lamella.tensor(t.to(torch.complex64).numpy()).to(lamella.complex32) for t in (a, b))

    def same(ours, wide):
        found = ours.to(lamella.complex64).numpy()
        want = wide.to(torch.complex32).to(torch.complex64)
        torch.testing.assert_close(torch.from_numpy(found), want, rtol=1e-3, atol=1e-3)

    a, b = a.to(torch.complex64), b.to(torch.complex64)
    for call in (
        lambda p, x, y: p.add(x, y, alpha=2),
        lambda p, x, y: p.sub(x, y),
        lambda p, x, y: p.mul(x, y),
        lambda p, x, y: p.div(x, y),
        lambda p, x, y: p.neg(x),
        lambda p, x, y: p.add(x.reshape(2, 2).t(), 1),
        lambda p, x, y: p.mul(x, 2.5j),
        lambda p, x, y: p.div(2, x),
        lambda p, x, y: p.add(x, p.ones(4, dtype=p.float16)),
        lambda p, x, y: p.mul(x, p.arange(4)),
        lambda p, x, y: p.where(p.tensor([True, False, True, False]), x, y),
        lambda p, x, y: x.clone().mul_(y),
        lambda p, x, y: p.addcmul(x, x, y),
        lambda p, x, y: p.exp(x[:3]),
    ):
        ours = call(lamella, x, y)
        assert ours.dtype is lamella.complex32
        same(ours, call(torch, a, b))
    assert (x * y.to(lamella.complex64)).dtype is lamella.complex64
    assert lamella.abs(x).dtype is lamella.float16
    out = lamella.empty(4, dtype=lamella.complex64)
    assert lamella.mul(x, 2, out=out).tolist() == (a * 2).tolist()
    assert (x == y).tolist() == [False, False, False, True]
    assert (x != y).tolist() == [True, True, True, False]
    assert (x == 3 - 1j).tolist() == [False, True, False, False]
    with pytest.raises(NotImplementedError, match="got complex32"):
        _ = x < y


@pytest.mark.parametrize("n, step", [(1, 1), (5, 2), (1000, 1), (1000, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_results_that_only_a_wider_out_holds(n, step, dtype):
    x = lamella.full((n * step,), 60000.0, dtype=lamella.float16)[::step]
    for call in (
        lambda out: lamella.add(x, x, out=out),
        lambda out: lamella.add(x, 60000.0, out=out),
        lambda out: lamella.sub(x, -x, out=out),
        lambda out: lamella.mul(x, 2, out=out),
        lambda out: lamella.add(x, x[:1], out=out),
    ):
        assert call(lamella.empty(n, dtype=ld(dtype))).tolist() == [120000.0] * n
    rows = x.unsqueeze(0).expand(2, n)
    if dtype != "complex64":
        assert (
            lamella.sum(rows, 0, out=lamella.empty(n, dtype=ld(dtype))).tolist() == [120000.0] * n
        )
        assert (
            lamella.mean(rows, 0, out=lamella.empty(n, dtype=ld(dtype))).tolist() == [60000.0] * n
        )
    with pytest.raises(RuntimeError, match="expected 'out' to have dtype float16"):
        lamella.matmul(rows, x.unsqueeze(1), out=lamella.empty(2, 1, dtype=ld(dtype)))
