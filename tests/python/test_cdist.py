"""Distances between rows (cdist, pdist) against PyTorch: orders, shapes, gradients, modes."""

import math

import pytest
from operator_cases import check, compare, error_of, lamella, make, same_bits, to_lamella, torch

ORDERS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf]
# Few and many rows, whole and broken panels, stacks that are broadcast.
SHAPES = [((3, 4), (5, 4)), ((1, 7), (130, 7)), ((70, 33), (49, 33)), ((2, 3, 5), (7, 5)),
          ((2, 1, 6, 3), (4, 5, 3)), ((9, 600), (3, 600)), ((4, 0), (3, 0)), ((0, 3), (4, 3)),
          ((2, 3), (0, 3))]  # fmt: skip
MODES = ["use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
         "donot_use_mm_for_euclid_dist"]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_against_torch(shapes, p, dtype):
    given = [make(*s, dtype=dtype, seed=i) for i, s in enumerate(shapes)]
    theirs = [t.clone().double().requires_grad_(True) for t in given]
    mine = [to_lamella(t.clone()).requires_grad_(True) for t in given]
    expected = torch.cdist(*theirs, p, MODES[2])
    got = lamella.cdist(*mine, p)
    limit = (1e-4, 2e-4) if dtype == torch.float32 else (1e-9, 1e-9)
    compare(got.detach(), expected.detach().to(dtype), strides=False, tolerance=limit)
    grad = make(*expected.shape, dtype=dtype, seed=3)
    if p == 0 or got.numel() == 0 or shapes[0][-1] == 0:
        return
    grads = torch.autograd.grad(expected, theirs, grad.double())
    for one, other in zip(lamella.autograd.grad(got, mine, to_lamella(grad)), grads):
        scale = limit[1] * max(1.0, float(other.abs().max()))
        compare(one, other.to(dtype), strides=False, tolerance=(limit[0] * 5, scale))


@pytest.mark.parametrize("mode", MODES)
def test_modes(mode):
    x, y = make(30, 6, dtype=torch.float64), make(4, 6, dtype=torch.float64, seed=1)
    got = lamella.cdist(to_lamella(x), to_lamella(y), compute_mode=mode)
    compare(got, torch.cdist(x, y, compute_mode=mode), strides=False, tolerance=(1e-9, 1e-9))


def test_equal_rows_and_ties():
    x = torch.tensor([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0], [1.0, 2.0, 2.0]])
    y = torch.tensor([[1.0, 2.0, 2.0], [2.0, 1.0, 3.0]])
    for p in (0.5, 1.0, 1.5, 2.0, 3.0, math.inf):
        theirs = [t.clone().requires_grad_(True) for t in (x, y)]
        mine = [to_lamella(t.clone()).requires_grad_(True) for t in (x, y)]
        expected = torch.autograd.grad(torch.cdist(*theirs, p).sum(), theirs)
        got = lamella.autograd.grad(lamella.cdist(*mine, p).sum(), mine)
        for one, other in zip(got, expected):
            compare(one, other, strides=False, tolerance=(1e-5, 1e-6), what=f"p={p}")


def test_special_values():
    x, y = make(5, 20), make(30, 20, seed=1)
    x[1, 3] = float("nan")
    x[2, 0] = float("inf")
    y[7, 5] = -float("inf")
    for p in (1.0, 2.0, 3.0, math.inf):
        got = lamella.cdist(to_lamella(x), to_lamella(y), p, MODES[2])
        # PyTorch's own cdist loses NaN in the greatest difference.
        expected = torch.linalg.vector_norm(x.unsqueeze(1) - y.unsqueeze(0), p, -1)
        compare(got, expected, strides=False, tolerance=(1e-4, 1e-4))


def test_the_operators():
    x, y = make(6, 5), make(4, 5, seed=1)
    for p in (1.0, 2.0, 2.5):
        distances = check("_cdist_forward", x, y, p, 2, strides=False, tolerance=(1e-4, 1e-5))
        grad = make(6, 4, seed=2)
        check("_cdist_backward", grad, x, y, p, distances, strides=False, tolerance=(1e-4, 1e-5))
    assert error_of("_cdist_backward", grad[:1], x, y, p, distances) == (
        "_cdist_backward: expected 'grad' to be float32 of shape [6, 4], got float32 [1, 4]"
    )
    assert error_of("cdist", x, y[:, :2]) == (
        "cdist: expected 'x2' to have 5 columns as 'x1' does, got [4, 2]"
    )
    assert error_of("cdist", x, y, 2.0, 3) == "cdist: expected 'compute_mode' from 0 to 2, got 3"
    assert error_of("cdist", x, y, -1.0) == "cdist: expected 'p' of at least 0, got -1"


def test_second_derivatives():
    lamella.manual_seed(0)
    x = lamella.randn(3, 2, dtype=lamella.float64, requires_grad=True)
    y = lamella.randn(4, 2, dtype=lamella.float64, requires_grad=True)
    for p in (1.5, 2.0, 3.0):
        assert lamella.autograd.gradgradcheck(lambda a, b, p=p: lamella.cdist(a, b, p), (x, y))


def test_pdist():
    for rows in (0, 1, 2, 9):
        x = make(rows, 4, dtype=torch.float64)
        for p in (0.0, 1.0, 2.0, 3.0, math.inf):
            check("pdist", x, p, strides=False, tolerance=(1e-9, 1e-9))
    assert error_of("pdist", x[0]) == "pdist: expected 'self' to have 2 dimensions, got [4]"


def test_threads_give_the_same_bits():
    x, y = to_lamella(make(200, 40)), to_lamella(make(150, 40, seed=1))
    for p in (1.0, 2.0, 2.5):

        def compute(p=p):
            leaf = x.detach().requires_grad_(True)
            out = lamella.cdist(leaf, y, p)
            return out, *lamella.autograd.grad(out.sum(), leaf)

        same_bits(compute)
