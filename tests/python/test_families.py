"""Families of operators in liblamella_more.so against PyTorch: symmetric factorisations, segments,
hashes, random numbers, resizing without aliasing, multi-head attention."""

import itertools
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as TF
from operator_cases import lamella

F = lamella.nn.functional


def mine(value):
    return lamella.from_numpy(value.numpy()) if isinstance(value, torch.Tensor) else value


# ---- Symmetric factorisation ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (5, 5), (2, 3, 4, 4), (70, 70)])
def test_ldl(dtype, hermitian, shape):
    x = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(1))
    a = x + (x.mH if hermitian else x.mT)
    if shape[-1] > 1:
        a.diagonal(dim1=-2, dim2=-1)[..., ::2] = 0  # so that there are blocks of two rows
    LD, pivots, info = lamella.linalg.ldl_factor_ex(mine(a), hermitian=hermitian)
    theirs = torch.linalg.ldl_factor_ex(a, hermitian=hermitian)
    close = {
        "rtol": 0,
        "atol": 1e-3 if a.dtype.itemsize < 16 and a.dtype != torch.float64 else 1e-9,
    }
    np.testing.assert_allclose(LD.numpy(), theirs.LD.numpy(), **close)
    np.testing.assert_array_equal(pivots.numpy(), theirs.pivots.numpy())
    np.testing.assert_array_equal(info.numpy(), theirs.info.numpy())
    b = torch.randn((*shape[:-1], 3), dtype=dtype, generator=torch.Generator().manual_seed(2))
    found = lamella.linalg.ldl_solve(LD, pivots, mine(b), hermitian=hermitian).numpy()
    residual = np.abs(a.numpy() @ found - b.numpy()).max(initial=0)
    assert residual <= (1e-2 if close["atol"] == 1e-3 else 1e-8)


def test_ldl_broadcasts_and_batches():
    a = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).expand(3, 1, 2, 2)
    b = torch.randn(4, 2, 5)
    LD, pivots = lamella.linalg.ldl_factor(mine(a.contiguous()))
    found = lamella.linalg.ldl_solve(LD, pivots, mine(b))
    assert tuple(found.shape) == (3, 4, 2, 5)
    np.testing.assert_allclose(found.numpy(), np.broadcast_to(b.numpy()[:, ::-1], (3, 4, 2, 5)))
    each = lamella.vmap(lambda m, p, x: lamella.linalg.ldl_solve(m, p, x))(
        LD[:, 0], pivots[:, 0], mine(b[:3].contiguous())
    )
    np.testing.assert_allclose(each.numpy(), b[:3].numpy()[:, ::-1])
    sides = mine(b[0].double()).requires_grad_()
    LD = LD.double()
    assert lamella.autograd.gradcheck(
        lambda x: lamella.linalg.ldl_solve(LD[0], pivots[0], x), sides
    )
    out = [lamella.empty(0), lamella.empty(0, dtype=lamella.int32)]
    lamella.linalg.ldl_factor(mine(a.contiguous()), out=out)
    np.testing.assert_array_equal(out[0].numpy(), LD.numpy().astype(np.float32))


# ---- Segments ------------------------------------------------------------------------------------


# ---- Hashes --------------------------------------------------------------------------------------


# ---- Numbers drawn -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_poisson_draws_the_stream(dtype):
    rates = torch.linspace(0, 60, 500, dtype=torch.float64).to(getattr(torch, dtype))
    torch.manual_seed(7)
    theirs = torch.poisson(rates)
    lamella.manual_seed(7)
    np.testing.assert_array_equal(lamella.poisson(mine(rates)).numpy(), theirs.numpy())
    generators = torch.Generator().manual_seed(3), lamella.Generator().manual_seed(3)
    theirs = torch.poisson(rates, generators[0])
    np.testing.assert_array_equal(
        lamella.poisson(mine(rates), generators[1]).numpy(), theirs.numpy()
    )


