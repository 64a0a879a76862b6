"""Reductions by kernels on "cuda", beside the CPU."""

import itertools

import pytest
from beside_cpu import FLOATS, INTEGERS, assert_same, check, layouts, values

import lamella
import lamella.nn.functional as F

REDUCTIONS = {
    "sum": lambda x, d, k: x.sum(d, keepdim=k),
    "nansum": lambda x, d, k: x.nansum(d, keepdim=k),
    "mean": lambda x, d, k: x.mean(d, keepdim=k),
    "amax": lambda x, d, k: x.amax(d, keepdim=k),
    "amin": lambda x, d, k: x.amin(d, keepdim=k),
    "any": lambda x, d, k: x.any(d, keepdim=k),
    "all": lambda x, d, k: x.all(d, keepdim=k),
    "var": lambda x, d, k: x.var(d, keepdim=k),
    "std": lambda x, d, k: x.std(d, correction=0, keepdim=k),
    "var_mean": lambda x, d, k: lamella.var_mean(x, d, keepdim=k),
    "count_nonzero": lambda x, d, k: lamella.count_nonzero(x, d),
    "logsumexp": lambda x, d, k: x.logsumexp(d, keepdim=k),
    "norm": lambda x, d, k: lamella.linalg.vector_norm(x, 2, d, k),
}
ONE_DIM = {
    "prod": lambda x, d, k: x.prod(d, keepdim=k),
    "max": lambda x, d, k: tuple(x.max(d, keepdim=k)),
    "min": lambda x, d, k: tuple(x.min(d, keepdim=k)),
    "aminmax": lambda x, d, k: tuple(lamella.aminmax(x, dim=d, keepdim=k)),
    "argmax": lambda x, d, k: x.argmax(d, keepdim=k),
    "argmin": lambda x, d, k: x.argmin(d, keepdim=k),
}
FRACTIONS_ONLY = {"mean", "var", "std", "var_mean", "logsumexp", "norm"}
EXACT = {"amax", "amin", "any", "all", "count_nonzero", "max", "min", "aminmax"}


@pytest.mark.parametrize("name", [*REDUCTIONS, *ONE_DIM])
def test_reductions(cuda, name):
    function = REDUCTIONS.get(name) or ONE_DIM[name]
    dims = [0, 1, -1] if name in ONE_DIM else [0, (0, 2), (-1, 1), (0, 1, 2)]
    for dtype in FLOATS if name in FRACTIONS_ONLY else [*FLOATS, *INTEGERS, lamella.bool]:
        if dtype == lamella.bool and name.startswith("arg"):
            continue
        for x, dim in itertools.product(layouts(values(dtype, 5, 7, 6)), dims):
            if dtype in INTEGERS and name == "prod":
                x = x % 3 + 1
            for keepdim in (False, True):
                check(cuda, lambda u, d=dim, k=keepdim: function(u, d, k), x, exact=name in EXACT)


def test_reductions_of_all(cuda):
    for shape in ((), (1,), (3, 0), (40, 50), (70000,), (2, 70001)):
        for dtype in (lamella.float32, lamella.int64, lamella.bfloat16):
            x = values(dtype, *shape)
            check(cuda, lambda u: (u.sum(), u.nansum(), u.any(), u.all(), u.count_nonzero()), x)
            if x.numel() != 0:
                check(cuda, lambda u: (u.max(), u.min(), u.argmax(), u.argmin()), x, exact=True)
                check(cuda, lambda u: lamella.aminmax(u), x, exact=True)
            if dtype.is_floating_point:
                check(cuda, lambda u: (u.mean(), u.norm(), u.logsumexp(tuple(range(u.dim())))), x)
                if x.numel() != 1:
                    check(cuda, lambda u: (u.std(), u.var(correction=0)), x)


def test_long_columns_and_rows(cuda):
    x = values(lamella.float32, 3000, 40)
    for y in (x, x.t()):
        check(cuda, lambda u: (u.sum(0), u.sum(1), u.var(0), u.logsumexp(0), u.argmax(0)), y)
    assert x.cuda().sum(0).cpu().tolist() == x.cuda().sum(0).cpu().tolist()


