"""Loops that take the place of operators or of other loops give what those give, on any machine."""

import os
import subprocess
import sys

import numpy
import pytest
from operator_cases import lamella

F = lamella.nn.functional

# Run for each capability of the processor; prints what must be the same for all of them.
PROGRAM = """
import hashlib
import lamella, numpy
random = numpy.random.default_rng(0)
whole = numpy.iinfo(numpy.int64)

def products(low, high, m, k, n):
    a, b = (random.integers(low, high, s, endpoint=True) for s in ((m, k), (k, n)))
    with numpy.errstate(over="ignore"):
        expected = a @ b
    for x in (a, numpy.asfortranarray(a)):
        for y in (b, numpy.asfortranarray(b)):
            got = lamella.mm(lamella.from_numpy(x), lamella.from_numpy(y)).numpy()
            assert (got == expected).all(), (low, high, m, k, n)

ranges = (-9, 9), (-(2**31), 2**31 - 1), (-(2**31) - 1, 2**31), (whole.min, whole.max)
for m, k, n in ((1, 5, 9), (4, 7, 12), (33, 40, 29), (70, 600, 50)):
    for low, high in ranges:
        products(low, high, m, k, n)
for place in (0, -1):
    a = numpy.full((9, 20), -3)
    b = numpy.full((20, 30), 5)
    a.flat[place] = b.flat[place] = 2**31
    assert (lamella.mm(lamella.from_numpy(a), lamella.from_numpy(b)).numpy() == a @ b).all()

for n in (0, 1, 31, 32, 33, 100):
    for dtype in (numpy.int32, numpy.int64, numpy.float64):
        a, b = (random.integers(-(2**30), 2**30, n).astype(dtype) for _ in range(2))
        with numpy.errstate(over="ignore"):
            expected = numpy.dot(a, b)
        got = lamella.dot(lamella.from_numpy(a), lamella.from_numpy(b)).item()
        assert got == expected or dtype == numpy.float64 and abs(got - expected) < 1e-9 * 2**60 * n

made = []
shapes = ((3, 6), 3), ((2, 4, 5), 2), ((2, 4, 33), 4), ((1, 4, 1031), 2), ((1, 2, 5000), 1)
for shape, groups in shapes:
    for dtype in (numpy.float32, numpy.float64):
        x = random.standard_normal(shape).astype(dtype)
        made.append(lamella.nn.functional.group_norm(lamella.from_numpy(x), groups).numpy())
        centred = x.reshape(shape[0] * groups, -1)
        centred = centred - centred.mean(1, keepdims=True)
        expected = centred / numpy.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
        assert numpy.allclose(made[-1].reshape(expected.shape), expected, atol=1e-5)
for width in (1, 2, 3, 20, 63, 64, 65, 150):
    for dtype in (numpy.float32, numpy.float64):
        table = random.standard_normal((30, width)).astype(dtype)
        index, bounds = random.integers(0, 30, 40), [0, 3, 3, 17]
        args = [lamella.from_numpy(x) for x in (index, table, numpy.array(bounds))]
        got = lamella.nn.functional.embedding_bag(*args, mode="sum").numpy()
        for at, (first, end) in enumerate(zip(bounds, bounds[1:] + [40])):
            expected = numpy.zeros(width, dtype)
            for i in index[first:end]:
                expected += table[i]
            assert (got[at] == expected).all()
image = random.standard_normal((2, 3, 9, 7)).astype(numpy.float32)
image[0, 0, 0, 0] = numpy.inf
grid = (random.random((2, 20, 11, 2)) * 2.6 - 1.3).astype(numpy.float32)
for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        got = lamella.nn.functional.grid_sample(
            *map(lamella.from_numpy, (image, grid)), mode=mode, padding_mode=padding,
            align_corners=False).numpy()
        made.append(got)
        far = (numpy.abs(grid) > 1.25).any(-1)
        if padding == "zeros" and mode != "bicubic":
            assert (got.transpose(0, 2, 3, 1)[far] == 0).all()
print(hashlib.sha256(b"".join(x.tobytes() for x in made[-9:])).hexdigest())
"""


@pytest.fixture(scope="module")
def printed():
    if "LAMELLA_SANITIZED" in os.environ:
        pytest.skip("the sanitizers' build has this machine's capability alone")
    capabilities = ("default", "avx2", "avx512")
    return {
        capability: subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "LAMELLA_CPU_CAPABILITY": capability},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for capability in capabilities
    }


