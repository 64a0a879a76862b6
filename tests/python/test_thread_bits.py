"""Results have the same bits for any number of threads: operators on inputs large enough to be
split. Also the accuracy of sums, and no warnings on a single core.
"""

import math
import os
import random
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from operator_cases import ALL, COMPLEX, REAL, WHOLE, make, run, to_lamella  # noqa: E402
from operator_rows import ROWS  # noqa: E402
from test_against_torch import TABLE, Draw, affine, batches, matrices, products  # noqa: E402

import lamella  # noqa: E402

OTHERS = (2, 3, 8)
LARGE = [(200_003,), (317, 701), (3, 70_001), (50_021, 4), (40, 60, 100), (2, 330, 3, 111)]


@pytest.fixture(autouse=True)
def keeps_the_number_of_threads():
    before = lamella.get_num_threads()
    yield
    lamella.set_num_threads(before)


class LargeDraw(Draw):
    """Arguments of some 200,000 elements of one dtype."""

    def __init__(self, seed, dtype):
        self.wanted = dtype
        super().__init__(seed, [dtype])

    def a_shape(self):
        return self.random.choice(LARGE)

    def values(self, shape, dtype):
        return make(*shape, dtype=dtype, low=-3, high=3, seed=self.random.randrange(10**6))

    def other(self):
        return self.layout(self.shape)

    def dim(self):
        return self.random.randrange(len(self.shape))


