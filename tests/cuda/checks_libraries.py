"""Matrix products, convolutions, factorisations and transforms on "cuda", against the CPU: with
the stand-ins of CUDA's libraries, and without (LAMELLA_CUDA_LIBRARIES=none)."""

import os

import pytest

import lamella
import lamella.nn.functional as F

HAS_LIBRARIES = os.environ["LAMELLA_CUDA_LIBRARIES"] != "none"
FLOATS = [lamella.float32, lamella.float64, lamella.float16, lamella.bfloat16]
COMPLEX = [lamella.complex64, lamella.complex128]
INTEGERS = [lamella.uint8, lamella.int8, lamella.int16, lamella.int32, lamella.int64]
# Of a sum of about 10 products of numbers around 1.
TOLERANCES = {
    lamella.float16: 2e-2,
    lamella.bfloat16: 1.3e-1,
    lamella.float32: 2e-5,
    lamella.complex64: 2e-5,
}


def made(*sizes, dtype=lamella.float32):
    if not dtype.is_floating_point and not dtype.is_complex:
        low = 0 if dtype == lamella.uint8 else -9
        return lamella.randint(low, 10, sizes, dtype=dtype)
    return lamella.randn(sizes, dtype=lamella.complex128 if dtype.is_complex else None).to(dtype)


def close(expected, got, tolerance=None):
    assert got.device.type == "cuda" and got.dtype == expected.dtype
    assert got.shape == expected.shape
    if tolerance is None:
        tolerance = TOLERANCES.get(expected.dtype, 1e-12)
    if expected.numel() == 0:
        return
    if not expected.dtype.is_floating_point and not expected.dtype.is_complex:
        assert got.cpu().equal(expected)
        return
    wide = lamella.complex128 if expected.dtype.is_complex else lamella.float64
    difference = (got.cpu().to(wide) - expected.to(wide)).abs().max().item()
    assert difference <= tolerance, difference


def same(function, *inputs, tolerance=None):
    """Compares the results, each of which may be a tuple."""
    expected = function(*inputs)
    got = function(*(x.cuda() if isinstance(x, lamella.Tensor) else x for x in inputs))
    alone = isinstance(expected, lamella.Tensor)
    for a, b in [(expected, got)] if alone else zip(expected, got):
        close(a, b, tolerance)


def by_cpu(cuda, *expected):
    """Which operators of those expected ran on the CPU."""
    names = {name.split("::")[1].split(".")[0] for name in cuda.fallbacks()}
    return names & set(expected)


PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "addmv", "addmv_", "dot", "vdot", "linear", "_int_mm")
PRODUCTS += ("linear_backward", "_addmm_activation", "addbmm")


# ---- Products ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX, *INTEGERS], ids=str)
def test_layouts_of_products(cuda, dtype):
    """All strides: rows, columns, gaps in both, broadcast, single rows and columns."""
    lamella.manual_seed(0)
    for m, k, n in [(5, 7, 4), (1, 7, 4), (5, 7, 1), (5, 1, 4), (1, 1, 1), (70, 33, 65)]:
        big = [made(2 * m, 2 * k, dtype=dtype), made(2 * k, 2 * n, dtype=dtype)]
        lefts = [big[0][:m, :k], big[0][:m, :k].contiguous(), big[0][::2, ::2]]
        lefts += [made(k, m, dtype=dtype).t(), big[0][:1, :k].expand(m, k)]
        rights = [big[1][:k, :n], made(n, k, dtype=dtype).t(), big[1][::2, ::2]]
        tolerance = None if k < 20 else 5 * TOLERANCES.get(dtype, 1e-12)
        for a in lefts[: 2 if m == 70 else None]:
            for b in rights[: 2 if m == 70 else None]:
                expected = a @ b
                close(expected, on_device(a) @ on_device(b), tolerance)
    assert not by_cpu(cuda, *PRODUCTS)


