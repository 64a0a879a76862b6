"""Losses against PyTorch."""

import pytest
from operator_cases import REAL, check, error_of, make, torch

SMALL = {torch.float16: (5e-3, 5e-3), torch.bfloat16: (3e-2, 3e-2)}
REDUCTIONS = [0, 1, 2]


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    "name, extra",
    [
        ("mse_loss", ()),
        ("smooth_l1_loss", (0.5,)),
        ("smooth_l1_loss", (0.0,)),
        ("huber_loss", (1.5,)),
        ("soft_margin_loss", ()),
        ("l1_loss", ()),
        ("hinge_embedding_loss", None),
    ],
)
def test_pointwise_losses(name, extra, reduction, dtype):
    tolerance = SMALL.get(dtype)
    for shape in ((5,), (3, 70), (2, 3, 4), ()):
        x, t = make(*shape, dtype=dtype), make(*shape, dtype=dtype, seed=1)
        if name in ("soft_margin_loss", "hinge_embedding_loss"):
            t = torch.where(t > 0, 1.0, -1.0).to(dtype)
        if extra is None:
            check(name, x, t, 1.0, reduction, tolerance=tolerance)
            continue
        values = check(name, x, t, reduction, *extra, tolerance=tolerance)
        if name != "l1_loss":
            grad = make(*values.shape, dtype=dtype, seed=2)
            check(name + "_backward", grad, x, t, reduction, *extra, tolerance=tolerance)


def test_mse_loss_of_strided_and_broadcast():
    check("mse_loss", make(6, 5).t(), make(5, 6), 2)
    check("mse_loss", make(3, 1, 4), make(5, 4), 1)
    check("mse_loss", make(0, 3), make(0, 3), 1)
    check("mse_loss", make(300, 700), make(300, 700, seed=1), 2, tolerance=(1e-5, 0))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_binary_cross_entropy(weighted, reduction):
    x, t = make(4, 6, low=0, high=1), make(4, 6, low=0, high=1, seed=1)
    x[0, 0], x[0, 1] = 0.0, 1.0
    weight = make(6, low=0.5, high=2) if weighted else None
    values = check("binary_cross_entropy", x, t, weight, reduction)
    grad = torch.ones_like(values)
    check("binary_cross_entropy_backward", grad, x, t, weight, reduction)
    logits, positive = make(4, 6), make(6, low=0.5, high=3)
    check("binary_cross_entropy_with_logits", logits, t, weight, None, reduction)
    check("binary_cross_entropy_with_logits", logits, t, weight, positive, reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_composite_losses(reduction):
    x, y = make(7, 5), make(7, 5, seed=1)
    p = make(7, 5, low=0, high=1)
    check("kl_div", x, p, reduction)
    check("kl_div", x, p.log(), reduction, log_target=True)
    sign = torch.where(make(7) > 0, 1.0, -1.0)
    check("margin_ranking_loss", make(7), make(7, seed=1), sign, 0.3, reduction)
    check("cosine_embedding_loss", x, y, sign, 0.1, reduction)
    check("cosine_embedding_loss", x[0], y[0], sign[0], 0.1, reduction)
    for log_input in (False, True):
        for full in (False, True):
            positive = x.abs() + 0.1
            check("poisson_nll_loss", positive, y.abs(), log_input, full, 1e-8, reduction)
    for swap in (False, True):
        check("triplet_margin_loss", x, y, make(7, 5, seed=2), 1.0, 2.0, 1e-6, swap, reduction)


def test_pairwise_distance():
    for p in (1.0, 2.0, 3.0, float("inf")):
        check("pairwise_distance", make(4, 5), make(4, 5, seed=1), p)
    check("pairwise_distance", make(5), make(5, seed=1), 2.0, 1e-6, True)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_loss(weighted, reduction, dtype):
    tolerance = SMALL.get(dtype, (1e-5, 1e-6))
    weight = make(5, dtype=dtype, low=0.5, high=2) if weighted else None
    cases = [
        ("nll_loss", make(8, 5, dtype=dtype), make(8, dtype=torch.int64, low=0)),
        ("nll_loss", make(5, dtype=dtype), torch.tensor(3)),
        ("nll_loss2d", make(2, 5, 3, 4, dtype=dtype), make(2, 3, 4, dtype=torch.int64, low=0)),
        ("nll_loss", make(8, 5, dtype=dtype), make(8, dtype=torch.uint8)),
    ]
    for name, x, target in cases:
        for ignored in (-100, 2):
            given = (x, target, weight, reduction, ignored)
            value, total = check(name + "_forward", *given, tolerance=tolerance)
            grad = make(*value.shape, dtype=dtype, seed=3)
            check(name + "_backward", grad, *given, total, tolerance=tolerance)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy(smoothing, weighted, reduction):
    weight = make(5, low=0.5, high=2) if weighted else None
    for shape in ((5,), (8, 5), (2, 5, 3), (2, 5, 3, 4), (2, 5, 2, 3, 2)):
        x = make(*shape)
        places = shape[:1] + shape[2:] if len(shape) > 1 else ()
        target = make(*places, dtype=torch.int64, low=0)
        for ignored in (-100, 2):
            given = (x, target, weight, reduction, ignored, smoothing)
            check("cross_entropy_loss", *given, tolerance=(1e-5, 1e-6), strides=False)
        shares = make(*shape, low=0, high=1, seed=4)
        given = (x, shares, weight, reduction, -100, smoothing)
        check("cross_entropy_loss", *given, tolerance=(1e-5, 1e-6), strides=False)


def test_errors():
    text = error_of("nll_loss", make(2, 3), torch.tensor([1, 3]))
    assert text == "nll_loss: expected the elements of 'target' to be in [0, 3), got 3"
    text = error_of("nll_loss", make(2, 3), torch.tensor([1, 2, 0]))
    assert text == "nll_loss: expected 'target' to be of shape [2], got [3]"
    text = error_of("nll_loss", make(2, 3), torch.tensor([1.0, 2.0]))
    assert text == "nll_loss: expected 'target' to be int64 or uint8, got float32"
    text = error_of("mse_loss", make(2, 3), make(2, 2))
    assert text == "mse_loss: expected 'target' to be broadcastable to [2, 3], got [2, 2]"
    text = error_of("mse_loss", make(2), make(2), 5)
    assert text == "mse_loss: expected 'reduction' to be 0 (none), 1 (mean) or 2 (sum), got 5"
    text = error_of("huber_loss", make(2), make(2), 1, 0.0)
    assert text == "huber_loss: expected 'delta' to be greater than 0, got 0"
    text = error_of("binary_cross_entropy", torch.tensor([0.5, 2.0]), make(2))
    assert text == (
        "binary_cross_entropy: expected the elements of 'self' to be in [0, 1], "
        "got some from 0.5 to 2"
    )


def test_nll_loss_backward_checks_the_total_weight():
    x, target = make(2, 3), torch.tensor([0, 2])

    def error(total, grad=torch.ones(())):
        return error_of("nll_loss_backward", grad, x, target, None, 1, -100, total)

    assert error(torch.ones(0)) == (
        "nll_loss_backward: expected 'total_weight' to be one number, got [0]"
    )
    assert error(torch.ones((), dtype=torch.float16)) == (
        "nll_loss_backward: expected 'total_weight' to be float32, got float16"
    )
    assert error(torch.ones(()), torch.ones((), dtype=torch.float64)) == (
        "nll_loss_backward: expected 'grad_output' to be float32, got float64"
    )
