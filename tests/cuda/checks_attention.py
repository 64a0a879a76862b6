"""Fused attention by kernels on "cuda", with gradients, beside float64 on the CPU and PyTorch."""

import math

import pytest
from beside_cpu import TOLERANCE, assert_same, check, leaf, on_device, values

import lamella
import lamella.nn.functional as F

DTYPES = [lamella.float32, lamella.float16, lamella.bfloat16]
fused = lamella.ops.aten._scaled_dot_product_flash_attention_for_cpu


def attention(q, k, v, grad, **how):
    """The result and the gradients."""
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    y = F.scaled_dot_product_attention(*leaves, enable_gqa=q.shape[1] != k.shape[1], **how)
    return (y.detach(), *lamella.autograd.grad(y, leaves, grad))


def compare(cuda, q, k, v, mask=None, **how):
    grad = values(q.dtype, *q.shape[:3], v.shape[3], seed=9)
    wide = [x.double() for x in (q, k, v, grad)]
    masks = (mask, mask if mask is None or mask.dtype == lamella.bool else mask.double())
    expected = attention(*wide, attn_mask=masks[1], **how)
    given = on_device((q, k, v, grad))
    seen = None if mask is None else on_device(mask)
    cuda.reset_fallbacks()
    got = attention(*given, attn_mask=seen, **how)
    assert not cuda.fallbacks()
    for a, b in zip(expected, got):
        assert b.device.type == "cuda" and b.dtype == q.dtype and b.shape == a.shape
        off = (a - b.cpu().double()).abs() / (1 + a.abs())
        assert off.max().item() <= TOLERANCE[q.dtype], off.max()
    strides = F.scaled_dot_product_attention(q, k, v, enable_gqa=q.shape[1] != k.shape[1]).stride()
    assert got[0].stride() == strides


# batch, query heads, key heads, queries, keys, width, width of values
SIZES = [
    (2, 2, 2, 5, 7, 6, 3),
    (1, 2, 2, 1, 1, 1, 1),
    (1, 1, 1, 1, 70, 8, 8),
    (1, 2, 1, 66, 65, 32, 32),
    (1, 2, 1, 17, 130, 64, 80),
    (1, 1, 1, 19, 34, 200, 256),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=[f"sizes{i}" for i in range(len(SIZES))])
def test_sizes(cuda, dtype, sizes):
    b, heads, key_heads, rows, keys, width, value_width = sizes
    q = values(dtype, b, heads, rows, width)
    k = values(dtype, b, key_heads, keys, width, seed=1)
    v = values(dtype, b, key_heads, keys, value_width, seed=2)
    compare(cuda, q, k, v)
    compare(cuda, q, k, v, is_causal=True, scale=0.1)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_masks(cuda, dtype):
    q, k, v = (values(dtype, 2, 2, n, 8, seed=n) for n in (18, 35, 35))
    seen = values(lamella.bool, 18, 35)
    seen[3] = False  # a query without keys
    compare(cuda, q, k, v, seen)
    compare(cuda, q, k, v, values(lamella.bool, 2, 1, 1, 70)[..., ::2])
    compare(cuda, q, k, v, values(dtype, 2, 18, 35)[:, None])
    compare(cuda, q, k, v, values(dtype, 35, 18).t())
    compare(cuda, q, k, v, values(dtype, 18, 1))
    added = values(dtype, 18, 35)
    added[5] = -math.inf
    compare(cuda, q, k, v, added)
    result = F.scaled_dot_product_attention(*on_device((q, k, v)), attn_mask=seen.cuda())
    assert result[:, :, 3].eq(0).all() and not result.isnan().any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_layouts(cuda, dtype):
    q, k, v = values(dtype, 2, 9, 3, 4, 16).permute(2, 0, 3, 1, 4)  # of one product, by heads
    compare(cuda, q, k, v, is_causal=True)
    compare(cuda, q[..., ::2], k[..., 1::2], v)
    compare(cuda, q.mT.contiguous().mT, k[:, :, ::2], v[:, :, 1:6])
    one = values(dtype, 1, 1, 9, 16)
    compare(cuda, q, one.expand(2, 4, 9, 16), one.expand(2, 4, 9, 16))
    odd = values(dtype, 2, 4, 9, 17)[..., 1:]  # rows that do not begin at multiples of 16 bytes
    compare(cuda, odd, k, odd)