@pytest.mark.parametrize(
    "count, chance", [*itertools.product([0, 3, 40, 5000], [0, 0.01, 0.5, 0.8, 1])]
)
def test_binomial_draws_the_stream(count, chance):
    shape = torch.full((300,), float(count), dtype=torch.float64)
    torch.manual_seed(7)
    theirs = torch.binomial(shape, torch.full_like(shape, chance))
    lamella.manual_seed(7)
    ours = lamella.binomial(mine(shape), lamella.full((300,), float(chance), dtype=lamella.float64))
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_draws_have_no_gradient():
    rates = lamella.ones(3, requires_grad=True)
    (lamella.poisson(rates) + lamella.binomial(lamella.full((3,), 4.0), rates)).sum().backward()
    np.testing.assert_array_equal(rates.grad.numpy(), np.zeros(3))
    meta = lamella.empty(2, 3, device="meta")
    assert lamella.poisson(meta).shape == lamella.binomial(meta, meta).shape == (2, 3)


# ---- Resizing without aliasing -------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.uint8])
def test_antialias(mode, corners, dtype):
    if corners and mode == "lanczos":
        with pytest.raises(RuntimeError, match="expected 'align_corners' to be False, got True"):
            lamella.nn.functional.interpolate(
                lamella.ones(1, 1, 4, 4), (2, 2), mode=mode, align_corners=True, antialias=True
            )
        return
    random = np.random.default_rng(0)
    for _ in range(20):
        high, wide, *size = random.integers(2, 24, 4).tolist()
        x = torch.from_numpy(random.uniform(0, 256, (2, 3, high, wide))).to(dtype)
        keywords = {"mode": mode, "align_corners": corners, "antialias": True}
        for to in ({"size": size}, {"scale_factor": (1.0, 0.6)}):
            if int(wide * 0.6) < 2:
                continue  # PyTorch reads only one line of an image whose width becomes 1
            theirs = torch.nn.functional.interpolate(x, **to, **keywords).numpy()
            ours = lamella.nn.functional.interpolate(mine(x), **to, **keywords).numpy()
            # float32 and uint8: places on the edge of the filter may fall to either side.
            if dtype == torch.uint8:
                np.testing.assert_array_equal(ours, theirs)
            else:
                tolerance = 1e-10 if dtype == torch.float64 else 2e-3
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)


def test_antialias_gradient():
    x = lamella.rand(1, 2, 7, 6, dtype=lamella.float64, requires_grad=True)
    for name in ("bilinear", "bicubic", "lanczos"):
        resize = getattr(lamella.ops.aten, f"_upsample_{name}2d_aa")
        assert lamella.autograd.gradcheck(lambda t, f=resize: f(t, (3, 4), False), (x,))


# ---- Attention of many heads ---------------------------------------------------------------------


FORMS = itertools.product(
    (True, False),  # batched
    (True, False),  # separate weights
    (None, "float", "bool", "each"),  # mask
    (None, "float", "bool"),  # padding
    (True, False),  # biases of keys and values, and zeros
    (True, False),  # weights wanted
)


@pytest.mark.parametrize("batched, separate, mask, padding, more, weights", [*FORMS])
def test_multi_head_attention_forward(batched, separate, mask, padding, more, weights):
    generator = torch.Generator().manual_seed(0)

    def made(*shape):
        return torch.randn(shape, dtype=torch.float64, generator=generator)

    length, keys, count, width, heads = 3, 5, 2 if batched else 1, 4, 2
    shapes = [(length, count, width), (keys, count, width), (keys, count, width)]
    tensors = [made(*s) if batched else made(s[0], s[2]) for s in shapes]
    together = not separate
    arguments = [
        *tensors, width, heads, made(3 * width, width) if together else None, made(3 * width),
        made(1, 1, width) if more else None, made(1, 1, width) if more else None, more, 0.0,
        made(width, width), made(width),
    ]  # fmt: skip
    keywords = {"training": False, "need_weights": weights, "use_separate_proj_weight": separate}
    if separate:
        keywords.update({f"{n}_proj_weight": made(width, width) for n in "qkv"})
    if mask is not None:
        shape = (count * heads, length, keys) if mask == "each" else (length, keys)
        keywords["attn_mask"] = made(*shape) > 1 if mask == "bool" else made(*shape)
    if padding is not None:
        line = made(*((count, keys) if batched else (keys,)))
        keywords["key_padding_mask"] = line > 1 if padding == "bool" else line
    keywords["average_attn_weights"] = batched
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.nn.functional.multi_head_attention_forward(*arguments, **keywords)
    ours = lamella.nn.functional.multi_head_attention_forward(
        *map(mine, arguments), **{k: mine(v) for k, v in keywords.items()}
    )
    np.testing.assert_allclose(ours[0].numpy(), theirs[0].numpy(), rtol=1e-10)
    assert (ours[1] is None) == (theirs[1] is None)
    if weights:
        np.testing.assert_allclose(ours[1].numpy(), theirs[1].numpy(), rtol=1e-10)


