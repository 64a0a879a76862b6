"""sort, topk, kthvalue, median, mode, unique, searchsorted and bincount over lengths, dtypes and
data that take different paths through the kernels."""

import math
import subprocess
import sys

import numpy as np
import pytest
from operator_cases import lamella, same_bits, to_lamella, torch

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]
LENGTHS = [1, 2, 17, 65, 400, 1025, 2049, 9000, 20_000]
KINDS = ["random", "wide", "few", "close", "equal", "ascending", "descending", "special"]


def data(kind, dtype, n):
    generator = torch.Generator().manual_seed(n)
    real = dtype.is_floating_point
    if kind == "random" and not real:
        low, high = (
            (0, 2) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
        )
        low, high = max(low, -(2**62)), min(high, 2**62)
        return torch.randint(low, high, (n,), generator=generator).to(dtype)
    if kind == "random":
        return torch.randn(n, generator=generator, dtype=torch.float64).to(dtype)
    if kind == "wide":
        numbers = (torch.randn(n, generator=generator, dtype=torch.float64) * 20).exp()
        return (
            numbers.to(dtype)
            if real
            else torch.randint(0, 2**20, (n,), generator=generator).to(dtype)
        )
    if kind == "few":
        return torch.randint(0, 5, (n,), generator=generator).to(dtype)
    if kind == "close":  # alike in all but the lowest bits
        steps = torch.randint(0, 50, (n,), generator=generator)
        return (1 + steps.double() * torch.finfo(dtype).eps).to(dtype) if real else steps.to(dtype)
    if kind == "equal":
        return torch.ones(n).to(dtype)
    x = data("random", dtype, n)
    if kind in ("ascending", "descending"):
        return x.sort(descending=kind == "descending")[0]
    if real:
        numbers = [0.0, -0.0, math.inf, -math.inf, math.nan, torch.finfo(dtype).tiny / 4]
        special = torch.tensor(numbers, dtype=torch.float64).to(dtype)
        chosen = torch.rand(n, generator=generator) < 0.6
        x[chosen] = special[torch.randint(0, len(numbers), (n,), generator=generator)][chosen]
    elif dtype != torch.bool:
        x[::3] = torch.iinfo(dtype).max
        x[1::3] = torch.iinfo(dtype).min
    return x


def number(x):
    """PyTorch selects among numbers alone."""
    return x.to(torch.uint8) if x.dtype == torch.bool else x


