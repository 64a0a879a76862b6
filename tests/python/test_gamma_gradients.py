"""Derivatives of gamma and beta samples by their parameters, against differences of SciPy's
quantiles."""

import time

import numpy as np
import pytest
from scipy import special

import lamella

QUANTILES = (0.001, 0.1, 0.5, 0.9, 0.999)


def slope(quantile, shape):
    h = 1e-4 * shape
    near = quantile(shape - h) - quantile(shape + h)
    far = quantile(shape - 2 * h) - quantile(shape + 2 * h)
    return (far - 8 * near) / (12 * h)


@pytest.mark.parametrize("q", QUANTILES)
def test_gamma(q):
    shapes = np.array([0.05, 0.5, 1.0, 2.0, 5.0, 30.0, 300.0, 3e4, 4e5])
    x = special.gammaincinv(shapes, q)
    got = lamella._standard_gamma_grad(lamella.from_numpy(shapes), lamella.from_numpy(x)).numpy()
    expected = slope(lambda a: special.gammaincinv(a, q), shapes)
    np.testing.assert_allclose(got, expected, rtol=1e-7)


# Far above the mean, by mpmath: the derivative of gammainc(a, x, inf) by a over the density. For
# huge numbers it is log(x) - psi(a), for which log(x) + Euler's constant stands where a is 1.
TAILS = [
    (1, 1000, 7.485969945877693),
    (0.5, 1e5, 13.47637810962491),
    (1e-3, 50, 985.1945772648785),
    (10, 60, 2.183016610434856),
    (50, 100, 1.3908543540860945),
    (2310, 4700, 1.3969528583378397),
    (9e4, 93000, 1.0164863898261),
    (1, 1e30, np.log(1e30) + np.euler_gamma),
    (1, 1e300, np.log(1e300) + np.euler_gamma),
]


@pytest.mark.parametrize("a, x, expected", TAILS)
def test_gamma_far_above_the_mean(a, x, expected):
    numbers = (lamella.tensor(v, dtype=lamella.float64) for v in (a, x))
    assert lamella._standard_gamma_grad(*numbers).item() == pytest.approx(expected, rel=1e-13)


def test_huge_numbers_take_no_longer():
    special_numbers = [np.nan, np.inf, -np.inf, 0.0, -1.0, 5e-324, 1e-300, 1.0, 1e12, 1e300]
    grid = np.array(np.meshgrid(special_numbers, special_numbers, special_numbers)).reshape(3, -1)
    huge = [lamella.tensor(np.tile(row, 20)) for row in grid]
    usual = [lamella.full_like(t, value) for t, value in zip(huge, (0.5, 2.0, 3.0))]

    def processor_time(x, a, total):
        before = time.process_time()
        lamella._standard_gamma_grad(a, x)
        lamella._dirichlet_grad(x / (x + 1), a, total)
        return time.process_time() - before

    # Series that were summed term by term took a million times as long.
    processor_time(*usual)
    assert processor_time(*huge) < 10_000 * max(processor_time(*usual), 1e-3)
    half = lamella.tensor(0.5, dtype=lamella.float64)
    near, far = (
        lamella._dirichlet_grad(half, lamella.tensor(a), lamella.tensor(2 * a)).item() * a
        for a in (9e8, 1.1e9)
    )
    assert near == pytest.approx(0.5, rel=1e-6) and far == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("q", QUANTILES)
@pytest.mark.parametrize("a, b", [(0.5, 0.7), (2, 3), (0.1, 0.1), (30, 5), (300, 500), (0.3, 40)])
def test_beta(a, b, q):
    x = special.betaincinv(a, b, q)
    arguments = (lamella.tensor(v, dtype=lamella.float64) for v in (x, a, a + b))
    got = lamella._dirichlet_grad(*arguments).item()
    expected = slope(lambda a: special.betaincinv(a, b, q), a) / (1 - x)
    if x < 1 - 1e-6:  # where the differences have digits enough
        assert got == pytest.approx(expected, rel=1e-6)


def test_shapes_too_small_for_numbers():
    for dtype in (lamella.float32, lamella.float64):
        shapes = lamella.full((4,), 1e-20, dtype=dtype, requires_grad=True)
        drawn = lamella._standard_gamma(shapes)
        assert drawn.tolist() == [lamella.finfo(dtype).tiny] * 4
        drawn.sum().backward()
        assert shapes.grad.isfinite().all()
        assert lamella._sample_dirichlet(shapes).tolist() == [0.25] * 4


def test_gradients_of_points_of_the_simplex():
    """What one concentration takes from the others, they lose in proportion."""
    alpha = lamella.tensor([0.5, 2.0, 3.0], dtype=lamella.float64, requires_grad=True)
    lamella.manual_seed(0)
    x = lamella._sample_dirichlet(alpha)
    for k in range(3):
        (grad,) = lamella.autograd.grad(x[k], alpha, retain_graph=True)
        one = alpha.detach().numpy()
        for i in range(3):
            q = special.betainc(one[i], one.sum() - one[i], x[i].item())
            rest = one.sum() - one[i]
            moved = slope(lambda a, q=q, rest=rest: special.betaincinv(a, rest, q), one[i])
            share = 1 if i == k else -x[k].item() / (1 - x[i].item())
            assert grad[i].item() == pytest.approx(moved * share, rel=1e-6)


ERRORS = [
    (lambda: lamella._standard_gamma(lamella.tensor([-1.0])),
     "_standard_gamma: expected the elements of 'self' to be finite and at least 0, got -1"),
    (lambda: lamella._standard_gamma(lamella.tensor([1])),
     "_standard_gamma: expected 'self' to be floating point, got int64"),
    (lambda: lamella._sample_dirichlet(lamella.tensor(1.0)),
     "_sample_dirichlet: expected 'self' to have at least 1 dimension, got a tensor with 0"),
    (lambda: lamella._dirichlet_grad(lamella.ones(2), lamella.ones(3), lamella.ones(3)),
     "_dirichlet_grad: expected 'alpha' to be broadcastable to [2], got [3]"),
]  # fmt: skip


@pytest.mark.parametrize("call, text", ERRORS, ids=range(len(ERRORS)))
def test_errors(call, text):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).startswith(text)
