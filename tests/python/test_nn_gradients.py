"""Gradients of neural networks' operators, to second order and in forward mode, against PyTorch."""

import pytest
from operator_cases import make, run, to_lamella, torch

import lamella

F64 = torch.float64


def tensors_of(values):
    """The floating tensors of the arguments, in order."""
    return [v for v in values if hasattr(v, "requires_grad") and v.requires_grad]


def differentiated(module, name, args, kwargs, seeds, second):
    """The value, its gradients, and their gradients."""
    out = run(module, name, args, kwargs)
    out = out[0] if isinstance(out, (tuple, list)) else out
    inputs = tensors_of(args)
    grad = seeds(out.shape, 0)
    grad.requires_grad_()
    first = module.autograd.grad(out, inputs, grad, create_graph=second)
    result = [out, *first]
    if second:
        total = None
        for i, g in enumerate(first):
            term = (g * seeds(g.shape, i + 1)).sum()
            total = term if total is None else total + term
        if total.requires_grad:
            more = module.autograd.grad(total, [grad, *inputs], allow_unused=True)
            result.extend(more)
    return result


def check_gradients(name, *args, second=True, forward=True, **kwargs):
    theirs = [
        a.clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a
        for a in args
    ]
    ours = [to_lamella(a.detach() if isinstance(a, torch.Tensor) else a) for a in theirs]
    for mine, other in zip(ours, theirs):
        if isinstance(other, torch.Tensor) and other.requires_grad:
            mine.requires_grad_()

    def seed_torch(shape, i):
        return make(*shape, dtype=F64, seed=100 + i, low=-1, high=1)

    def seed_ours(shape, i):
        return to_lamella(seed_torch(tuple(shape), i))

    expected = differentiated(torch, name, theirs, kwargs, seed_torch, second)
    our_kwargs = {k: to_lamella(v) for k, v in kwargs.items()}
    got = differentiated(lamella, name, ours, our_kwargs, seed_ours, second)
    assert len(got) == len(expected)
    for i, (g, e) in enumerate(zip(got, expected)):
        zero = e is None or not e.abs().max().item() if e is None or e.numel() else True
        if g is None:
            assert zero, (name, i)
            continue
        value = torch.from_dlpack(g.detach())
        if e is None:
            assert not value.abs().max().item(), (name, i)
            continue
        torch.testing.assert_close(
            value, e.detach(), rtol=1e-7, atol=1e-8, msg=lambda t, i=i: f"{name} {i}: {t}"
        )
    if forward:
        check_forward(name, args, kwargs, expected)


def check_forward(name, args, kwargs, expected):
    """The tangent against the gradients: <grad, J t> = <J^T grad, t>."""
    fwd = lamella.autograd.forward_ad
    seeds = {}
    with fwd.dual_level():
        given = []
        for i, a in enumerate(args):
            if isinstance(a, torch.Tensor) and a.is_floating_point():
                seeds[i] = make(*a.shape, dtype=F64, seed=50 + i)
                given.append(fwd.make_dual(to_lamella(a), to_lamella(seeds[i])))
            else:
                given.append(to_lamella(a))
        out = run(lamella, name, given, {k: to_lamella(v) for k, v in kwargs.items()})
        out = out[0] if isinstance(out, (tuple, list)) else out
        tangent = torch.from_dlpack(fwd.unpack_dual(out).tangent)
    grad = make(*expected[0].shape, dtype=F64, seed=100, low=-1, high=1)
    left = (grad * tangent).sum()
    right = sum((g * t).sum() for g, t in zip(expected[1:], seeds.values()) if g is not None)
    torch.testing.assert_close(left, right.detach(), rtol=1e-7, atol=1e-8)


def d(*shape, **kwargs):
    return make(*shape, dtype=F64, **kwargs)


def test_linear():
    for shape in ((4, 5), (5,), (2, 3, 5)):
        check_gradients("linear", d(*shape), d(7, 5), d(7))
        check_gradients("linear", d(*shape), d(7, 5))
    check_gradients("linear", d(4, 5), d(5))