def test_other_machines(printed):
    assert len(set(printed.values())) == 1, printed


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("how", ["amax", "amin", "prod"])
def test_runs_are_combined_as_elements_are(how, dtype):
    random = numpy.random.default_rng(1)
    start, values = (random.integers(-3, 4, (s, 33)).astype(dtype) for s in (8, 50))
    if "float" in dtype:
        values[3, 5] = start[2, 7] = numpy.nan
    index = random.integers(0, 8, 50)
    combine = {"amax": numpy.maximum, "amin": numpy.minimum, "prod": numpy.multiply}[how]
    expected = start.copy()
    for i, row in zip(index, values):
        expected[i] = combine(expected[i], row)
    x, at, y = map(lamella.from_numpy, (start, index, values))
    numpy.testing.assert_array_equal(lamella.index_reduce(x, 0, at, y, how).numpy(), expected)
    columns = lamella.index_reduce(x.t().contiguous(), 1, at, y.t().contiguous(), how)
    numpy.testing.assert_array_equal(columns.t().numpy(), expected)


@pytest.mark.parametrize("dtype", [lamella.float32, lamella.float64, lamella.int64], ids=str)
@pytest.mark.parametrize("padding, dilation, ceil", [(0, 1, False), (1, 1, True), (1, 2, True)])
@pytest.mark.parametrize("kernel, stride", [(2, 1), (2, 2), (3, 1), (3, 3), (5, 4), (40, 2)])
def test_maxima_without_places(kernel, stride, padding, dilation, ceil, dtype):
    x = lamella.randint(-50, 50, (2, 3, 331)).to(dtype)
    if dtype.is_floating_point:
        x[0, 1, 7] = x[1, 2, 330] = float("nan")
        x[1, 0, :9] = -float("inf")
    args = (kernel, stride, padding, dilation, ceil)
    both = F.max_pool1d(x, *args, return_indices=True)[0].numpy()
    numpy.testing.assert_array_equal(F.max_pool1d(x, *args).numpy(), both)
    numpy.testing.assert_array_equal(F.max_pool1d(x[1], *args).numpy(), both[1])
    plane = x.unsqueeze(0)
    both = F.max_pool2d(plane, *args, return_indices=True) if kernel < 4 and not padding else None
    if both is not None:
        numpy.testing.assert_array_equal(F.max_pool2d(plane, *args).numpy(), both[0].numpy())
    if dtype.is_floating_point:
        x = x.clone().requires_grad_()
        F.max_pool1d(x, *args).nansum().backward()
        assert x.grad.shape == x.shape


@pytest.mark.parametrize("how", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 1.5], ids=str)
def test_segments_of_the_last_dimension(how, initial):
    x = lamella.randn(3, 20)
    x[1, 4] = float("nan")
    lengths = lamella.tensor([[5, 0, 15], [1, 2, 17], [20, 0, 0]])
    offsets = lamella.tensor([[0, 5, 5, 19], [0, 1, 3, 20], [2, 2, 2, 2]])
    for bounds in ({"lengths": lengths}, {"lengths": lengths.int()}, {"offsets": offsets}):
        one = lamella.segment_reduce(x, how, axis=1, initial=initial, **bounds)
        other = lamella.segment_reduce(x.unsqueeze(-1), how, axis=1, initial=initial, **bounds)
        numpy.testing.assert_array_equal(one.numpy(), other.squeeze(-1).numpy())
        y = x.clone().requires_grad_()
        seen = lamella.segment_reduce(y, how, axis=1, initial=initial, **bounds)
        numpy.testing.assert_array_equal(one.numpy(), seen.detach().numpy())
    with pytest.raises(RuntimeError) as caught:
        lamella.segment_reduce(x, how, axis=1, lengths=lamella.tensor([[5, 6], [5, 7], [1, 1]]))
    assert str(caught.value) == (
        "segment_reduce: expected the rows of 'lengths' to sum to 20, got 11"
    )
    with pytest.raises(RuntimeError) as caught:
        lamella.segment_reduce(x, how, axis=1, lengths=lamella.zeros(3, 0).long())
    assert str(caught.value) == "segment_reduce: expected the rows of 'lengths' to sum to 20, got 0"