def assert_same(got, want):
    got = torch.from_dlpack(got.to(lamella.uint8) if want.dtype == torch.bool else got)
    want = want.to(torch.uint8) if want.dtype == torch.bool else want
    assert got.dtype == want.dtype and got.shape == want.shape
    torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_line(dtype, kind):
    for n in LENGTHS:
        x = data(kind, dtype, n)
        y = to_lamella(x)
        for descending in (False, True):
            values, indices = torch.sort(x, stable=True, descending=descending)
            got = lamella.sort(y, descending=descending)
            assert_same(got[0], values)
            assert_same(got[1], indices)
            for k in {1, min(n, 5), n // 50, n // 8, n // 3, n}:
                got = lamella.topk(y, k, largest=descending)
                assert_same(got[0], values[:k])
                assert_same(got[1], torch.topk(number(x), k, largest=descending)[1])
        values = torch.sort(x, stable=True)[0]
        for k in {1, n // 3 + 1, n}:
            got = lamella.kthvalue(y, k)
            assert_same(got[0], values[k - 1])
            assert_same(got[1], torch.kthvalue(number(x), k)[1])


def long_line(kind, n, dtype):
    """Lines whose leading bits put few, many or nearly all elements into one bucket."""
    generator = np.random.default_rng(n)
    if kind == "uniform":
        return generator.uniform(-2, 2, n).astype(dtype)
    if kind == "normal":
        return (generator.standard_normal(n) * 1000).astype(dtype)
    if kind == "clusters":  # two, of neighbours that differ in their lowest bits
        return (generator.integers(0, 3000, n) + generator.integers(0, 2, n) * 2**30).astype(dtype)
    if kind == "one outlier":
        line = generator.integers(0, 5000, n).astype(dtype)
        line[n // 2] = 2**31 - 129
        return line
    if kind == "twice the same":
        return np.tile(generator.integers(-(10**9), 10**9, n // 2 + 1), 2)[:n].astype(dtype)
    return np.arange(n, 0, -1).astype(dtype) * 7919  # descending


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize(
    "kind", ["uniform", "normal", "clusters", "one outlier", "twice the same", "descending"]
)
@pytest.mark.parametrize("n", [8193, 70_000, 262_144, 262_145])
def test_long_lines(n, kind, dtype):
    line = long_line(kind, n, dtype)
    order = np.argsort(line, kind="stable")
    values, indices = lamella.sort(lamella.from_numpy(line), stable=True)
    np.testing.assert_array_equal(indices.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), line[order])
    values, indices = lamella.sort(lamella.from_numpy(line), descending=True, stable=True)
    order = np.argsort(-line.astype("float64"), kind="stable")
    np.testing.assert_array_equal(indices.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), line[order])


def test_long_lines_keep_the_bits_of_nan_and_zeros():
    generator = np.random.default_rng(3)
    for bits, unsigned in (("float32", "uint32"), ("float64", "uint64")):
        line = generator.standard_normal(50_000).astype(bits)
        line[::7] = 0.0
        line[::11] = -0.0
        words = line.view(unsigned)
        quiet = np.array(np.nan, bits).view(unsigned)
        words[::13] = quiet + generator.integers(1, 1000, words[::13].size).astype(unsigned)
        for descending in (False, True):
            values, indices = lamella.sort(
                lamella.from_numpy(line), descending=descending, stable=True
            )
            np.testing.assert_array_equal(values.numpy().view(unsigned), words[indices.numpy()])
            # Equal elements stay in the order of their positions.
            got = values.numpy()
            equal = (got[1:] == got[:-1]) | (np.isnan(got[1:]) & np.isnan(got[:-1]))
            assert (np.diff(indices.numpy())[equal] > 0).all()
            rest = got[~np.isnan(got)]
            steps = np.diff(rest)
            assert (steps <= 0).all() if descending else (steps >= 0).all()


@pytest.mark.parametrize(("bits", "unsigned"), [("float32", "uint32"), ("float64", "uint64")])
@pytest.mark.parametrize("n", [20_001, 70_000])
def test_few_values_keep_the_bits_of_nan_and_zeros(n, bits, unsigned):
    generator = np.random.default_rng(n)
    quiet = int(np.array(np.nan, bits).view(unsigned))
    some = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan, np.nan], bits)
    some.view(unsigned)[-1] = quiet + 5
    words = some.view(unsigned)[generator.integers(0, some.size, n)]
    line = words.view(bits)
    for descending in (False, True):
        keys = np.where(np.isnan(line), np.inf, line)
        rank = np.where(np.isnan(line), 1, 0)
        signs = -1 if descending else 1
        order = np.lexsort((np.arange(n), signs * rank, signs * keys))
        values, indices = lamella.sort(lamella.from_numpy(line), descending=descending)
        np.testing.assert_array_equal(indices.numpy(), order)
        np.testing.assert_array_equal(values.numpy().view(unsigned), words[order])
        # Into memory that is not contiguous.
        into = lamella.empty(n, 2, dtype=values.dtype)[:, 1]
        places = lamella.empty(n, 3, dtype=lamella.int64)[:, 2]
        lamella.sort(lamella.from_numpy(line), descending=descending, out=(into, places))
        np.testing.assert_array_equal(places.numpy(), order)
        np.testing.assert_array_equal(into.contiguous().numpy().view(unsigned), words[order])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_medians_modes_and_distinct_values(dtype, kind):
    for n in LENGTHS[:-2]:
        x = data(kind, dtype, n)
        y = to_lamella(x)
        for name in ("median", "nanmedian"):
            assert_same(getattr(lamella, name)(y, 0)[0], getattr(torch, name)(x, 0)[0])
        mode = lamella.mode(y)
        assert_same(y[mode[1]], torch.from_dlpack(mode[0]))
        if not x.isnan().any():
            assert_same(mode[0], torch.mode(x)[0])
            for got, want in zip(
                lamella.unique(y, True, True, True), torch.unique(x, True, True, True)
            ):
                assert_same(got, want)
            for got, want in zip(
                lamella.unique(y, return_counts=True), torch.unique(x, return_counts=True)
            ):
                assert_same(got, want)
        assert len(lamella.unique(y)) == len(lamella.unique(y, True, True)[0])
        consecutive = torch.unique_consecutive(x, return_inverse=True, return_counts=True)
        for got, want in zip(lamella.unique_consecutive(y, True, True), consecutive):
            assert_same(got, want)


@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ((5, 300), 1),
        ((300, 7), 0),
        ((3, 40, 5), 1),
        ((3, 1, 4), 1),
        ((3000, 3), 0),
        ((4, 90, 37), 1),
        ((33, 16), 0),
        ((21, 100), 0),
    ],
)
def test_lines_of_any_strides(shape, dim):
    for dtype in (torch.int64, torch.float32, torch.bfloat16):
        x = data("random", dtype, math.prod(shape)).reshape(shape)
        for view in (x, x.transpose(0, -1).contiguous().transpose(0, -1), x[..., ::2]):
            y = to_lamella(view)
            values, indices = torch.sort(view, dim=dim, stable=True)
            got = lamella.sort(y, dim)
            assert_same(got[0], values)
            assert_same(got[1], indices)
            k = (view.shape[dim] + 1) // 2
            got = lamella.topk(y, k, dim, largest=False)
            assert_same(got[0], values.narrow(dim, 0, k))
            assert_same(got[1], torch.topk(view, k, dim, largest=False)[1])
            for keepdim in (False, True):
                got = lamella.kthvalue(y, k, dim, keepdim)
                want = torch.kthvalue(view, k, dim, keepdim)
                for i in range(2):
                    assert_same(got[i], want[i])


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned(dtype):
    x = torch.tensor([3, 65535, 0, 3, 7]).to(dtype)
    y = to_lamella(x)
    values, indices = lamella.sort(y)
    assert values.tolist() == [0, 3, 3, 7, 65535] and indices.tolist() == [2, 0, 3, 4, 1]
    assert lamella.topk(y, 2)[0].tolist() == [65535, 7]
    assert lamella.unique(y).tolist() == [0, 3, 7, 65535]
    assert lamella.mode(y)[0].item() == 3


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_distinct_values_with_nan_and_zeros(dtype):
    x = np.array([np.nan, 3, -0.0, -np.inf, -np.nan, 0.0, np.inf, -2, 3], dtype)
    expected = np.array([-np.inf, -2, -0.0, 3, np.inf, np.nan, np.nan], dtype)
    got, counts = lamella.unique(lamella.from_numpy(x), return_counts=True)
    np.testing.assert_array_equal(got.numpy(), expected)
    assert counts.tolist() == [1, 1, 2, 2, 1, 1, 1]
    assert math.copysign(1, got[2].item()) == -1  # the first of equal elements