def tensors(result):
    if isinstance(result, lamella.Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [t for item in result for t in tensors(item)]
    return []


def bits(result):
    """Dtype, shape and bytes of all tensors; values that are none."""
    found = []
    for t in tensors(result):
        other = torch.from_dlpack(t.detach().contiguous())
        if other.is_complex():
            other = torch.view_as_real(other)
        found.append((tuple(t.shape), other.flatten().view(torch.uint8).numpy().tobytes()))
    return found or [result]


def same_for_all(compute, what):
    lamella.set_num_threads(1)
    one = bits(compute())
    for threads in OTHERS:
        lamella.set_num_threads(threads)
        for mine, other in zip(one, bits(compute()), strict=True):
            assert mine == other, f"{what}: 1 thread and {threads}"


SHAPED = (matrices, batches, products, affine)
DRAWN = [
    (name, made, dtypes)
    for made, dtypes, names in TABLE
    for name in names.split()
    if made not in SHAPED and not name.startswith("unbind")  # as many tensors as elements
]


@pytest.mark.parametrize(
    "name, made, dtypes", DRAWN, ids=[f"{n}-{m.__name__}" for n, m, _ in DRAWN]
)
def test_drawn(name, made, dtypes):
    for dtype in dtypes:
        for seed in range(2):
            draw = LargeDraw(f"{name} {dtype} {seed}", dtype)
            arguments = [to_lamella(a) for a in made(draw)]

            def compute(arguments=arguments):
                mine = [a.clone() if isinstance(a, lamella.Tensor) else a for a in arguments]
                result = run(lamella, name, mine, {})
                return tensors(result) + tensors(mine)

            try:
                compute()
            except (RuntimeError, NotImplementedError, IndexError):
                continue  # not a valid call
            same_for_all(compute, f"{name} of {dtype}")


# A function of x and a dimension or several; None is all of them.
REDUCTIONS = {
    "sum": (ALL, lambda x, d: x.sum() if d is None else x.sum(d)),
    "mean": (REAL + COMPLEX, lambda x, d: x.mean() if d is None else x.mean(d)),
    "amax": (WHOLE + REAL + [torch.bool], lambda x, d: x.amax(d or [])),
    "amin": (WHOLE + REAL, lambda x, d: x.amin(d or [])),
    "any": (ALL, lambda x, d: x.any() if d is None else x.any(d)),
    "all": (ALL, lambda x, d: x.all() if d is None else x.all(d)),
    "count_nonzero": (ALL, lambda x, d: x.count_nonzero(d)),
    "var": (REAL + COMPLEX, lambda x, d: x.var(d)),
    "std": (REAL, lambda x, d: x.std(d)),
    "norm0": (REAL, lambda x, d: lamella.linalg.vector_norm(x, 0, d)),
    "norm1": (REAL, lambda x, d: lamella.linalg.vector_norm(x, 1, d)),
    "norm2": (REAL + COMPLEX, lambda x, d: lamella.linalg.vector_norm(x, 2, d)),
    "norm3": (REAL, lambda x, d: lamella.linalg.vector_norm(x, 3, d)),
    "norm2.5": (REAL, lambda x, d: lamella.linalg.vector_norm(x, 2.5, d)),
    "norm inf": (REAL, lambda x, d: lamella.linalg.vector_norm(x, math.inf, d)),
    "norm -inf": (REAL, lambda x, d: lamella.linalg.vector_norm(x, -math.inf, d)),
    "logsumexp": (REAL, lambda x, d: x.logsumexp(list(range(x.dim())) if d is None else d)),
    "nansum": (REAL, lambda x, d: lamella.nansum(x, d)),
}
ALONG = {
    "prod": (ALL, lambda x, d: x.prod(d)),
    "argmax": (WHOLE + REAL, lambda x, d: x.argmax(d)),
    "argmin": (WHOLE + REAL, lambda x, d: x.argmin(d)),
    "max": (WHOLE + REAL, lambda x, d: x.max(d)),
    "min": (WHOLE + REAL, lambda x, d: x.min(d)),
    "cumsum": (ALL, lambda x, d: x.cumsum(d)),
    "cumprod": (ALL, lambda x, d: x.cumprod(d)),
    "logcumsumexp": (REAL, lambda x, d: x.logcumsumexp(d)),
    "aminmax": (WHOLE + REAL, lambda x, d: x.aminmax(dim=d)),
    "softmax": (REAL, lambda x, d: x.softmax(d)),
    "log_softmax": (REAL, lambda x, d: x.log_softmax(d)),
}
DIMS = {1: [None, 0], 2: [None, 0, 1], 4: [None, 0, 3, (0, 2, 3), (1, 3)]}


def inputs(dtype):
    for shape in [(600_011,), (7, 90_001), (607, 1009), (8, 64, 17, 50)]:
        x = to_lamella(make(*shape, dtype=dtype, seed=1))
        yield shape, "", x
        if shape[0] == 607:
            yield shape, " transposed", x.transpose(0, -1).contiguous().transpose(0, -1)
        if shape[0] == 7:
            yield shape, " stepped", x[..., ::2]


@pytest.mark.parametrize("name", [*REDUCTIONS, *ALONG])
def test_reductions(name):
    dtypes, function = (REDUCTIONS if name in REDUCTIONS else ALONG)[name]
    for dtype in dtypes:
        for shape, layout, x in inputs(dtype):
            for dim in DIMS[len(shape)]:
                if name in ALONG and not isinstance(dim, int):
                    continue
                what = f"{name} of {dtype} {shape}{layout}, {dim}"
                same_for_all(lambda x=x, dim=dim: function(x, dim), what)


GRADIENTS = {
    "sum": lambda x: (x * x).sum(),
    "softmax": lambda x: (x.softmax(-1) * x).sum(),
    "log_softmax": lambda x: (x.log_softmax(0) * x).sum(),
    "logsumexp": lambda x: x.logsumexp(-1).sum(),
    "cumsum": lambda x: (x.cumsum(-1) * x).sum(),
    "norm": lambda x: lamella.linalg.vector_norm(x),
    "std": lambda x: x.std(0).sum(),
    "amax": lambda x: x.amax(0).sum(),
    "expand": lambda x: (x + x[:1]).sin().mean(),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients(name, dtype):
    x = to_lamella(make(607, 1009, dtype=dtype, seed=2)).requires_grad_()
    same_for_all(lambda: lamella.autograd.grad(GRADIENTS[name](x), x), name)


@pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{row.path}" for i, row in enumerate(ROWS)])
def test_rows_and_their_gradients(row):
    """The table of differentiable operators, on tensors that are large enough to be split."""
    for dtype in row.dtypes:
        function, inputs = row.grown(100_000).call(dtype)

        def compute(function=function, inputs=inputs):
            results = tensors(function(*inputs))
            ones = [lamella.ones_like(t) for t in results]
            found = lamella.autograd.grad(results, inputs, ones, allow_unused=True)
            return [t.resolve_conj().resolve_neg() for t in [*results, *found] if t is not None]

        try:
            compute()
        except (RuntimeError, IndexError, ValueError) as error:
            # Numbers among the arguments that do not fit larger tensors.
            assert "expected" in str(error)
            continue
        same_for_all(compute, f"{row.name} of {dtype}")


# ---- Accuracy ----

ADDENDS = {
    "of one sign": lambda r: r.random(),
    "of both": lambda r: r.gauss(0, 1),
    "that cancel": lambda r: r.choice([1, -1]) * 10 ** r.uniform(-6, 6),
}


@pytest.mark.parametrize("kind", ADDENDS)
@pytest.mark.parametrize("n", [1000, 100_000, 3_000_001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_are_as_accurate_as_those_of_pytorch(kind, n, dtype):
    """The error against the exact sum, as a part of what the rounding of one addend may be."""
    r = random.Random(n)
    values = torch.tensor([ADDENDS[kind](r) for _ in range(min(n, 100_000))], dtype=torch.float64)
    x = values.repeat(n // len(values) + 1)[:n].to(dtype)
    exact = math.fsum(x.tolist())
    scale = math.fsum(abs(v) for v in x.tolist()) * torch.finfo(dtype).eps
    mine = to_lamella(x)
    steps = 4 * math.log2(n) ** 0.5  # errors of a tree are random, and each level adds some

    def bad(found):
        return abs(found - exact) / scale

    theirs = bad(float(x.sum()))
    assert bad(float(mine.sum())) <= max(theirs, steps / 8)
    matrix = mine[: n // 100 * 100].reshape(-1, 100)
    columns = sum(float(part) for part in matrix.double().sum(0).tolist())
    assert abs(sum(matrix.sum(0).double().tolist()) - columns) / scale <= steps / 4
    assert abs(sum(matrix.sum(1).double().tolist()) - columns) / scale <= steps / 4
    # Running sums of float32 are kept in float64; those of float64 add one eighth after the other.
    limit = 1 if dtype == torch.float32 else math.sqrt(n) / 4
    assert bad(float(mine.cumsum(0)[-1])) <= limit


def test_norms_do_not_overflow():
    for scale in (1e-40, 1e-30, 1e-20, 1.0, 1e19, 1e30, 3e35):
        x = (torch.rand(1000, dtype=torch.float64) * scale).float()
        for order in (1, 2, 3):
            exact = float(torch.linalg.vector_norm(x.double(), order))
            found = float(lamella.linalg.vector_norm(to_lamella(x), order))
            assert found == pytest.approx(exact, rel=1e-5, abs=1e-44), (scale, order)


# ---- One core ----


def test_one_core_says_nothing():
    code = """
        import os
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        import lamella
        x = lamella.rand(500, 500)
        x.sum(), x.sort(), x @ x, x.double() @ x.double(), lamella.linalg.inv(x), x.cumsum(0)
        lamella.nn.functional.conv2d(x[None, None], x[None, None, :3, :3])
    """
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(line.strip() for line in code.splitlines())],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
