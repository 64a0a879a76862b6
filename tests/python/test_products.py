"""Matrix products over shapes, layouts and thread counts: values against NumPy, and the same bits
whatever the number of threads."""

import subprocess
import sys
import textwrap

import numpy
import pytest

import lamella

# Rows, inner size, columns: around the edges of tiles, vectors and stretches of the inner size.
SHAPES = [
    (1, 1, 1), (1, 16, 1), (1, 700, 1), (2, 33, 3), (4, 17, 100), (5, 16, 4), (1, 40, 130),
    (130, 40, 1), (3, 1000, 5), (4, 1030, 33), (7, 9, 31), (8, 513, 48), (9, 5, 49), (16, 64, 97),
    (17, 64, 96), (23, 129, 47), (33, 1025, 95), (64, 100, 150), (65, 70, 300), (300, 20, 10),
    (129, 0, 3), (400, 300, 200),
]  # fmt: skip
LAYOUTS = ("rows", "columns", "every second")


def laid_out(array, layout):
    """The same values with other strides."""
    if layout == "columns":
        return lamella.from_numpy(array.swapaxes(-1, -2).copy(order="C")).transpose(-1, -2)
    if layout == "every second":
        wide = numpy.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return lamella.from_numpy(wide)[..., ::2]
    return lamella.from_numpy(array.copy())


def numbers(seed, *shape):
    return numpy.random.default_rng(seed).integers(-8, 9, shape)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "int8", "uint8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_in_every_layout(shape, dtype):
    # Sums of small whole numbers are exact in every order.
    m, k, n = shape
    a, b, c = numbers(1, m, k), numbers(2, k, n), numbers(3, m, n)
    a, b, c = (x.astype(dtype) for x in (a, b, c))
    product = a @ b
    tensor = lamella.from_numpy(c)
    for i, left in enumerate(LAYOUTS):
        for j, right in enumerate(LAYOUTS):
            x, y = laid_out(a, left), laid_out(b, right)
            assert numpy.array_equal((x @ y).numpy(), product), (left, right)
            out = laid_out(c, LAYOUTS[(i + j) % 3])
            result = lamella.addmm(out, x, y, beta=3, alpha=2)
            assert numpy.array_equal(result.numpy(), (3 * c + 2 * product).astype(dtype))
            out.addmm_(x, y)
            assert numpy.array_equal(out.numpy(), c + product), (left, right)
            lamella.mm(x, y, out=out)
            assert numpy.array_equal(out.numpy(), product), (left, right)
            row = lamella.addmm(tensor[0], x, y)
            assert numpy.array_equal(row.numpy(), c[0] + product)
            column = lamella.addmm(tensor[:, :1], x, y)
            assert numpy.array_equal(column.numpy(), c[:, :1] + product)