CONVOLUTIONS = [
    ((2, 3, 9), (4, 3, 3), [1], [0], [1], 1),
    ((2, 4, 6, 5), (6, 2, 3, 2), [2, 1], [1, 0], [1, 2], 2),
    ((1, 2, 4, 5, 4), (3, 2, 2, 3, 2), [1, 2, 1], [1, 0, 1], [1, 1, 1], 1),
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_convolution(transposed, case):
    shape, kernel, stride, padding, dilation, groups = case
    if transposed:
        kernel = (shape[1], kernel[0] // groups, *kernel[2:])
    out = kernel[1] * groups if transposed else kernel[0]
    how = (stride, padding, dilation, transposed, [0] * len(stride), groups)
    check_gradients("convolution", d(*shape), d(*kernel), d(out), *how)
    check_gradients("convolution", d(*shape), d(*kernel), None, *how)


def test_norms():
    x = d(4, 6, 5)
    check_gradients("native_layer_norm", x, [5], d(5), d(5, seed=1), 1e-5, forward=False)
    check_gradients("native_layer_norm", x, [6, 5], None, None, 1e-5, forward=False)
    check_gradients("layer_norm", x, [5], d(5), d(5, seed=1))
    check_gradients("layer_norm", x, [5])
    check_gradients("rms_norm", x, [5], d(5), 1e-6)
    check_gradients("group_norm", x, 3, d(6), d(6, seed=1))
    check_gradients("group_norm", x, 2)
    for training in (True, False):
        stats = (d(6), d(6, low=0.5, high=2))
        how = (training, 0.1, 1e-5)
        check_batch_norm(x, d(6), d(6, seed=1), stats, how)
        check_batch_norm(x, None, None, stats, how)
    check_gradients("instance_norm", x, d(6), d(6, seed=1), None, None, True, 0.1, 1e-5, False)


def check_batch_norm(x, weight, bias, stats, how):
    """Running statistics have no gradient."""
    given = [x.clone().requires_grad_()]
    ours = [to_lamella(x).requires_grad_()]
    for p in (weight, bias):
        given.append(None if p is None else p.clone().requires_grad_())
        ours.append(None if p is None else to_lamella(p).requires_grad_())

    def results(module, args, running, convert):
        def seed(shape, i):
            return convert(make(*tuple(shape), dtype=F64, seed=100 + i, low=-1, high=1))

        return differentiated(module, "native_batch_norm", [*args, *running, *how], {}, seed, True)

    theirs = results(torch, given, [s.clone() for s in stats], lambda t: t)
    mine = results(lamella, ours, [to_lamella(s.clone()) for s in stats], to_lamella)
    for i, (g, e) in enumerate(zip(mine, theirs)):
        if g is None or e is None:
            other = e if g is None else torch.from_dlpack(g.detach())
            assert other is None or not other.abs().max().item(), i
            continue
        value = torch.from_dlpack(g.detach())
        torch.testing.assert_close(value, e.detach(), rtol=1e-7, atol=1e-8, msg=f"{i}")


def test_batch_norm_twice_before_backward():
    x = lamella.ones(4, 2).requires_grad_()
    mean, var = lamella.zeros(2), lamella.ones(2)
    first = lamella.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, False)
    second = lamella.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, False)
    (first + second).sum().backward()
    assert x.grad.shape == x.shape


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_losses(reduction):
    x, t = d(4, 5), d(4, 5, seed=1)
    for name, extra in (
        ("mse_loss", ()),
        ("smooth_l1_loss", (1.5,)),
        ("huber_loss", (1.5,)),
        ("l1_loss", ()),
    ):
        check_gradients(name, x, t, reduction, *extra)
    if reduction == 1:
        # PyTorch's operator divides the gradient of a target that was broadcast by the target's own
        # number of elements; finite differences decide.
        ours = [to_lamella(one).requires_grad_() for one in (x, d(1, 5))]
        assert lamella.autograd.gradcheck(lambda a, b: lamella.nn.functional.mse_loss(a, b), ours)
    else:
        check_gradients("mse_loss", x, d(1, 5), reduction)
    sign = torch.where(t > 0, 1.0, -1.0).to(F64)
    check_soft_margin(x, sign, reduction)
    p = d(4, 5, low=0.1, high=0.9)
    check_gradients("binary_cross_entropy", p, d(4, 5, low=0.2, high=0.8, seed=1), None, reduction)
    check_gradients("binary_cross_entropy_with_logits", x, p, None, None, reduction)
    check_gradients("kl_div", x, p, reduction)
    y = d(4, 5, seed=2)
    check_gradients("triplet_margin_loss", x, t, y, 1.0, 2.0, 1e-6, True, reduction)
    check_gradients("cosine_embedding_loss", x, t, sign[:, 0].long(), 0.1, reduction)
    check_gradients("hinge_embedding_loss", x, sign.long(), 1.0, reduction)