def on_device(x):
    """A copy with the same strides."""
    whole = lamella.empty_strided(
        x.shape, [s if n != 1 else 1 for s, n in zip(x.stride(), x.shape)], dtype=x.dtype
    )
    if 0 in x.stride():
        return x[:1].cuda().expand(*x.shape)
    room = sum((n - 1) * s for n, s in zip(x.shape, x.stride())) + 1
    memory = lamella.zeros(room, dtype=x.dtype, device="cuda")
    made_so = memory.as_strided(x.shape, x.stride())
    made_so.copy_(x.cuda())
    assert whole.shape == made_so.shape
    return made_so


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX, lamella.int32, lamella.int64], ids=str)
def test_added_matrices(cuda, dtype):
    lamella.manual_seed(0)
    a, b = made(5, 7, dtype=dtype), made(7, 4, dtype=dtype)
    whole = dtype in INTEGERS
    beta, alpha = (3, 2) if whole else (0.5, 2)
    tolerance = 3 * TOLERANCES.get(dtype, 1e-12)
    for added in [(4,), (5, 4), (5, 1), (1, 4), (1, 1), ()]:
        c = made(*added, dtype=dtype)
        same(lamella.addmm, c, a, b, tolerance=tolerance)
        same(
            lambda c, a, b: lamella.addmm(c, a, b, beta=beta, alpha=alpha),
            c,
            a,
            b,
            tolerance=tolerance,
        )
    same(lambda c, a, b: lamella.addmm(c.t(), a, b), made(4, 5, dtype=dtype), a, b)
    nothing = made(5, 4, dtype=dtype)
    if dtype not in INTEGERS:
        nothing.fill_(float("nan"))  # is not read
    same(lambda c, a, b: lamella.addmm(c, a, b, beta=0), nothing, a, b)
    x, y = made(3, 5, 7, dtype=dtype), made(3, 7, 4, dtype=dtype)
    same(lamella.bmm, x, y)
    same(lambda x, y: lamella.bmm(x.mT.contiguous().mT, y), x, y)
    same(lambda x, y: x[:1].expand(3, 5, 7) @ y, x, y)
    same(lamella.baddbmm, made(3, 5, 4, dtype=dtype), x, y)
    same(lamella.baddbmm, made(4, dtype=dtype), x, y)
    same(lamella.addbmm, made(5, 4, dtype=dtype), x, y, tolerance=tolerance)
    v = made(7, dtype=dtype)
    same(lamella.mv, a, v)
    same(lambda a, v: a @ v[::2], made(5, 4, dtype=dtype), v)
    same(lambda c, a, v: lamella.addmv(c, a, v, beta=beta), made(5, dtype=dtype), a, v)
    same(lamella.dot, v, made(7, dtype=dtype))
    same(lamella.vdot, v, made(7, dtype=dtype))
    assert not by_cpu(cuda, *PRODUCTS)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_numbers_of_products(cuda, dtype):
    """Infinities, NaN, zeros and subnormal numbers at the edges of tiles, beside PyTorch."""
    torch = pytest.importorskip("torch")
    tiny = 2.0 ** (-24 if dtype == lamella.float16 else -130)
    rounding = 4 * lamella.finfo(dtype).eps
    for m, k, n in [(64, 32, 64), (65, 33, 63), (63, 31, 129), (1, 97, 65), (128, 16, 1)]:
        for number in (float("inf"), float("-inf"), float("nan"), tiny, -0.0):
            a, b = made(m, k, dtype=dtype), made(k, n, dtype=dtype)
            a[m // 2, k - 1] = a[m - 1, 0] = b[k // 2, n - 1] = number
            expected = torch.from_dlpack(a).double() @ torch.from_dlpack(b).double()
            got = torch.from_dlpack((on_device(a) @ on_device(b)).cpu()).double()
            assert torch.equal(expected.isnan(), got.isnan())
            found, wanted = got.nan_to_num(), expected.nan_to_num()
            assert torch.allclose(found, wanted, rtol=rounding, atol=10 * rounding)
    assert not by_cpu(cuda, *PRODUCTS)


def test_sums_over_nothing(cuda):
    same(lamella.mm, made(3, 0), made(0, 4))
    same(lambda c, a, b: lamella.addmm(c, a, b, beta=2), made(3, 4), made(3, 0), made(0, 4))
    same(lamella.mm, made(0, 3), made(3, 4))
    same(lamella.bmm, made(0, 2, 3), made(0, 3, 4))
    same(F.linear, made(2, 0), made(3, 0), made(3))
    assert not by_cpu(cuda, *PRODUCTS)


def test_writes_of_products(cuda):
    a, b = made(5, 7), made(7, 4)
    same(lambda a, b: lamella.mm(a, b, out=a.new_empty(0)), a, b)
    same(lambda a, b: lamella.mm(a, b, out=a.new_zeros(4, 5).t()), a, b)
    same(lambda a, b: lamella.mm(a, b, out=a.new_zeros(5, 8)[:, ::2]), a, b)
    same(lambda c, a, b: c.clone().addmm_(a, b, beta=0.5), made(5, 4), a, b)

    def overlapping(c, a, b):
        memory = c.clone()
        lamella.addmm(memory[:5], a, b, out=memory[1:])
        return memory

    same(overlapping, made(6, 4), a, b)
    same(
        lambda a, b: lamella._addmm_activation(a[:, 0] @ a, a, b[:, :7] @ a), made(7, 7), made(7, 7)
    )
    same(lambda c, a, b: lamella._addmm_activation(c, a, b, use_gelu=True), made(4), a, b)
    assert not by_cpu(cuda, *PRODUCTS)
    with pytest.raises(RuntimeError) as here:
        lamella.mm(a, a)
    with pytest.raises(RuntimeError) as there:
        lamella.mm(a.cuda(), a.cuda())
    assert str(here.value) == str(there.value)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX], ids=str)