@pytest.mark.parametrize("dtype", [lamella.bfloat16, lamella.float16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_small_floating_types_are_rounded_once(shape, dtype):
    m, k, n = shape
    a, b, c = (numbers(i, *s).astype("float32") for i, s in enumerate(((m, k), (k, n), (m, n))))
    rounded = lambda x: lamella.from_numpy(x).to(dtype).float().numpy()  # noqa: E731
    for left in LAYOUTS:
        for right in LAYOUTS:
            x, y = laid_out(a, left).to(dtype), laid_out(b, right).to(dtype)
            if left == "columns":
                x = x.t().contiguous().t()
            if right == "columns":
                y = y.t().contiguous().t()
            if right == "every second":
                y = lamella.stack([y, y], -1).reshape(k, 2 * n)[:, ::2]
            assert numpy.array_equal((x @ y).float().numpy(), rounded(a @ b)), (left, right)
            added = lamella.addmm(lamella.from_numpy(c).to(dtype), x, y, beta=2, alpha=3)
            assert numpy.array_equal(added.float().numpy(), rounded(2 * c + 3 * (a @ b)))
            stack = lamella.bmm(lamella.stack([x, x]), lamella.stack([y, y]))
            assert numpy.array_equal(stack[1].float().numpy(), rounded(a @ b))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_batches(shape):
    m, k, n = shape
    a, b, c = (numbers(i, 3, *s).astype("float32") for i, s in enumerate(((m, k), (k, n), (m, n))))
    expected = a @ b
    for left in LAYOUTS:
        for right in LAYOUTS:
            x, y = laid_out(a, left), laid_out(b, right)
            assert numpy.array_equal(lamella.bmm(x, y).numpy(), expected)
            added = lamella.baddbmm(lamella.from_numpy(c), x, y)
            assert numpy.array_equal(added.numpy(), c + expected)
    one = lamella.from_numpy(b)[:1].expand(3, k, n)
    assert numpy.array_equal(lamella.bmm(lamella.from_numpy(a), one).numpy(), a @ b[:1])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_linear(shape):
    m, k, n = shape
    if k == 0:
        return
    x, w, b = (numbers(i, *s).astype("float32") for i, s in enumerate(((m, k), (n, k), (n,))))
    xt, wt, bt = (lamella.from_numpy(v) for v in (x, w, b))
    expected = x @ w.T
    for _ in range(4):
        assert numpy.array_equal(lamella.nn.functional.linear(xt, wt).numpy(), expected)
        assert numpy.array_equal(lamella.nn.functional.linear(xt, wt, bt).numpy(), expected + b)
    assert numpy.array_equal(lamella.mv(xt, wt[0]).numpy(), x @ w[0])
    assert numpy.array_equal(lamella.mv(xt.t().contiguous().t(), wt[0]).numpy(), x @ w[0])


def test_what_is_not_read_does_not_count():
    nan = lamella.full((70, 70), float("nan"))
    x = lamella.ones(70, 70)
    assert lamella.addmm(nan, x, x, beta=0).equal(lamella.full((70, 70), 70.0))
    out = nan.clone()
    lamella.mm(x, x, out=out)
    assert out.equal(lamella.full((70, 70), 70.0))
    # NaN and infinity stay in their rows and columns, past the end of a vector too.
    for n in (1, 3, 5, 17, 50):
        a, b = lamella.ones(9, 20), lamella.ones(20, n)
        a[4, 7] = float("inf")
        b[3, n - 1] = float("nan")
        result = a @ b
        assert result[:, n - 1].isnan().all()
        assert result[4, : n - 1].isinf().all()
        assert result.isfinite().sum() == 8 * (n - 1)


def test_what_is_added_may_lie_in_the_result():
    base = lamella.arange(0.0, 12.0).reshape(4, 3)
    x, w = lamella.ones(3, 2), lamella.ones(2, 3)
    expected = base[:3].clone() + 2
    result = base.clone()
    lamella.addmm(result[:3], x, w, out=result[1:])
    assert result[1:].equal(expected)


THREADS = """
    import hashlib, lamella

    def inputs(dtype):
        lamella.manual_seed(0)
        made = lambda *shape: lamella.randn(*shape, dtype=lamella.float64).to(dtype)
        sizes = (300, 700, 200), (1, 900, 900), (900, 900, 1), (40, 3000, 3), (7, 384, 1536)
        for m, k, n in sizes:
            yield "mm", made(m, k), made(k, n)
            yield "mm", made(m, k), made(n, k).t()
        yield "bmm", made(6, 70, 80), made(6, 80, 90)
        yield "dot", made(300000), made(300000)
        yield "outer", made(300), made(500)

    def results():
        for dtype in (lamella.float32, lamella.float64, lamella.bfloat16, lamella.float16,
                      lamella.complex64, lamella.complex128):
            for op, a, b in inputs(dtype):
                yield getattr(lamella, op)(a, b)
        for dtype in (lamella.float32, lamella.float64):
            lamella.manual_seed(1)
            a = lamella.randn(500, 500, dtype=dtype)
            yield lamella.linalg.inv(a)
            yield lamella.linalg.eigvalsh(a)
            yield lamella.linalg.solve(a, a + 1)
            yield lamella.linalg.svdvals(a)
            yield lamella.linalg.qr(a)[0]
            yield lamella.linalg.cholesky(a @ a.t() + 500 * lamella.eye(500, dtype=dtype))
            yield lamella.cdist(a, a + 1)

    def digest():
        read = lambda r: r.contiguous().reshape(-1).view(lamella.uint8).numpy().tobytes()
        return [hashlib.sha1(read(r)).hexdigest() for r in results()]

    lamella.set_num_threads(1)
    one = digest()
    for threads in (2, 3, 8):
        lamella.set_num_threads(threads)
        assert [i for i, (a, b) in enumerate(zip(one, digest())) if a != b] == [], threads
    print("same")
"""


def test_the_bits_do_not_depend_on_threads():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(THREADS)], capture_output=True, text=True
    )
    assert done.stdout == "same\n", done.stderr
