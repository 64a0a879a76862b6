"""Gradients of pointwise operators and reductions in delicate cases, against PyTorch: zeros in
products, ties, bounds, norms at zero, NaN, mixed dtypes. test_op_db_gradients.py has the rest."""

import itertools
import math

import numpy as np
import pytest
from operator_cases import compare, lamella, make, to_lamella, torch


def both(function, *inputs, seconds=True):
    """Compares results, gradients, second gradients and tangents of function(module, *inputs)."""
    found = []
    for module in (torch, lamella):
        here = [x.detach().clone() for x in inputs]
        here = [to_lamella(x) if module is lamella else x for x in here]
        wants = [x.is_floating_point() or x.is_complex() for x in here]
        leaves = [x.requires_grad_() for x, wanted in zip(here, wants) if wanted]
        result = function(module, *here)
        weight = make(*result.shape, dtype=torch_dtype(result), seed=7).requires_grad_()
        if module is lamella:
            weight = to_lamella(weight.detach()).requires_grad_()
        first = module.autograd.grad(result, leaves, weight, create_graph=seconds)
        parts = [result.detach(), *(g.detach() for g in first)]
        if seconds:
            chosen = [g for g in first if g.requires_grad]
            total = sum(
                (g * g.conj_physical()).real.sum() if g.is_complex() else (g * g).sum()
                for g in chosen
            )
            parts += module.autograd.grad(total, [*leaves, weight], allow_unused=True)
        found.append([p if p is None else p.detach() for p in parts])
    for mine, theirs in zip(found[1], found[0]):
        assert (mine is None) == (theirs is None) or not (mine if theirs is None else theirs).any()
        if mine is not None and theirs is not None:
            compare(mine, theirs, strides=False, tolerance=(1e-7, 1e-7))


def torch_dtype(x):
    return getattr(torch, str(x.dtype).rsplit(".", 1)[1])


def wide(*shape, **how):
    return make(*shape, dtype=torch.float64, **how)


@pytest.mark.parametrize("zeros", [[], [2], [0], [1, 3], [0, 1, 4]])
def test_products_with_zeros(zeros):
    x = wide(2, 5)
    x[0, zeros] = 0
    both(lambda m, x: x.prod(1), x)
    both(lambda m, x: x.prod(0, True), x)
    both(lambda m, x: x.prod(), x)
    both(lambda m, x: x.cumprod(1), x)
    both(lambda m, x: x.cumprod(0), x)
    both(lambda m, x: x.cumprod(-1), x, seconds=False)
    both(lambda m, x: x.cumprod(1), make(2, 4, dtype=torch.complex128))


def test_ties():
    x, y = torch.tensor([1.0, 2.0, 3.0, 3.0]).double(), torch.tensor([1.0, 3.0, 2.0, 3.0]).double()
    for name in ("maximum", "minimum", "fmax", "fmin"):
        both(lambda m, x, y, name=name: getattr(m, name)(x, y), x, y)
    for name in ("amax", "amin"):
        both(lambda m, x, name=name: getattr(x, name)(0), x)
        both(lambda m, x, name=name: getattr(x, name)(0, True), x)
    for name in ("max", "min", "median"):
        both(lambda m, x, name=name: getattr(x, name)(), x)
        both(lambda m, x, name=name: getattr(x, name)(0)[0], wide(3, 5))


def test_bounds():
    x = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0]).double()
    low, high = torch.zeros(5).double(), torch.ones(1).double()
    both(lambda m, x: x.clamp(0, 1), x)
    both(lambda m, x: x.clamp(min=0.5), x)
    both(lambda m, x, a, b: x.clamp(a, b), x, low, high)
    both(lambda m, x, a: x.clamp(max=a), x, high)
    both(lambda m, x, a, b: x.clamp(b, a), x, low, high)
    both(lambda m, x, a: m.clamp_min(x, a), x, low)


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, float("inf"), -float("inf")])
def test_norms(p):
    both(lambda m, x: m.linalg.vector_norm(x, p), wide(3, 4))
    both(lambda m, x: m.linalg.vector_norm(x, p, 1), wide(3, 4))
    both(lambda m, x: m.linalg.vector_norm(x, p), make(4, dtype=torch.complex128))
    if p >= 1:
        both(lambda m, x: m.linalg.vector_norm(x, p), torch.zeros(3).double(), seconds=False)
        both(lambda m, x, y: m.dist(x, y, p), wide(4), wide(4), seconds=False)