def test_linear(cuda, dtype):
    lamella.manual_seed(0)
    x, w, b = made(2, 3, 7, dtype=dtype), made(5, 7, dtype=dtype), made(5, dtype=dtype)
    same(F.linear, x, w, b)
    same(F.linear, x, w)
    same(F.linear, x, w, made(1, dtype=dtype))
    same(F.linear, x[0, 0], w, b)
    same(lambda x, w, b: F.linear(x.mT, w, b), made(2, 7, 3, dtype=dtype), w, b)

    def gradients(x, w, b, g):
        leaves = [t.clone().requires_grad_() for t in (x, w, b)]
        return lamella.autograd.grad(F.linear(*leaves), leaves, g)

    tolerance = 2 * TOLERANCES.get(dtype, 1e-12)
    same(gradients, x, w, b, made(2, 3, 5, dtype=dtype), tolerance=tolerance)
    assert not by_cpu(cuda, *PRODUCTS)


def test_products_of_bytes(cuda):
    for m, k, n in [(20, 16, 8), (3, 5, 7), (1, 4, 4), (4, 0, 4)]:
        for dtype in (lamella.int8, lamella.uint8):
            low = 0 if dtype == lamella.uint8 else -128
            a = lamella.randint(low, low + 256, (m, k), dtype=dtype)
            b = lamella.randint(-128, 128, (n, k), dtype=lamella.int8).t()
            same(lamella._int_mm, a, b)
            same(lamella._int_mm, a, b.contiguous())
    assert not by_cpu(cuda, *PRODUCTS)


def test_products_wait_for_nothing(cuda, standin):
    x, w, b = made(8, 16).cuda(), made(8, 16).cuda(), made(8).cuda()
    F.linear(x, w, b)
    cuda.synchronize()
    standin.standin_reset_calls()
    y = F.linear(x, w, b)
    y = lamella.addmm(y, x, w.t())
    for name in (
        "cuStreamSynchronize",
        "cuCtxSynchronize",
        "cuMemAlloc_v2",
        "cuMemcpyDtoHAsync_v2",
    ):
        assert standin.calls(name) == 0
    assert standin.calls("cublasLtMatmul") == (2 if HAS_LIBRARIES else 0)
    assert standin.calls("cuLaunchKernel") == (0 if HAS_LIBRARIES else 2)
    side = cuda.Stream()
    with cuda.stream(side):
        z = x @ w.t()
    side.synchronize()
    close(x.cpu() @ w.cpu().t(), z)


