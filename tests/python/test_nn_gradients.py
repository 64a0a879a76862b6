"""Gradients of neural networks' operators where op_db has no samples, against PyTorch."""

import pytest
from operator_cases import make, to_lamella, torch

import lamella

F64 = torch.float64


def test_batch_norm_twice_before_backward():
    x = lamella.ones(4, 2).requires_grad_()
    mean, var = lamella.zeros(2), lamella.ones(2)
    first = lamella.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, False)
    second = lamella.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, False)
    (first + second).sum().backward()
    assert x.grad.shape == x.shape


def test_gradient_of_a_target_that_is_broadcast():
    # PyTorch's operator divides it by the target's own number of elements.
    ours = [to_lamella(make(*shape, dtype=F64)).requires_grad_() for shape in ((4, 5), (1, 5))]
    assert lamella.autograd.gradcheck(lambda a, b: lamella.nn.functional.mse_loss(a, b), ours)


def test_gradient_of_dropout():
    x = lamella.ones(1000).requires_grad_()
    out, mask = lamella.native_dropout(x, 0.25, True)
    (grad,) = lamella.autograd.grad(out.sum(), x)
    assert (grad == mask * (1 / 0.75)).all()


@pytest.mark.parametrize("mask", ["none", "causal", "bool", "float"])
def test_attention(mask):
    """Fused in float32, by parts in float64: both give the gradients of the parts."""
    shape = (2, 3, 6, 8)
    q, k, v = (make(*shape, dtype=F64, seed=i, low=-1, high=1) for i in range(3))
    given = None
    if mask == "bool":
        given = make(6, 6, dtype=torch.bool) | torch.eye(6, dtype=torch.bool)
    if mask == "float":
        given = make(6, 6, dtype=F64)
    grad = make(*shape, dtype=F64, seed=9)
    results = []
    for dtype in (torch.float64, torch.float32):
        ours = [to_lamella(t.to(dtype)).requires_grad_() for t in (q, k, v)]
        m = given if given is None or given.dtype == torch.bool else given.to(dtype)
        m = None if m is None else to_lamella(m)
        out = lamella.nn.functional.scaled_dot_product_attention(
            *ours, attn_mask=m, is_causal=mask == "causal"
        )
        grads = lamella.autograd.grad(out, ours, to_lamella(grad.to(dtype)), create_graph=True)
        more = lamella.autograd.grad((grads[0] * grads[0]).sum(), ours)
        results.append([torch.from_dlpack(t.detach()).to(F64) for t in (out, *grads, *more)])
    theirs = [t.clone().requires_grad_() for t in (q, k, v)]
    expected = torch.nn.functional.scaled_dot_product_attention(
        *theirs, attn_mask=given, is_causal=mask == "causal"
    )
    expected = [expected, *torch.autograd.grad(expected, theirs, grad)]
    for exact, single, e in zip(results[0], results[1], expected):
        torch.testing.assert_close(exact, e.detach(), rtol=1e-7, atol=1e-7)
        torch.testing.assert_close(single, e.detach(), rtol=1e-3, atol=1e-4)
    for exact, single in zip(*results):
        torch.testing.assert_close(single, exact, rtol=1e-2, atol=1e-3)