# ---- Errors --------------------------------------------------------------------------------------


def attend(**keywords):
    q = lamella.ones(3, 2, 4)
    arguments = {"embed_dim_to_check": 4, "num_heads": 2, **keywords}
    return lamella.nn.functional.multi_head_attention_forward(
        q, q, q, arguments.pop("embed_dim_to_check"), arguments.pop("num_heads"),
        lamella.ones(12, 4), None, None, None, False, 0.0, lamella.ones(4, 4), None, **arguments,
    )  # fmt: skip


def ldl_solve(pivots, side=None):
    pivots = lamella.tensor(pivots, dtype=lamella.int32)
    return lamella.linalg.ldl_solve(
        lamella.eye(2), pivots, lamella.ones(2, 1) if side is None else side
    )


SEGMENTS = lamella.arange(4.0)
ERRORS = [
    (lambda: lamella.linalg.ldl_factor(lamella.ones(2, 3)),
     "linalg_ldl_factor: expected 'self' to be a stack of square matrices, got [2, 3]"),
    (lambda: lamella.linalg.ldl_factor_ex(lamella.ones(2, 2, dtype=lamella.int64)),
     "linalg_ldl_factor_ex: expected 'self' to be float32, float64, complex64 or complex128, got "
     "int64"),
    (lambda: lamella.linalg.ldl_factor(lamella.zeros(2, 2)),
     "linalg_ldl_factor: expected matrix 0 of 'self' to be invertible, got one where element 1 of "
     "the diagonal of D is 0"),
    (lambda: ldl_solve([1, 3]),
     "linalg_ldl_solve: expected the elements of 'pivots' to name rows in [1, 2], got 3"),
    (lambda: ldl_solve([1, -2]),
     "linalg_ldl_solve: expected negative elements of 'pivots' in pairs, got -2 alone"),
    (lambda: ldl_solve([-2, -2147483648]),
     "linalg_ldl_solve: expected the elements of 'pivots' to name rows in [1, 2], got -2147483648"),
    (lambda: ldl_solve([1, 2], lamella.ones(3, 1)),
     "linalg_ldl_solve: expected 'B' to be a stack of matrices of 2 rows, got [3, 1]"),
    (lambda: lamella.ops.aten._linalg_ldl_solve(
        lamella.eye(2)[:1], lamella.ones(1, 1, dtype=lamella.int32), lamella.ones(1, 2), False),
     "linalg_ldl_solve: expected 'LD' to be a stack of square matrices, got [1, 2]"),
    (lambda: lamella.ops.aten._linalg_ldl_solve(
        lamella.eye(2), lamella.ones(2, dtype=lamella.int32), lamella.ones(2, 1), False),
     "linalg_ldl_solve: expected 'pivots' to be a stack of columns of 2 rows, got [2]"),
    (lambda: lamella.segment_reduce(SEGMENTS, "sum", lengths=lamella.tensor([1, 2])),
     "segment_reduce: expected the rows of 'lengths' to sum to 4, got 3"),
    (lambda: lamella.segment_reduce(SEGMENTS, "sum", lengths=lamella.tensor([5, -1])),
     "segment_reduce: expected segments of at most 4 elements together, got more"),
    (lambda: lamella.segment_reduce(SEGMENTS, "sum", lengths=lamella.tensor([-1, 5])),
     "segment_reduce: expected 'lengths' not to be negative, got -1"),
    (lambda: lamella.segment_reduce(SEGMENTS, "sum", offsets=lamella.tensor([3, 1])),
     "segment_reduce: expected 'offsets' to grow, got 1"),
    (lambda: lamella.segment_reduce(SEGMENTS, "sum", offsets=lamella.tensor([0, 9]), unsafe=True),
     "segment_reduce: expected segments of at most 4 elements together, got more"),
    (lambda: lamella.segment_reduce(SEGMENTS, "median", lengths=lamella.tensor([4])),
     "segment_reduce: expected 'reduce' to be sum, mean, max, min or prod, got median"),
    (lambda: lamella.segment_reduce(SEGMENTS, "sum"),
     "segment_reduce: expected 'lengths' or 'offsets', got neither"),
    (lambda: lamella.hash_tensor(SEGMENTS, mode=1), "hash_tensor: expected 'mode' to be 0, got 1"),
    (lambda: lamella.hash_tensor(lamella.empty(0)),
     "hash_tensor: expected 'self' to have elements to reduce, got [0] with 'dim' []"),
    (lambda: lamella.poisson(lamella.tensor([-1.0])),
     "poisson: expected the rates in 'self' to be finite and at least 0, got -1"),
    (lambda: lamella.binomial(SEGMENTS, SEGMENTS.double()),
     "binomial: expected 'prob' to be float32, got float64"),
    (lambda: lamella.nn.functional.interpolate(lamella.ones(1, 1, 4), 2, antialias=True),
     "interpolate: expected an image and a mode of ['bilinear', 'bicubic', 'lanczos'] with "
     "'antialias', got 1 dimensions and 'nearest'"),
    (lambda: lamella.ops.aten._upsample_bicubic2d_aa(lamella.ones(1, 1, 4, 4), (0, 2), False),
     "_upsample_bicubic2d_aa: expected 'output_size' to be two positive numbers, got [0, 2]"),
    (lambda: attend(num_heads=3),
     "multi_head_attention_forward: expected 'embed_dim' to be divisible by 3 heads, got 4"),
    (lambda: attend(attn_mask=lamella.ones(2, 2)),
     "multi_head_attention_forward: expected 'attn_mask' to have the shape [3, 3] or [4, 3, 3], "
     "got [2, 2]"),
]  # fmt: skip