def test_powers():
    x, e = torch.tensor([0.0, 1.5, 2.0, 0.0]).double(), torch.tensor([2.0, 0.0, 3.0, 0.5]).double()
    both(lambda m, x, e: x**e, x, e, seconds=False)
    both(lambda m, x, e: x**e, x + 1, e)
    for exponent in (0, 1, 2, 3, 0.5, -1, 2.5, 1 + 1j):
        both(lambda m, x, e=exponent: x**e, x + 0.5, seconds=exponent not in (0, 1))
    both(lambda m, e: 2**e, e)
    both(lambda m, e: m.pow(0, e), e, seconds=False)
    both(lambda m, x, e: x**e, make(3, dtype=torch.complex128), make(3, dtype=torch.complex128))
    both(lambda m, e: m.full_like(e.real, -2.0) ** e, make(3, dtype=torch.complex128))


def test_broadcast_and_mixed_dtypes():
    both(lambda m, x, y: x * y, wide(3, 1), wide(4))
    both(lambda m, x, y: x / y, wide(3, 1), make(4, dtype=torch.complex128))
    both(lambda m, x, y: x * y, wide(3), make(3, dtype=torch.float32), seconds=False)
    both(lambda m, x, y: m.where(x > 0, x, y), wide(3, 1), wide(4))
    both(lambda m, x, y, w: m.lerp(x, y, w), wide(3, 1), wide(4), wide(3, 4))
    both(lambda m, x, y, z: m.addcmul(x, y, z, value=2), wide(3, 1), wide(4), wide(3, 4))
    both(lambda m, x, y, z: m.addcdiv(x, y, z, value=2), wide(3, 1), wide(4), wide(3, 4) + 9)


def test_deviations():
    both(lambda m, x: m.std(x, 1), torch.ones(2, 3).double(), seconds=False)


def test_comparisons_do_not_require_gradients():
    x = to_lamella(wide(3)).requires_grad_()
    for result in (x > 0, x == x, x.isnan(), x.argmax(), lamella.zeros_like(x), x.sign()):
        if result.is_floating_point() and result is not None and result.requires_grad:
            assert not lamella.autograd.grad(result.sum(), x)[0].any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_logcumsumexp_of_far_numbers(dtype):
    # Weights of the elements so far, which sum up to 1; exp of the numbers overflows.
    x = torch.tensor([1000.0, -800.0, 999.0, 1002.0, 1002.0], dtype=dtype)
    t = make(5, dtype=dtype)
    weights = torch.zeros(5, 5, dtype=dtype)
    for i in range(5):
        weights[i, : i + 1] = torch.softmax(x[: i + 1].real, 0).to(dtype)
    ours = to_lamella(x)
    tangent = lamella.func.jvp(lambda x: x.logcumsumexp(0), (ours,), (to_lamella(t),))[1]
    compare(tangent, weights @ t, strides=False, tolerance=(1e-9, 1e-9))
    ours.requires_grad_()
    grad = lamella.autograd.grad(ours.logcumsumexp(0), ours, to_lamella(t))[0]
    compare(grad.resolve_conj(), weights.mH @ t, strides=False, tolerance=(1e-9, 1e-9))


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_logcumsumexp_behind_nothing(dtype):
    x = torch.tensor([-torch.inf, -torch.inf, 1.0, 2.0], dtype=dtype)
    t = torch.tensor([1.0, 2.0, 3.0, 0.0], dtype=dtype)
    tangent = lamella.func.jvp(lambda x: x.logcumsumexp(0), (to_lamella(x),), (to_lamella(t),))[1]
    compare(tangent, torch.func.jvp(lambda x: x.logcumsumexp(0), (x,), (t,))[1], strides=False)


def test_branches_of_complex_logcumsumexp():
    inf, nan = float("inf"), float("nan")
    for x in (
        [1 + 5j, 1 + 9j, 1 - 7j],
        [complex(-inf, 1), complex(-inf, 2), 1j],
        [complex(inf, 1), complex(inf, 2)],
        [1j, complex(nan, 1), 1],
        [complex(-inf, inf), 1j],
    ):
        x = torch.tensor(x, dtype=torch.complex128)
        compare(to_lamella(x).logcumsumexp(0), x.logcumsumexp(0), strides=False)


def _determinant(matrix, rows, columns):
    """The determinant without these rows and columns."""
    rest = np.delete(np.delete(matrix, rows, 0), columns, 1)
    return np.linalg.det(rest) if rest.size else 1.0