def test_nothing(cuda):
    for sizes in ((0, 2, 3, 4), (2, 0, 3, 4), (2, 2, 0, 4), (2, 2, 3, 0)):
        x = lamella.ones(sizes, device="cuda").requires_grad_()
        y = F.scaled_dot_product_attention(x, x, x)
        (gradient,) = lamella.autograd.grad(y.sum(), x)
        assert y.shape == sizes and gradient.shape == sizes
    q, k = lamella.ones(2, 2, 3, 4, device="cuda"), lamella.ones(2, 2, 0, 4, device="cuda")
    y, total = fused(q, k, k)
    assert y.eq(0).all() and total.eq(-math.inf).all() and y.shape == (2, 2, 3, 4)
    check(cuda, lambda *x: fused(*x)[1], *(values(lamella.float32, 1, 1, 0, 4),) * 3)


def test_factors_of_dropout(cuda):
    """What dropout multiplies weights by is given to the operator alone, which the CPU computes."""
    q, k, v, grad = (values(lamella.float32, 2, 4, 9, 8, seed=seed) for seed in range(4))
    kept = values(lamella.bool, 2, 4, 9, 9).float() * 2

    def run(q, k, v, kept, grad):
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        y, total = fused(*leaves, 0.5, dropout_mask=kept, scale=0.7)
        return (y, total, *lamella.autograd.grad(y, leaves, grad))

    assert_same(run(q, k, v, kept, grad), run(*on_device((q, k, v, kept, grad))))
    assert sum(cuda.fallbacks().values()) == 2


def test_weights_that_overflow(cuda):
    """Scores far apart and infinite ones, as the CPU has them."""
    q, v = values(lamella.float32, 1, 1, 20, 4) * 50, values(lamella.float32, 1, 1, 20, 4, seed=1)
    expected = F.scaled_dot_product_attention(q.double(), q.double(), v.double())
    y = F.scaled_dot_product_attention(q.cuda(), q.cuda(), v.cuda())
    assert lamella.allclose(y.cpu().double(), expected, atol=1e-3)
    mask = lamella.zeros(20, 20)
    mask[2, 3], mask[4, 5] = math.inf, math.nan
    y = F.scaled_dot_product_attention(*[q.cuda()] * 3, attn_mask=mask.cuda())
    assert y.isnan().all(-1).flatten().tolist() == [i in (2, 4) for i in range(20)]


def test_what_is_not_fused(cuda):
    """Wide heads, float64, masks with gradients, dropout and other ranks run by operators."""
    cases = [(lamella.float32, 1, 2, 4, 260), (lamella.float64, 1, 2, 4, 6)]
    cases += [(lamella.float32, 3, 4, 5), (lamella.float32, 2, 1, 3, 4, 5)]
    for dtype, *sizes in cases:
        check(
            cuda, F.scaled_dot_product_attention, *(values(dtype, *sizes, seed=s) for s in range(3))
        )
    x, mask = leaf(lamella.float32, 1, 2, 4, 4), leaf(lamella.float32, 4, 4)

    def gradient_of_mask(x, mask):
        y = F.scaled_dot_product_attention(x, x, x, mask)
        return lamella.autograd.grad(y.square().sum(), [x, mask])

    check(cuda, gradient_of_mask, x, mask)
    assert F.scaled_dot_product_attention(*[x.cuda()] * 3, dropout_p=1.0).eq(0).all()