@pytest.mark.parametrize("dtype", ["int8", "float32", "int64"])
def test_distinct_values_take_the_memory_of_one_copy(dtype):
    """Without positions, which would be eight bytes for each element."""
    count = 20_000_000
    program = f"""
import resource
import lamella
x = (lamella.arange({count}) % 100).to(lamella.{dtype})
lamella.unique(x[:20000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert lamella.unique(x).tolist() == list(range(100))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) * 1024 / {count})
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 1.2 * np.dtype(dtype).itemsize


@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("right", [False, True])
def test_searches(dtype, right):
    for n in (1, 2, 40, 1000):
        for count in (1, 7, 33, 3000):
            line = data("special" if n == 40 else "random", dtype, n).sort()[0]
            x = data("special", dtype, count)
            for boundaries in (line, line[~line.isnan()]):
                if boundaries.isnan().any():  # NaN comes last, as NumPy sorts, not as PyTorch finds
                    side = "right" if right else "left"
                    places = np.searchsorted(boundaries.double().numpy(), x.double().numpy(), side)
                    want = torch.from_numpy(places)
                else:
                    want = torch.searchsorted(boundaries, x, right=right)
                got = lamella.searchsorted(to_lamella(boundaries), to_lamella(x), right=right)
                assert_same(got, want)


def test_counts():
    for n, most in ((5, 3), (1000, 7), (50_001, 1000), (50_000, 9000), (100, 100_000)):
        x = torch.randint(0, most, (n,))
        assert_same(lamella.bincount(to_lamella(x)), torch.bincount(x))
        weights = torch.randn(n)
        got = lamella.bincount(to_lamella(x), to_lamella(weights))
        torch.testing.assert_close(torch.from_dlpack(got), torch.bincount(x, weights))


def test_threads_give_the_same_bits():
    x = to_lamella(data("few", torch.float32, 700_000) + data("random", torch.float32, 700_000))
    same_bits(lambda: lamella.sort(x))


@pytest.mark.parametrize("kind", ["random", "few", "special"])
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_members(dtype, kind):
    for n, tests in ((1, 1), (100, 7), (700, 300)):
        x, e = data(kind, dtype, n), data(kind, dtype, tests + 1)
        for invert in (False, True):
            want = (x[:, None] == e).any(1) ^ invert
            assert_same(lamella.isin(to_lamella(x), to_lamella(e), invert=invert), want)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_extremes_so_far(name, kind):
    for dtype in DTYPES:
        for n in (1, 31, 32, 100, 1000):
            x = data(kind, dtype, n)
            values, indices = getattr(torch, name)(x, 0)
            got = getattr(lamella, name)(to_lamella(x), 0)
            assert_same(got[0], values)
            assert_same(got[1], indices)


EQUALS = [(1,), (5,), (16,), (17,), (64,), (129,), (1000,), (6, 40), (3, 300, 2), (2, 20000)]


@pytest.mark.parametrize("shape", EQUALS, ids=str)
@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8"]
)
def test_which_of_equals(shape, dtype):
    """topk and kthvalue choose among equal elements as PyTorch does, NaN and both zeros too."""
    generator = torch.Generator().manual_seed(0)
    for levels in (1, 3, 100):
        x = torch.randint(0, levels, shape, generator=generator).to(getattr(torch, dtype))
        if x.is_floating_point():
            x = torch.where(torch.rand(shape, generator=generator) < 0.1, float("nan"), x)
            x = torch.where(torch.rand(shape, generator=generator) < 0.5, -x, x)
        ours = lamella.from_dlpack(x)
        for dim in range(len(shape)):
            n = shape[dim]
            for k in sorted({1, 2, n // 64, n // 64 + 1, n // 2, n - 1, n}):
                if not 0 < k <= n:
                    continue
                for options in ({}, {"largest": False}, {"sorted": False}):
                    expected = torch.topk(x, k, dim, **options).indices
                    got = lamella.topk(ours, k, dim, **options)
                    assert got.indices.tolist() == expected.tolist(), (levels, dim, k, options)
                    taken = ours.gather(dim, got.indices)
                    assert lamella.equal(taken.nan_to_num(), got.values.nan_to_num())
                expected = torch.kthvalue(x, k, dim).indices
                assert lamella.kthvalue(ours, k, dim).indices.tolist() == expected.tolist()