def _derivatives_of_det(matrix):
    """The first and second derivatives by all elements: minors, with their signs."""
    n = len(matrix)
    first = np.zeros((n, n), matrix.dtype)
    second = np.zeros((n, n, n, n), matrix.dtype)
    for i, j in itertools.product(range(n), repeat=2):
        first[i, j] = (-1) ** (i + j) * _determinant(matrix, [i], [j])
        for k, m in itertools.product(range(n), repeat=2):
            if i != k and j != m:
                sign = (-1) ** (i + j + k + m) * (1 if (i < k) == (j < m) else -1)
                second[i, j, k, m] = sign * _determinant(matrix, [i, k], [j, m])
    return first, second


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_det_of_every_rank(n, dtype):
    rng = np.random.default_rng(n)

    def draw(*shape):
        parts = rng.standard_normal((2, *shape))
        return (parts[0] + 1j * parts[1]).astype(dtype) if dtype == np.complex128 else parts[0]

    matrices = np.stack([draw(n, r) @ draw(r, n) for r in range(n + 1)])
    direction = draw(n, n)
    first, second = map(np.stack, zip(*map(_derivatives_of_det, matrices)))
    turned = np.einsum("bijkl,ij->bkl", second, direction)
    scale = {"rtol": 1e-9, "atol": 1e-9 * max(1.0, np.abs(matrices).max() ** (n - 1))}

    a = lamella.tensor(matrices).requires_grad_()
    v = lamella.tensor(direction)
    det = lamella.linalg.det(a)
    weight = lamella.ones_like(det)
    (plain,) = lamella.autograd.grad(det, a, weight, retain_graph=True)
    (again,) = lamella.autograd.grad(det, a, weight, create_graph=True)
    for gradient in (plain, again):
        np.testing.assert_allclose(gradient.tolist(), first.conj(), **scale)
    if n > 1:
        (vector,) = lamella.autograd.grad(again, a, v.expand(a.shape))
        np.testing.assert_allclose(vector.tolist(), turned.conj(), **scale)
    forward = lamella.func.jvp(lamella.linalg.det, (a.detach(),), (v.expand(a.shape),))[1]
    np.testing.assert_allclose(forward.tolist(), (first * direction).sum((1, 2)), **scale)
    if dtype == np.float64:
        for outer, inner in itertools.product((lamella.func.jacfwd, lamella.func.jacrev), repeat=2):
            hessian = lamella.vmap(outer(inner(lamella.linalg.det)))(a.detach())
            np.testing.assert_allclose(hessian.tolist(), second, **scale)


@pytest.mark.parametrize("rank", [0, 3, 9, 11, 12])
def test_det_of_larger_matrices(rank):
    rng = np.random.default_rng(rank)
    sizes = np.concatenate([np.linspace(1, 2, rank), np.zeros(12 - rank)])
    left, right = (np.linalg.qr(rng.standard_normal((12, 12)))[0] for _ in range(2))
    matrix = left * sizes @ right
    first, second = _derivatives_of_det(matrix)
    a = lamella.tensor(matrix).requires_grad_()
    det = lamella.linalg.det(a)
    (gradient,) = lamella.autograd.grad(det, a, create_graph=True)
    scale = {"rtol": 0, "atol": 1e-11 * 2.0**rank}
    np.testing.assert_allclose(gradient.tolist(), first, **scale)
    (vector,) = lamella.autograd.grad(gradient, a, a.detach())
    np.testing.assert_allclose(vector.tolist(), np.einsum("ijkl,ij->kl", second, matrix), **scale)


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian", "amax", "amin"])
@pytest.mark.parametrize(
    "values, taken",
    [
        ([1.0, math.nan, 2.0], [0, 1, 0]),
        ([math.nan, math.nan, 1.0], [1, 1, 0]),
        ([math.nan, math.nan], [1, 1]),
    ],
)
def test_extremes_of_nan(name: str, values: list[float], taken: list[int]) -> None:
    """The gradient goes to the elements that are the result, in equal parts."""
    kept = [x for x in values if not math.isnan(x)]
    if name == "nanmedian" and kept:
        taken = [int(x == min(kept)) for x in values]
    x = lamella.tensor(values, requires_grad=True)
    getattr(x, name)().backward()
    assert x.grad.tolist() == pytest.approx([each / sum(taken) for each in taken])
    share = lamella.func.jvp(
        lambda x: getattr(x, name)(), (x.detach(),), (lamella.ones(len(taken)),)
    )
    assert share[1].item() == 1
