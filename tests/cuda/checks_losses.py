"""Losses by kernels on "cuda", with gradients, beside the CPU."""

import pytest
from beside_cpu import FLOATS, check_gradients, leaf, values

import lamella
import lamella.nn.functional as F


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses(cuda, dtype, reduction):
    x, t = leaf(dtype, 4, 6), values(dtype, 4, 6, seed=1)
    for function in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
        check_gradients(cuda, lambda u, v, f=function: f(u, v, reduction=reduction), x, t)
    signs = t.sign()
    check_gradients(cuda, lambda u, v: F.soft_margin_loss(u, v, reduction=reduction), x, signs)
    chances = x.detach().sigmoid().clamp(0.01, 0.99).requires_grad_()
    check_gradients(
        cuda,
        lambda u, v, r=reduction: F.binary_cross_entropy(u, v, reduction=r),
        chances,
        signs.abs(),
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_of_classes(cuda, dtype, reduction):
    for shape in ((5, 7), (7,), (2, 7, 3, 4), (2, 7, 5)):
        x = leaf(dtype, *shape)
        classes = (shape[0], *shape[2:]) if len(shape) > 1 else ()
        t = values(lamella.int64, *classes).abs() % 7
        w = values(dtype, 7, seed=2).abs() + 0.1
        for weight in (None, w):
            check_gradients(
                cuda,
                lambda u, c, v: F.cross_entropy(u, c, v, ignore_index=3, reduction=reduction),
                x, t, weight,
            )  # fmt: skip
        check_gradients(
            cuda, lambda u, c: F.cross_entropy(u, c, reduction=reduction, label_smoothing=0.1), x, t
        )


def test_nothing_is_waited_for(cuda, standin):
    x = lamella.randn(8, 16, device="cuda").requires_grad_()
    w, t = lamella.ones(16, device="cuda"), lamella.arange(8, device="cuda")
    cuda.synchronize()
    standin.standin_reset_calls()
    loss = F.cross_entropy(F.layer_norm(x, (16,), w), t) + x.softmax(1).var() + x.logsumexp(0).sum()
    loss.backward()
    assert standin.calls("cuStreamSynchronize") == 0 and standin.calls("cuMemcpyDtoHAsync_v2") == 0