@pytest.mark.parametrize("dtype", [lamella.complex64, lamella.complex128], ids=str)
def test_conjugates(dtype):
    x = lamella.view_as_complex(lamella.randn(4, 5, 2).double()).to(dtype)
    x[0, 0] = complex(float("nan"), 0.0)
    x[0, 1] = complex(-0.0, -float("inf"))
    for given in (x, x.t(), x[:, ::2], x[1, 2]):
        bits = lamella.view_as_real(lamella.resolve_conj(given.conj())).numpy()
        expected = numpy.stack([given.real.numpy(), -given.imag.numpy()], -1)
        numpy.testing.assert_array_equal(bits, expected)
        assert (numpy.signbit(bits) == numpy.signbit(expected)).all()


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("n", [0, 1, 2, 16, 17, 33, 200])
def test_runs_of_equal_elements(n, dtype):
    x = (numpy.arange(n) // 3 % 2 if dtype == "bool" else numpy.arange(n) // 3).astype(dtype)
    got = lamella.unique_consecutive(lamella.from_numpy(x), return_counts=True)
    starts = numpy.flatnonzero(numpy.concatenate([[True], x[1:] != x[:-1]])) if n else []
    assert got[0].tolist() == [x[i] for i in starts]
    assert got[1].tolist() == list(numpy.diff([*starts, n]))
    assert lamella.unique_consecutive(lamella.from_numpy(x)).tolist() == got[0].tolist()


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("before, after", [(0, 0), (3, 2), (6, 0), (-2, 3)])
def test_padded_lines(before, after, dtype):
    x = (numpy.arange(42).reshape(2, 3, 7) % 5).astype(dtype)
    cut, ends = max(0, -before), (max(0, before), after)
    for given in (x, x[0], x.transpose(1, 0, 2)):
        for mode, like in (("reflect", "reflect"), ("replicate", "edge")):
            got = F.pad(lamella.from_numpy(given), (before, after), mode=mode)
            padded = numpy.pad(given[..., cut:], [(0, 0)] * (given.ndim - 1) + [ends], like)
            numpy.testing.assert_array_equal(got.numpy(), padded)


@pytest.mark.parametrize("dtype", ["float64", "int64", "int32", "float32", "uint8"])
def test_tensordot_over_all_dimensions(dtype):
    x, y = (numpy.arange(60).reshape(s).astype(dtype) for s in ((3, 4, 5), (4, 5, 3)))
    a, b = map(lamella.from_numpy, (x, y))
    dims = [0, 1, 2], [2, 0, 1]
    got, expected = lamella.tensordot(a, b, dims), numpy.tensordot(x, y, dims)
    assert got.shape == () and got.item() == expected
    if "float" in dtype:
        a = a.clone().requires_grad_()
        lamella.tensordot(a, b, dims).backward()
        numpy.testing.assert_array_equal(a.grad.numpy(), y.transpose(2, 0, 1))


@pytest.mark.parametrize("n", [4095, 4096, 5000])
def test_long_runs_of_equal_elements(n):
    x = numpy.repeat(numpy.random.default_rng(0).integers(0, 9, n), 2)[:n].astype("float32")
    x[7:10] = numpy.nan
    kept = numpy.concatenate([[True], x[1:] != x[:-1]])
    got = lamella.unique_consecutive(lamella.from_numpy(x))
    numpy.testing.assert_array_equal(got.numpy(), x[kept])


@pytest.mark.parametrize("n", [10, 10_000, 1_100_000])
def test_the_first_of_equal_zeros_stands_for_its_run(n):
    values = numpy.zeros(n, numpy.float32)
    values[::2] = -0.0
    values[1::5] = 1
    first = numpy.concatenate(([True], values[1:] != values[:-1]))
    found = lamella.unique_consecutive(lamella.from_numpy(values)).numpy()
    assert (found.view(numpy.int32) == values[first].view(numpy.int32)).all()


@pytest.mark.parametrize("how", ["amax", "amin"])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_extremes_of_equal_zeros(how, zero):
    places, start = lamella.tensor([0, 1, 0]), lamella.full((2, 32), zero)
    values = lamella.full((3, 32), -zero)
    rows = start.index_reduce(0, places, values, how)
    columns = start.t().contiguous().index_reduce(1, places, values.t().contiguous(), how)
    elements = start.scatter_reduce(0, lamella.zeros(3, 32, dtype=lamella.int64), values, how)
    # As in PyTorch, which combines whole rows by maximum() and minimum(): these take the second.
    assert (rows[0].signbit() == values[0].signbit()).all()
    for result in (columns, elements):
        assert (result.signbit() == start.signbit()[0, 0]).all()