@pytest.mark.parametrize("call, text", ERRORS, ids=range(len(ERRORS)))
def test_errors(call, text):
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError, AssertionError)) as caught:
        call()
    assert str(caught.value).splitlines()[0].startswith(text)


EXPANDED = "' to have memory of its own for each element it writes, got one expanded to "
REFUSED = [
    (lambda: lamella.take(SEGMENTS, lamella.tensor([0, 1]), out=lamella.empty(1).expand(2)),
     "take: expected 'out" + EXPANDED + "[2]"),
    (lambda: lamella.index_select(SEGMENTS, 0, lamella.tensor([1]), out=lamella.ones(1).expand(3)),
     "index_select: expected 'out" + EXPANDED + "[3]"),
    (lambda: lamella.masked_select(SEGMENTS, SEGMENTS > 1, out=lamella.ones(1).expand(2)),
     "masked_select: expected 'out" + EXPANDED + "[2]"),
    (lambda: lamella.randperm(4, out=lamella.ones(1, dtype=lamella.int64).expand(4)),
     "randperm: expected 'out" + EXPANDED + "[4]"),
    (lambda: lamella.roll(lamella.tensor(1.0), 1, 0),
     "roll: expected 'dims' to be empty for a tensor with 0 dimensions, got [0]"),
    (lambda: lamella.gradient(lamella.ones(3, 3), dim=(1, 1)),
     "gradient: expected 'dim' to be distinct, got [1, 1]"),
    (lambda: lamella._chunk_cat([lamella.empty(0)], 0, 1),
     "_chunk_cat: expected tensors with elements, got one of [0]"),
    (lambda: lamella.cov(lamella.ones(3), fweights=lamella.tensor([1, -1, 2])),
     "cov: expected 'fweights' to have no negative element, got -1"),
    (lambda: lamella.cov(lamella.ones(3), aweights=lamella.tensor([1, -0.5, 2])),
     "cov: expected 'aweights' to have no negative element, got -0.5"),
    (lambda: lamella.amax(lamella.empty(2, 0)),
     "amax: expected 'self' to have elements, got shape [2, 0]"),
    (lambda: F.max_pool1d(lamella.empty(0, 4), 2),
     "max_pool1d: expected 'self' to have channels, got [0, 1, 4]"),
    (lambda: F.avg_pool2d(lamella.empty(2, 0, 4, 4), 2),
     "avg_pool2d: expected 'self' to have channels, got [2, 0, 4, 4]"),
    (lambda: F.adaptive_avg_pool2d(lamella.ones(3, 3), (2, 2)),
     "adaptive_avg_pool2d: expected 'input' to have more than 2 dimensions, got [3, 3]"),
    (lambda: F.multi_margin_loss(lamella.ones(1, 3), lamella.tensor([0]), p=3),
     "multi_margin_loss: expected 'p' to be 1 or 2, got 3"),
    (lambda: F.multi_margin_loss(lamella.ones(1, 3), lamella.tensor([0]), weight=lamella.ones(2)),
     "multi_margin_loss: expected 'weight' to be of shape [3], got [2]"),
    (lambda: F.gaussian_nll_loss(lamella.ones(2, 3), lamella.ones(2, 3), lamella.ones(3)),
     "gaussian_nll_loss: expected 'var' to be of shape [2, 3], or without its last dimension, or "
     "of 1 there, got [3]"),
    (lambda: F.linear_cross_entropy(lamella.ones(2, 3, 4), lamella.ones(5, 4), lamella.ones(2)),
     "linear_cross_entropy: expected 'input' to have 1 or 2 dimensions, got [2, 3, 4]"),
    (lambda: F.rms_norm(lamella.ones(2, 3, dtype=lamella.complex64), (2,)),
     "rms_norm: expected 'input' to end in the dimensions [2], got [2, 3]"),
    (lambda: lamella.eq(2, 3), "eq: got (int, int), which fits none of"),
]  # fmt: skip


