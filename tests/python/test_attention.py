"""Tiled attention against PyTorch: shapes, masks, dtypes, gradients, thread counts."""

import pytest
from operator_cases import check, compare, error_of, lamella, make, same_bits, to_lamella, torch

# batch, heads, queries, keys, width, value width: whole tiles, parts of tiles, few queries.
SHAPES = [
    (2, 3, 64, 64, 32, 32),
    (1, 2, 70, 130, 40, 24),
    (1, 2, 1, 200, 64, 64),
    (1, 2, 3, 67, 20, 7),
    (1, 1, 17, 5, 3, 5),
    (2, 1, 129, 65, 16, 80),
    (1, 2, 5, 1, 8, 8),
]
KINDS = ["plain", "causal", "columns", "rows", "bool", "hidden"]
TOLERANCE = {torch.float32: (1e-4, 2e-5), torch.float16: (2e-2, 2e-2), torch.bfloat16: (6e-2, 6e-2)}


def mask_of(kind, shape):
    batch, heads, rows, keys, *_ = shape
    if kind == "columns":
        return make(batch, 1, 1, keys, seed=5)
    if kind == "rows":
        return make(keys, rows, seed=5).t()
    mask = make(1, heads, rows, keys, dtype=torch.bool, seed=5)
    if kind == "hidden":
        mask[..., rows // 2, :] = False
        return mask
    mask[..., 0] = True
    return mask


def operands(shape, dtype):
    batch, heads, rows, keys, width, value_width = shape
    q = make(batch, rows, heads, width, dtype=dtype, low=-1, high=1).transpose(1, 2)
    k = make(batch, heads, keys, width, dtype=dtype, low=-1, high=1, seed=1)
    v = make(batch, heads, keys, value_width, dtype=dtype, seed=2)
    return q, k, v


@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_forward_and_backward(shape, kind, dtype):
    given = operands(shape, dtype)
    mask = None if kind in ("plain", "causal") else mask_of(kind, shape)
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.to(dtype)
    grad = make(*shape[:3], shape[5], dtype=dtype, seed=3)
    theirs = [t.detach().double().requires_grad_(True) for t in given]
    wide = mask.double() if mask is not None and mask.dtype != torch.bool else mask
    attend = torch.nn.functional.scaled_dot_product_attention
    expected = attend(*theirs, wide, is_causal=kind == "causal")
    grads = torch.autograd.grad(expected, theirs, grad.double())
    ours = [to_lamella(t.clone()).requires_grad_(True) for t in given]
    my_mask = None if mask is None else to_lamella(mask.clone())
    got = lamella.nn.functional.scaled_dot_product_attention(
        *ours, my_mask, is_causal=kind == "causal"
    )
    rtol, atol = TOLERANCE[dtype]
    compare(got.detach(), expected.detach().to(dtype), strides=False, tolerance=(rtol, atol))
    mine = lamella.autograd.grad(got, ours, to_lamella(grad))
    for name, one, other in zip("qkv", mine, grads):
        limit = atol * max(1.0, float(other.abs().max()))
        compare(one, other.to(dtype), strides=False, what=f"d{name}", tolerance=(rtol, limit))


# Heads of the query, heads of keys and values, queries, keys, width, value width.
@pytest.mark.parametrize("shape", [(6, 2, 70, 40, 16, 24), (4, 1, 3, 67, 20, 7),
                                   (8, 4, 33, 65, 8, 8)],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_grouped_heads(shape, kind):
    heads, shared, *rest = shape
    q = make(2, heads, rest[0], rest[2], low=-1, high=1)
    k = make(2, shared, rest[1], rest[2], low=-1, high=1, seed=1)
    v = make(2, shared, rest[1], rest[3], seed=2)
    mask = None if kind in ("plain", "causal") else mask_of(kind, (2, heads, rest[0], rest[1]))
    grad = make(2, heads, rest[0], rest[3], seed=3)
    theirs = [t.double().requires_grad_(True) for t in (q, k, v)]
    wide = mask.double() if mask is not None and mask.dtype != torch.bool else mask
    attend = torch.nn.functional.scaled_dot_product_attention
    expected = attend(*theirs, wide, is_causal=kind == "causal", enable_gqa=True)
    mine = [to_lamella(t.clone()).requires_grad_(True) for t in (q, k, v)]
    got = lamella.nn.functional.scaled_dot_product_attention(
        *mine, None if mask is None else to_lamella(mask), is_causal=kind == "causal",
        enable_gqa=True,
    )  # fmt: skip
    compare(got.detach(), expected.detach().float(), strides=False, tolerance=(1e-4, 2e-5))
    grads = torch.autograd.grad(expected, theirs, grad.double())
    for one, other in zip(lamella.autograd.grad(got, mine, to_lamella(grad)), grads):
        limit = 2e-5 * max(1.0, float(other.abs().max()))
        compare(one, other.float(), strides=False, tolerance=(1e-4, limit))


# Few queries and many; the random numbers are those of PyTorch, which drops weights one by one.
@pytest.mark.parametrize("shape", [(2, 3, 70, 130, 16, 24), (1, 2, 3, 67, 20, 7)], ids=str)
@pytest.mark.parametrize("kind", ["plain", "causal", "columns", "hidden"])
@pytest.mark.parametrize("p", [0.3, 1.0])
def test_dropout(shape, kind, p):
    given = operands(shape, torch.float32)
    mask = None if kind in ("plain", "causal") else mask_of(kind, shape)
    options = dict(dropout_p=p, is_causal=kind == "causal")
    grad = make(*shape[:3], shape[5], seed=3)
    theirs = [t.detach().clone().requires_grad_(True) for t in given]
    torch.manual_seed(11)
    expected = torch.nn.functional.scaled_dot_product_attention(*theirs, mask, **options)
    after = float(torch.rand(1))
    mine = [to_lamella(t.clone()).requires_grad_(True) for t in given]
    lamella.manual_seed(11)
    got = lamella.nn.functional.scaled_dot_product_attention(
        *mine, None if mask is None else to_lamella(mask), **options
    )
    assert float(lamella.rand(1)) == after
    compare(got.detach(), expected.detach(), strides=False, tolerance=(1e-4, 5e-5))
    grads = torch.autograd.grad(expected, theirs, grad)
    for one, other in zip(lamella.autograd.grad(got, mine, to_lamella(grad)), grads):
        limit = 1e-4 * max(1.0, float(other.abs().max()))
        compare(one, other, strides=False, tolerance=(1e-3, limit))


def test_dropout_and_grouped_heads_have_derivatives():
    lamella.manual_seed(0)
    f64 = lamella.float64
    q = lamella.randn(1, 4, 3, 2, dtype=f64, requires_grad=True)
    k, v = (lamella.randn(1, 2, 5, 2, dtype=f64, requires_grad=True) for _ in range(2))
    noise = lamella.rand(1, 4, 3, 5, dtype=f64)
    operator = lamella.ops.aten._scaled_dot_product_flash_attention_for_cpu

    def attend(q, k, v):
        return operator(q, k, v, 0.5, dropout_mask=noise)[0]

    assert lamella.autograd.gradcheck(attend, (q, k, v), check_forward_ad=True)
    assert lamella.autograd.gradgradcheck(attend, (q, k, v))
    narrow = [t.detach().float().requires_grad_(True) for t in (q, k, v)]
    wide = lamella.autograd.grad(attend(q, k, v).sum(), (q, k, v))
    noise = noise.float()
    small = lamella.autograd.grad(attend(*narrow).sum(), narrow)
    for one, other in zip(small, wide):
        assert lamella.allclose(one.double(), other, 1e-4, 1e-5)


def test_the_backward_operator():
    q, k, v = operands((2, 3, 20, 30, 16, 16), torch.float32)
    forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    for causal, mask in ((False, None), (True, None), (False, make(20, 30, seed=4))):
        out, logsumexp = forward(q, k, v, 0.0, causal, attn_mask=mask)
        grad = make(*out.shape, seed=3)
        check(
            "_scaled_dot_product_flash_attention_for_cpu_backward",
            *(grad, q, k, v, out, logsumexp, 0.0, causal),
            attn_mask=mask,
            strides=False,
            tolerance=(1e-4, 1e-4),
        )
    name = "_scaled_dot_product_flash_attention_for_cpu_backward"
    text = error_of(name, grad[:1], q, k, v, out, logsumexp, 0.0, False)
    assert text == (
        f"{name}: expected 'grad_out' to be float32 of shape [2, 3, 20, 16], "
        "got float32 [1, 3, 20, 16]"
    )


def test_special_values():
    q, k, v = (t.clone() for t in operands((1, 1, 40, 70, 16, 16), torch.float32))
    for place, value in (((0, 0, 3, 2), float("nan")), ((0, 0, 7, 0), float("inf"))):
        q[place] = value
    v[0, 0, 5, 1] = float("inf")
    check("scaled_dot_product_attention", q, k, v, strides=False, meta=False,
          tolerance=(1e-4, 1e-5))  # fmt: skip
    check("scaled_dot_product_attention", q[:, :, :4], k, v, strides=False, meta=False,
          tolerance=(1e-4, 1e-5))  # fmt: skip
    far = make(1, 1, 3, 16, low=50, high=90), make(1, 1, 9, 16, low=50, high=90, seed=1)
    check("scaled_dot_product_attention", *far, far[1], strides=False, meta=False,
          tolerance=(1e-4, 1e-4))  # fmt: skip


@pytest.mark.parametrize("causal", [False, True])
def test_threads_give_the_same_bits(causal):
    given = operands((2, 3, 200, 150, 32, 32), torch.float32)

    def compute():
        ours = [to_lamella(t.clone()).requires_grad_(True) for t in given]
        out = lamella.nn.functional.scaled_dot_product_attention(*ours, is_causal=causal)
        return out, *lamella.autograd.grad((out * out).sum(), ours)

    same_bits(compute)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3)])