# ---- Attention -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [lamella.float32, lamella.float64, lamella.bfloat16], ids=str)
def test_attention(cuda, dtype):
    lamella.manual_seed(0)
    q, k, v = (
        made(2, 4, 5, 6, dtype=dtype),
        made(2, 4, 7, 6, dtype=dtype),
        made(2, 4, 7, 3, dtype=dtype),
    )
    few = k[:, :2].contiguous(), v[:, :2].contiguous()
    seen = lamella.rand(5, 7) > 0.4
    seen[1] = False  # a query without keys
    tolerance = {lamella.float32: 1e-4, lamella.float64: 1e-11, lamella.bfloat16: 0.2}[dtype]

    def run(**how):
        def gradients(q, k, v):
            leaves = [t.clone().requires_grad_() for t in (q, k, v)]
            options = {n: t.to(q.device) if n == "attn_mask" else t for n, t in how.items()}
            y = F.scaled_dot_product_attention(*leaves, **options)
            return (y, *lamella.autograd.grad(y, leaves, y.detach()))

        return gradients

    same(run(), q, k, v, tolerance=tolerance)
    same(run(is_causal=True, scale=0.3), q, k, v, tolerance=tolerance)
    same(run(attn_mask=seen), q, k, v, tolerance=tolerance)
    same(run(attn_mask=made(2, 1, 5, 7, dtype=dtype)), q, k, v, tolerance=tolerance)
    same(run(enable_gqa=True), q, *few, tolerance=tolerance)
    assert not by_cpu(cuda, *PRODUCTS)


# ---- Convolutions --------------------------------------------------------------------------------

CONVOLUTIONS = [
    # input, weight, stride, padding, dilation, groups
    ((2, 3, 9), (4, 3, 3), 1, 0, 1, 1),
    ((2, 4, 9), (6, 2, 3), 2, 1, 2, 2),
    ((2, 3, 6, 5), (4, 3, 3, 2), 1, 1, 1, 1),
    ((2, 4, 7, 6), (8, 1, 3, 3), (2, 1), (1, 2), (1, 2), 4),
    ((1, 4, 5, 5), (8, 4, 1, 1), 1, 0, 1, 1),
    ((2, 2, 4, 5, 4), (3, 2, 2, 3, 2), (1, 2, 1), 1, 1, 1),
]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolutions(cuda, case, dtype):
    sizes, kernel, *how, groups = case
    if dtype == lamella.float64 or len(sizes) == 4 or groups == 1:
        lamella.manual_seed(0)
        x, w, b = (
            made(*sizes, dtype=dtype),
            made(*kernel, dtype=dtype),
            made(kernel[0], dtype=dtype),
        )
        function = [F.conv1d, F.conv2d, F.conv3d][len(sizes) - 3]

        def run(x, w, b):
            leaves = [t.clone(memory_format=lamella.preserve_format) for t in (x, w, b)]
            for t in leaves:
                t.requires_grad_()
            y = function(*leaves, *how, groups)
            return (y, *lamella.autograd.grad(y, leaves, y.detach()))

        tolerance = {lamella.float16: 0.5, lamella.bfloat16: 4, lamella.float32: 1e-3}
        same(run, x, w, b, tolerance=tolerance.get(dtype, 1e-11))
        if len(sizes) == 4:
            last = lamella.channels_last
            xs, ws = x.contiguous(memory_format=last), w.contiguous(memory_format=last)
            same(run, xs, ws, b, tolerance=tolerance.get(dtype, 1e-11))
            got = function(xs.cuda(), ws.cuda(), b.cuda(), *how, groups)
            assert got.is_contiguous(memory_format=last)
    assert not by_cpu(cuda, "convolution", "convolution_backward")


def test_transposed_convolutions(cuda, standin):
    lamella.manual_seed(0)
    for function, sizes, kernel, how in [
        (
            F.conv_transpose1d,
            (2, 3, 5),
            (3, 4, 3),
            {"stride": 2, "padding": 1, "output_padding": 1},
        ),
        (F.conv_transpose2d, (2, 4, 5, 4), (4, 3, 3, 2), {"stride": 2, "groups": 2, "dilation": 2}),
        # The padding of the output exceeds the stride: sizes that libraries refuse.
        (F.conv_transpose2d, (1, 2, 3, 3), (2, 3, 2, 2), {"dilation": 3, "output_padding": 2}),
        (F.conv_transpose3d, (1, 2, 3, 2, 3), (2, 3, 2, 2, 2), {"padding": 1}),
    ]:

        def run(x, w, b, function=function, how=how):
            leaves = [t.clone().requires_grad_() for t in (x, w, b)]
            y = function(*leaves, **how)
            return (y, *lamella.autograd.grad(y, leaves, y.detach()))

        same(
            run, made(*sizes), made(*kernel), made(kernel[1] * how.get("groups", 1)), tolerance=1e-3
        )
    assert not by_cpu(cuda, "convolution", "convolution_backward")
    assert (standin.calls("cudnnConvolutionBackwardData") > 0) == HAS_LIBRARIES