def test_derivatives_of_derivatives(cuda):
    def run(q, k, v):
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        first = lamella.autograd.grad(y.square().sum(), [q, k, v], create_graph=True)
        return lamella.autograd.grad(sum(g.square().sum() for g in first), [q, k, v])

    check(cuda, run, *(leaf(lamella.float32, 1, 2, 3, 4, seed=s) * 0.3 for s in range(3)))
    tangent = values(lamella.float32, 1, 2, 3, 4, seed=7)

    def forward(q, tangent):
        return lamella.func.jvp(
            lambda x: F.scaled_dot_product_attention(x, x, x), (q,), (tangent,)
        )[1]

    check(cuda, forward, values(lamella.float32, 1, 2, 3, 4), tangent)


def test_gradients_are_the_same_each_time(cuda):
    q, k, v = (values(lamella.bfloat16, 1, 4, 70, 16, seed=s).cuda() for s in range(3))
    first, again = (attention(q, k[:, :2], v[:, :2], q, is_causal=True) for _ in range(2))
    assert all(a.equal(b) for a, b in zip(first, again))


def test_no_scores_are_kept(cuda, standin):
    q = lamella.randn(1, 1, 512, 8, device="cuda").requires_grad_()
    before = lamella.cuda.memory_allocated()
    cuda.reset_peak_memory_stats()
    standin.standin_reset_calls()
    F.scaled_dot_product_attention(q, q, q).sum().backward()
    assert cuda.max_memory_allocated() - before < 512 * 512 * 4 // 2
    assert standin.calls("cuStreamSynchronize") == 0 and standin.calls("cuCtxSynchronize") == 0


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_beside_pytorch(cuda, dtype):
    torch = pytest.importorskip("torch")
    q, k, v = (values(dtype, 1, 2, 33, 24, seed=s) for s in range(3))
    seen = values(lamella.bool, 33, 33)
    seen[7] = False
    for how in ({}, {"is_causal": True}, {"attn_mask": seen}):
        theirs = {n: torch.from_dlpack(x) if n == "attn_mask" else x for n, x in how.items()}
        leaves = [torch.from_dlpack(x).requires_grad_() for x in (q, k, v)]
        y = torch.nn.functional.scaled_dot_product_attention(*leaves, **theirs)
        expected = [y.detach(), *torch.autograd.grad(y, leaves, y.detach())]
        ours = {n: x.cuda() if n == "attn_mask" else x for n, x in how.items()}
        given = on_device((q, k, v))
        got = attention(*given, lamella.from_dlpack(expected[0]).cuda(), **ours)
        for a, b in zip(expected, got):
            a, b = a.double(), torch.from_dlpack(b.cpu()).double()
            assert torch.allclose(a, b, rtol=TOLERANCE[dtype], atol=2 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("which", ["query", "key", "value", "gradient"])
def test_special_numbers(cuda, dtype, which):
    """One infinity, NaN or subnormal number reaches what depends on it, and nothing else."""
    torch = pytest.importorskip("torch")
    tiny = math.ldexp(1, -24 if dtype == lamella.float16 else -130)
    at = ["query", "key", "value", "gradient"].index(which)
    for rows, keys, width in [(66, 33, 16), (15, 65, 72)]:
        for number in (math.inf, -math.inf, math.nan, tiny) if width == 16 else (-math.inf,):
            given = [
                (values(dtype, 1, 1, n, width, seed=s) * 0.3).abs() + 0.1
                for s, n in enumerate((rows, keys, keys, rows))
            ]
            given[at][0, 0, 5, 3] = number
            *leaves, grad = (torch.from_dlpack(x).double().requires_grad_() for x in given)
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                y = torch.nn.functional.scaled_dot_product_attention(*leaves, scale=0.125)
            expected = [y.detach(), *torch.autograd.grad(y, leaves, grad)]
            got = attention(*on_device(given), scale=0.125)
            assert not cuda.fallbacks()
            for a, b in zip(expected, got):
                b = torch.from_dlpack(b.cpu()).double()
                seen = a.isfinite()
                assert torch.equal(seen, b.isfinite()), (number, rows)
                tolerance = 2 * TOLERANCE[dtype]
                assert torch.allclose(a[seen], b[seen], rtol=tolerance, atol=tolerance)
            result = torch.from_dlpack(got[0].cpu())
            assert torch.equal(result.isnan(), expected[0].isnan())