def check_soft_margin(x, sign, reduction):
    theirs, ours = x.clone().requires_grad_(), to_lamella(x).requires_grad_()
    values = torch.ops.aten.soft_margin_loss(theirs, sign, reduction).sum()
    mine = lamella.ops.aten.soft_margin_loss.default(ours, to_lamella(sign), reduction).sum()
    (e,) = torch.autograd.grad(values, theirs)
    (g,) = lamella.autograd.grad(mine, ours)
    torch.testing.assert_close(torch.from_dlpack(g), e)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_classes(reduction):
    target = make(6, dtype=torch.int64, low=0)
    x = d(6, 5)
    for ignored in (-100, 2):
        given = (x, target, None, reduction, ignored)
        check_gradients("nll_loss", *given)
        for smoothing in (0.0, 0.1):
            check_gradients("cross_entropy_loss", *given, smoothing)
    planes = make(2, 3, 4, dtype=torch.int64, low=0)
    check_gradients("nll_loss2d", d(2, 5, 3, 4), planes, None, reduction, -100)
    check_gradients("cross_entropy_loss", d(2, 5, 7), make(2, 7, dtype=torch.int64, low=0))
    check_gradients("cross_entropy_loss", x, d(6, 5, low=0, high=1), None, reduction)


def test_pooling():
    x = d(2, 3, 7, 8)
    check_gradients("max_pool2d_with_indices", x, [2, 2])
    check_gradients("max_pool2d", x[0], [3, 3], [2, 2], [1, 1])
    check_gradients("max_pool1d", x[0], [3], [2], [1])
    check_gradients("max_pool3d", d(1, 2, 4, 5, 4), [2, 2, 2])
    check_gradients("avg_pool2d", x, [3, 2], [2, 1], [1, 0], True, False)
    check_gradients("avg_pool1d", x[0], [2])
    check_gradients("avg_pool3d", d(1, 2, 4, 5, 4), [2, 2, 2])
    check_gradients("adaptive_avg_pool2d", x, [3, 3])
    check_gradients("adaptive_avg_pool3d", d(1, 2, 4, 5, 4), [2, 2, 2])
    check_gradients("adaptive_max_pool2d", x, [3, 2])
    check_gradients("im2col", x, [2, 3], [1, 2], [1, 1], [1, 2])
    check_gradients("col2im", d(2, 12, 42), [7, 8], [2, 2], [1, 1], [0, 0], [1, 1])


def test_padding_and_resampling():
    x = d(2, 3, 4, 5)
    for mode in ("reflect", "replicate", "circular"):
        check_gradients("pad", x, [1, 2, 2, 1], mode)
    check_gradients("upsample_nearest2d", x, [7, 8])
    check_gradients("_upsample_nearest_exact2d", x, [7, 8])
    check_gradients("upsample_bilinear2d", x, [7, 8], True)
    check_gradients("upsample_bilinear2d", x, [3, 8], False)
    check_gradients("upsample_linear1d", x[0], [7], False)
    check_gradients("upsample_trilinear3d", d(1, 2, 3, 3, 3), [4, 5, 2], False)
    check_gradients("pixel_shuffle", d(2, 8, 3, 3), 2)


def test_embedding_and_dropout():
    indices = torch.tensor([[1, 2, 1], [4, 0, 2]])
    check_gradients("embedding", d(5, 3), indices)
    # Backward leaves the padding row out, forward mode does not, as in PyTorch.
    check_gradients("embedding", d(5, 3), indices, 2, forward=False)
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