# ---- Factorisations ------------------------------------------------------------------------------

FACTORS = ("linalg_cholesky_ex", "linalg_lu_factor_ex", "linalg_qr", "_linalg_svd", "_linalg_eigh")
FACTORS += ("linalg_solve_triangular", "linalg_lu_solve", "_linalg_solve_ex", "linalg_inv_ex")


def none_by_cpu(cuda, *names):
    assert not HAS_LIBRARIES or not by_cpu(cuda, *names)


@pytest.mark.parametrize(
    "dtype", [lamella.float32, lamella.float64, lamella.complex64, lamella.complex128], ids=str
)
def test_factorisations(cuda, dtype):
    lamella.manual_seed(0)
    single = dtype in (lamella.float32, lamella.complex64)
    tolerance = 2e-4 if single else 1e-11
    linalg = lamella.linalg

    def check(function, *inputs):
        same(function, *inputs, tolerance=tolerance)

    for batch in [(), (3,), (2, 1)]:
        a = made(*batch, 4, 4, dtype=dtype)
        positive = a @ a.mH.resolve_conj() + 4 * lamella.eye(4, dtype=dtype)
        b = made(*batch, 4, 2, dtype=dtype)
        shifted = a + 4 * lamella.eye(4, dtype=dtype)
        check(linalg.cholesky, positive)
        check(lambda x: linalg.cholesky(x, upper=True), positive)
        check(lambda x: linalg.lu_factor(x), made(*batch, 5, 3, dtype=dtype))
        check(lambda x: linalg.lu(x), made(*batch, 3, 5, dtype=dtype))
        check(linalg.solve, shifted, b)
        check(lambda a, b: linalg.solve(a, b.mT, left=False), shifted, b)
        check(linalg.inv, shifted)
        check(linalg.det, a)
        check(linalg.slogdet, a)
        for adjoint in (False, True):
            check(
                lambda a, b, adjoint=adjoint: linalg.lu_solve(
                    *linalg.lu_factor(a), b, adjoint=adjoint
                ),
                shifted,
                b,
            )
        for upper in (False, True):
            for unit in (False, True):
                triangle = shifted.triu() if upper else shifted.tril()
                options = {"upper": upper, "unitriangular": unit}
                check(lambda a, b, o=options: linalg.solve_triangular(a, b, **o), triangle, b)
                check(
                    lambda a, b, o=options: linalg.solve_triangular(a, b.mT, left=False, **o),
                    triangle,
                    b,
                )
        for m, n in [(5, 3), (3, 5), (4, 4)]:
            x = made(*batch, m, n, dtype=dtype)
            for mode in ("reduced", "complete", "r"):
                check(lambda x, mode=mode: linalg.qr(x, mode), x)
            check(linalg.svdvals, x)
            for full in (False, True):
                u, s, vh = linalg.svd(x.cuda(), full_matrices=full)
                k = min(m, n)
                close(x, (u[..., :k] * s.to(dtype).unsqueeze(-2)) @ vh[..., :k, :], tolerance)
                shapes = [t.shape for t in linalg.svd(x, full_matrices=full)]
                assert [t.shape for t in (u, s, vh)] == shapes
        for part in "LU":
            values, vectors = linalg.eigh(positive.cuda(), part)
            close(positive, (vectors * values.to(dtype).unsqueeze(-2)) @ vectors.mH, tolerance)
            check(lambda x, part=part: linalg.eigvalsh(x, part), positive)
        check(lambda a, b: linalg.lstsq(a, b).solution, made(*batch, 5, 3, dtype=dtype),
              made(*batch, 5, 2, dtype=dtype))  # fmt: skip
        check(linalg.pinv, made(*batch, 5, 3, dtype=dtype))
    none_by_cpu(cuda, *FACTORS)