@pytest.mark.parametrize("width", [8, 6])
def test_results_have_the_order_of_the_query(order, width):
    query = make(*[(2, 3, 5, 8)[d] for d in order]).permute(order)
    value = make(2, 3, 5, width)
    attend = [package.nn.functional.scaled_dot_product_attention for package in (torch, lamella)]
    expected = attend[0](query, query, value)
    got = attend[1](to_lamella(query), to_lamella(query), to_lamella(value))
    compare(got, expected, tolerance=(1e-4, 2e-5))
    assert got.stride() == expected.stride()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("learned", [False, True])
def test_queries_without_keys(dtype, learned):
    """A mask that adds -infinity to all scores of a query gives zeros, without NaN in gradients."""
    given = [make(1, 2, n, 4, dtype=dtype, seed=n) for n in (5, 7, 7)]
    mask = make(5, 7, dtype=dtype, seed=3)
    mask[2], mask[4, 1:] = -torch.inf, -torch.inf
    theirs = [t.clone().requires_grad_() for t in (*given, mask)]
    ours = [to_lamella(t.clone()).requires_grad_() for t in (*given, mask)]
    count = 4 if learned else 3
    results = []
    for library, leaves in ((torch, theirs), (lamella, ours)):
        q, k, v, m = leaves
        y = library.nn.functional.scaled_dot_product_attention(
            q, k, v, m if learned else m.detach()
        )
        results.append((y.detach(), *library.autograd.grad(y.square().sum(), leaves[:count])))
    for expected, got in zip(*results):
        assert not expected.isnan().any()
        compare(got, expected, strides=False, tolerance=(1e-4, 5e-5))