def test_results_without_elements(cuda):
    x = lamella.ones(2, 0, 3)
    check(cuda, lambda u: (u.sum(1), u.prod(1), u.mean(1), u.any(1), u.all(1), u.norm(2, 1)), x)
    check(cuda, lambda u: (u.var(1), u.sum(), u.logsumexp(1), u.cumsum(1), u.softmax(1)), x)
    check(cuda, lambda u: (u.sum(0), u.amax(0)), x)


def test_special_numbers(cuda):
    inf, nan = float("inf"), float("nan")
    rows = [
        [1, nan, 3, -2], [nan, 1, nan, 0], [inf, -inf, 1, 2], [-inf, -inf, -inf, -inf],
        [inf, inf, 1, 0], [-0.0, 0.0, -0.0, 0.0], [3, 3, 1, 1], [1, 1, 3, 3],
    ]  # fmt: skip
    for dtype in FLOATS:
        x = lamella.tensor(rows, dtype=dtype)
        for y in (x, x.t().contiguous().t()):
            for name, function in {**REDUCTIONS, **ONE_DIM}.items():
                check(cuda, lambda u, f=function: f(u, 1, False), y, exact=name in EXACT)
            check(cuda, lambda u: (u.softmax(1), u.log_softmax(1), u.cumsum(1), u.cumprod(1)), y)
            check(cuda, lambda u: (tuple(u.cummax(1)), tuple(u.cummin(1))), y, exact=True)
            check(cuda, lambda u: u.logcumsumexp(1), y)
            for order in (0, 1, 3, 2.5, inf, -inf, -1):
                check(cuda, lambda u, p=order: lamella.linalg.vector_norm(u, p, 1), y)
    huge = lamella.tensor([1e30, 1e30, 1e-30])
    check(cuda, lambda u: (u.norm(), u.norm(3), u.var(), u.mean()), huge)
    check(cuda, lambda u: u.sum(), lamella.tensor([2**62, 2**62, 2**62]))


def test_dtypes_and_outputs(cuda):
    x = values(lamella.int32, 4, 5)
    check(cuda, lambda u: (u.sum(0, dtype=lamella.int32), u.sum(dtype=lamella.int8)), x)
    y = values(lamella.float16, 4, 5)
    check(cuda, lambda u: (u.sum(0, dtype=lamella.float32), u.mean(1, dtype=lamella.float32)), y)
    check(cuda, lambda u: u.cumsum(0, dtype=lamella.float32), y)
    check(cuda, lambda u: (u.sum(0), u.sum(), u.mean(1)), values(lamella.complex64, 4, 5))
    check(cuda, lambda u: (u.var(0), u.std()), values(lamella.complex64, 4, 5))
    for out_shape in ((5,), (0,)):
        out = lamella.empty(out_shape, device="cuda")
        z = values(lamella.float32, 4, 5)
        lamella.sum(z.cuda(), 0, out=out)
        assert_same(z.sum(0), out)
    strided = lamella.zeros(5, 2, device="cuda")[:, 0]
    lamella.amax(z.cuda(), 0, out=strided)
    assert_same(z.amax(0), strided, exact=True)
    large, places = lamella.empty(0, device="cuda"), lamella.empty(0, dtype=int, device="cuda")
    lamella.max(z.cuda(), 1, out=(large, places))
    assert_same(tuple(z.max(1)), (large, places))


def test_errors_are_the_cpus(cuda):
    def message(function, device):
        with pytest.raises((RuntimeError, IndexError, ValueError)) as error:
            function(lamella.ones(2, 3, device=device))
        return type(error.value), str(error.value)

    for function in (
        lambda x: x.sum(5),
        lambda x: x.sum((0, 0)),
        lambda x: x[:0].amax(0),
        lambda x: x.long().mean(),
        lambda x: x.cumsum(2),
        lambda x: F.layer_norm(x, (4,)),
        lambda x: F.cross_entropy(x, x[0].long()),
        lambda x: F.mse_loss(x, x, reduction="all"),
        lambda x: F.batch_norm(x, None, None),
    ):
        assert message(function, "cpu") == message(function, "cuda")