@pytest.mark.parametrize("call, text", REFUSED, ids=range(len(REFUSED)))
def test_refused(call, text):
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)) as caught:
        call()
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_bytes_are_resized_bit_for_bit(mode, corners):
    generator = torch.Generator().manual_seed(0)
    for shape, size in [
        ((2, 3, 7, 9), (4, 13)),
        ((1, 6, 5, 5), (9, 3)),
        ((1, 1, 1, 4), (3, 2)),
        ((2, 2, 31, 17), (31, 40)),
    ]:
        x = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
        for layout in (torch.contiguous_format, torch.channels_last):
            x = x.contiguous(memory_format=layout)
            expected = TF.interpolate(x, size, mode=mode, align_corners=corners)
            y = lamella.from_dlpack(x)
            got = F.interpolate(y, size, mode=mode, align_corners=corners)
            assert got.dtype == lamella.uint8
            assert np.array_equal(got.numpy(), expected.numpy()), (shape, size)


def test_narrow_integers_are_summed_wide():
    x = torch.ones(2, 3, dtype=torch.int32)
    y = mine(x)
    pairs = [
        (torch.einsum("ij,kl->k", x, x), lamella.einsum("ij,kl->k", y, y)),
        (torch.einsum("ij,jk->ik", x, x.T), lamella.einsum("ij,jk->ik", y, y.T)),
        (torch.tensordot(x, x[:1], ([0], [0])), lamella.tensordot(y, y[:1], ([0], [0]))),
        (x.sum_to_size(1, 3), y.sum_to_size(1, 3)),
        (torch.unravel_index(x, (5, 5))[1], lamella.unravel_index(y, (5, 5))[1]),
    ]
    for theirs, ours in pairs:
        assert str(ours.dtype)[8:] == str(theirs.dtype)[6:]
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_polynomials_of_high_degree_end():
    x = lamella.tensor([-1.5, -1.0, -0.3, 0.7, 1.0, 1.2], dtype=lamella.float64)
    scipy = pytest.importorskip("scipy.special")
    for name, theirs in (("t", scipy.eval_chebyt), ("u", scipy.eval_chebyu)):
        got = getattr(lamella.special, f"chebyshev_polynomial_{name}")(x, 101.0)
        np.testing.assert_allclose(got.numpy(), theirs(101, x.numpy()), rtol=1e-12)
        ends = getattr(lamella.special, f"chebyshev_polynomial_{name}")(x, 1e18)
        assert ends[0].abs() == ends[-1] == float("inf")
    got = lamella.special.chebyshev_polynomial_v(x[1:2], 71.0)
    assert got.tolist() == [-143.0]
    assert lamella.special.chebyshev_polynomial_w(x[4:5], 71.0).tolist() == [143.0]
    for name in ("hermite_polynomial_h", "laguerre_polynomial_l", "legendre_polynomial_p"):
        with pytest.raises(ValueError) as error:
            getattr(lamella.special, name)(x, 1e18)
        assert str(error.value) == f"special_{name}: expected 'n' to be at most 1000000, got 1e+18"