@pytest.mark.parametrize(
    "dtype", [lamella.float32, lamella.float64, lamella.complex64, lamella.complex128], ids=str
)
def test_many_small_matrices(cuda, standin, dtype):
    """By kernels, with libraries and without."""
    lamella.manual_seed(0)
    single = dtype in (lamella.float32, lamella.complex64)
    linalg = lamella.linalg

    def check(function, *inputs):
        same(function, *inputs, tolerance=5e-4 if single else 1e-11)

    for n in (1, 2, 7, 35):
        a = made(9, n, n, dtype=dtype)
        shifted, b = a + 3 * n**0.5 * lamella.eye(n, dtype=dtype), made(9, n, 3, dtype=dtype)
        positive = a @ a.mH.resolve_conj() + n * lamella.eye(n, dtype=dtype)
        check(linalg.cholesky, positive)
        check(lambda x: linalg.cholesky(x, upper=True), positive)
        check(linalg.solve, shifted, b)
        check(lambda a, b: linalg.solve(a, b.mT, left=False), shifted, b)
        check(linalg.inv, shifted)
        check(lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, adjoint=True), shifted, b)
        check(lambda x: linalg.lu_factor(x), made(3, 3, n + 2, n, dtype=dtype))
        check(lambda x: linalg.lu_factor(x), made(9, n, n + 3, dtype=dtype))
    singular = lamella.zeros(9, 3, 3, dtype=dtype)
    singular[::2] = lamella.eye(3, dtype=dtype)
    singular[3, 0, 0] = 1
    same(lambda x: linalg.lu_factor_ex(x)[2], singular)
    same(lambda x: linalg.cholesky_ex(x)[1], singular)
    assert not by_cpu(cuda, "linalg_cholesky_ex", "linalg_lu_factor_ex", "linalg_lu_solve")
    assert standin.calls("cusolverDnXgetrf") == standin.calls("cusolverDnXpotrf") == 0


def test_singular_and_strange_matrices(cuda):
    singular = lamella.zeros(2, 3, 3)
    singular[0] = lamella.eye(3)
    for function in (lamella.linalg.inv, lamella.linalg.cholesky):
        messages = []
        for device in ("cpu", "cuda"):
            with pytest.raises(lamella.linalg.LinAlgError) as error:
                function(singular.to(device))
            messages.append(str(error.value))
        assert messages[0] == messages[1]
    same(lambda x: lamella.linalg.lu_factor_ex(x)[1:], singular)
    same(lambda x: lamella.linalg.inv_ex(x)[1], singular)
    strange = lamella.eye(3).repeat(2, 1, 1)
    strange[1, 0, 0] = float("nan")
    with pytest.raises(lamella.linalg.LinAlgError, match="expected 'A' to be finite"):
        lamella.linalg.svd(strange.cuda())
    for a, b in zip(lamella.linalg.eigh(strange), lamella.linalg.eigh(strange.cuda())):
        assert a.isnan().equal(b.cpu().isnan())
    for sizes in [(0, 0), (0, 3, 3), (2, 0, 0), (0, 3)]:
        x = lamella.zeros(sizes)
        same(lambda x: lamella.linalg.qr(x), x)
        same(lambda x: lamella.linalg.svdvals(x), x)
        if x.shape[-1] == x.shape[-2]:
            for function in (lamella.linalg.inv, lamella.linalg.det, lamella.linalg.eigvalsh):
                same(function, x)


def test_gradients_of_factorisations(cuda):
    lamella.manual_seed(0)
    a = made(4, 4) + 4 * lamella.eye(4)

    def run(function):
        def gradient(a, b):
            a = a.clone().requires_grad_()
            return lamella.autograd.grad(function(a, b).sum(), a)[0]

        same(gradient, a, made(4, 2), tolerance=1e-3)

    run(lamella.linalg.solve)
    run(lambda a, b: lamella.linalg.inv(a))
    run(lambda a, b: lamella.linalg.cholesky(a @ a.mT))
    run(lambda a, b: lamella.linalg.eigvalsh(a + a.mT))
    run(lambda a, b: lamella.linalg.svdvals(a))
    run(lambda a, b: lamella.linalg.det(a))


# ---- Transforms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("single", [True, False])
def test_transforms(cuda, single):
    lamella.manual_seed(0)
    real, complex_ = (
        (lamella.float32, lamella.complex64) if single else (lamella.float64, lamella.complex128)
    )
    fft, tolerance = lamella.fft, 2e-4 if single else 1e-11

    def check(function, *inputs):
        same(function, *inputs, tolerance=tolerance)

    x, z = made(3, 4, 6, 5, dtype=real), made(3, 4, 6, 5, dtype=complex_)
    for norm in (None, "ortho", "forward"):
        check(lambda t, n=norm: fft.fft(t, norm=n), z)
        check(lambda t, n=norm: fft.ifft(t, dim=1, norm=n), z)
        check(lambda t, n=norm: fft.rfft(t, dim=2, norm=n), x)
        check(lambda t, n=norm: fft.irfft(t, dim=2, norm=n), z)
        check(lambda t, n=norm: fft.fftn(t, norm=n), z)
        check(lambda t, n=norm: fft.irfft2(t, norm=n), z)
    check(fft.fft, x)
    check(lambda t: fft.fft(t, n=9), x)
    check(lambda t: fft.irfft(t, n=7), z)
    check(lambda t: fft.irfft(t, n=8), z)
    check(lambda t: fft.fft2(t, dim=(0, 2)), z)
    check(lambda t: fft.rfftn(t, dim=(2, 0, 1)), x)
    check(lambda t: fft.irfftn(t, dim=(3, 1)), z)
    check(lambda t: fft.ifftn(t.transpose(0, 3)), z)
    check(fft.hfft, z)
    check(fft.ihfft, x)
    check(lambda t: fft.fft(t), z[:0])
    kept = z.clone().cuda()
    fft.irfft(kept)
    assert kept.cpu().equal(z)  # the library overwrites what it reads

    def gradient(t):
        t = t.clone().requires_grad_()
        return lamella.autograd.grad(fft.rfft(t).abs().sum(), t)[0]

    check(gradient, x)
    none_by_cpu(cuda, "_fft_c2c", "_fft_r2c", "_fft_c2r")


# ---- Waits ---------------------------------------------------------------------------------------


def test_nothing_waits(cuda, standin):
    """Nothing but what runs on the CPU, or raises for a matrix that is singular."""
    a = (made(4, 4) + 4 * lamella.eye(4)).cuda()
    image, kernel = made(1, 2, 5, 5).cuda(), made(3, 2, 2, 2).cuda().requires_grad_()
    numbers = made(3, 8, dtype=lamella.complex64).cuda()

    def convolve():
        y = F.conv2d(image, kernel, padding=1)
        lamella.autograd.grad(y, kernel, y.detach())

    for call in (
        convolve,
        lambda: lamella.fft.fftn(numbers),
        lambda: lamella.fft.irfft(numbers),
        lambda: lamella.linalg.solve_ex(a, a),
        lambda: lamella.linalg.inv_ex(a),
        lambda: lamella.linalg.cholesky_ex(a @ a.mT),
        lambda: lamella.linalg.qr(a),
        lambda: lamella.linalg.solve_triangular(a, a, upper=True),
    ):
        call()
        cuda.synchronize()
        cuda.reset_fallbacks()
        standin.standin_reset_calls()
        call()
        waits = [standin.calls(n) for n in ("cuStreamSynchronize", "cuMemcpyDtoHAsync_v2")]
        assert cuda.fallbacks() or waits == [0, 0]
    if HAS_LIBRARIES:
        for call in (convolve, lambda: lamella.fft.fftn(numbers)):
            cuda.reset_fallbacks()
            call()
            assert not cuda.fallbacks()


# ---- The libraries -------------------------------------------------------------------------------


def test_libraries_are_named(cuda):
    found = cuda.libraries()
    assert sorted(found) == ["cublasLt", "cudnn", "cufft", "cusolver"]
    for name, where in found.items():
        if HAS_LIBRARIES:
            assert where.endswith("libcuda_standin_libraries.so")
        else:
            assert where == f"there is no {name}: LAMELLA_CUDA_LIBRARIES is none"