def test_incomplete_gamma_of_huge_arguments():
    scipy = pytest.importorskip("scipy.special")
    a = np.repeat([2e8, 1e12, 1e16], 6)
    x = a + np.tile([-2, -0.1, 0, 0.1, 2, 6], 3) * np.sqrt(a)
    for name in ("gammainc", "gammaincc"):
        got = getattr(lamella.special, name)(lamella.from_numpy(a), lamella.from_numpy(x))
        np.testing.assert_allclose(got.numpy(), getattr(scipy, name)(a, x), atol=1e-14, rtol=0)
    f64 = lamella.float64
    # Six deviations below the mean of what is nearly a normal distribution.
    tail = lamella.special.gammainc(
        lamella.tensor(1e16, dtype=f64), lamella.tensor(1e16 - 6e8, dtype=f64)
    )
    np.testing.assert_allclose(float(tail), scipy.ndtr(-6), rtol=1e-6)


def test_linear_cross_entropy_of_several_dimensions():
    torch = pytest.importorskip("torch")
    x, weight, bias = torch.randn(4, 3), torch.randn(5, 2, 6, 3), torch.randn(5, 2, 6)
    targets = torch.arange(48).reshape(4, 2, 6) % 5, torch.rand(4, 5, 2, 6)
    for target in targets:
        expected = torch.nn.functional.linear_cross_entropy(x, weight, target, linear_bias=bias)
        given = [lamella.from_numpy(one.numpy()) for one in (x, weight, target, bias)]
        got = F.linear_cross_entropy(*given[:3], linear_bias=given[3])
        assert abs(got.item() - expected.item()) < 1e-5
    with pytest.raises(RuntimeError, match="expected 'input' to have 2 dimensions beside"):
        F.linear_cross_entropy(lamella.ones(3), lamella.ones(5, 2, 3), lamella.ones(2))


def test_bytes_are_interpolated_as_by_pytorch():
    """Sizes that give no input element a whole weight take one more bit of fraction."""
    random = np.random.default_rng(1)
    sizes = [(17, 13, 10, 6), (13, 18, 7, 7), (1, 14, 8, 9), *random.integers(1, 40, (60, 4))]
    for height, width, *size in sizes:
        x = random.integers(0, 256, (1, 2, height, width)).astype(np.uint8)
        size = [int(one) for one in size]
        for corners in (False, True):
            for antialias in (False, True):
                options = {"mode": "bilinear", "align_corners": corners, "antialias": antialias}
                expected = TF.interpolate(torch.from_numpy(x), size, **options)
                got = F.interpolate(lamella.from_numpy(x), size, **options)
                assert got.tolist() == expected.tolist(), (height, width, size, options)
