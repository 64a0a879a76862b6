"""Linear algebra against PyTorch. Factors of free sign or phase are compared by their product."""

import pytest
from operator_cases import check, compare, error_of, lamella, make, run, to_lamella, torch

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
TALL = [(4, 3), (3, 4), (3, 3), (2, 5, 2), (2, 2, 5), (0, 3), (3, 0), (2, 0, 0)]
LOOSE = {torch.float32: (1e-3, 1e-4), torch.complex64: (1e-3, 1e-4)}


def ours(name, *args, **kwargs):
    results = run(lamella, name, [to_lamella(a) for a in args], kwargs)
    if not isinstance(results, (list, tuple)):
        return torch.from_dlpack(results.resolve_conj())
    return [torch.from_dlpack(r.resolve_conj()) for r in results]


def close(got, expected, dtype):
    rtol, atol = LOOSE.get(dtype, (1e-8, 1e-8))
    torch.testing.assert_close(got, expected, rtol=rtol, atol=atol)


def near(name, *args, meta=True, **kwargs):
    dtype = args[0].dtype
    check(name, *args, strides=False, tolerance=LOOSE.get(dtype, (1e-8, 1e-8)), meta=meta, **kwargs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", TALL, ids=str)
def test_any_shape(shape, dtype):
    a = make(*shape, dtype=dtype)
    m, n = shape[-2:]
    for mode in ("reduced", "complete"):
        near("linalg_qr", a, mode)
    if a.numel() != 0:
        near("linalg_qr", a, "r")
        near("linalg_pinv", a, 1e-4)
        near("linalg_lu", a)
    for full in (False, True):
        U, S, Vh = ours("linalg_svd", a, full)
        assert U.shape[-2:] == (m, m if full else min(m, n))
        assert Vh.shape[-2:] == (n if full else min(m, n), n)
        close(S, torch.linalg.svdvals(a), dtype)
        k = min(m, n)
        close(U[..., :k] * S.unsqueeze(-2) @ Vh[..., :k, :], a, dtype)
        close(
            U.mH @ U,
            torch.eye(U.shape[-1], dtype=dtype).expand(U.mH.shape[:-1] + U.shape[-1:]),
            dtype,
        )
    near("linalg_svdvals", a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig(dtype):
    a = make(2, 4, 4, dtype=dtype)
    values, vectors = ours("linalg_eig", a)
    complex_a = a.to(vectors.dtype)
    close(complex_a @ vectors, vectors * values.unsqueeze(-2), dtype)
    close(vectors.abs().square().sum(-2), torch.ones(2, 4, dtype=a.real.dtype), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sides_and_triangles(dtype):
    a, b = make(2, 3, 3, dtype=dtype) + 5 * torch.eye(3, dtype=dtype), make(2, 3, 2, dtype=dtype)
    near("linalg_solve", a, b.mT.contiguous(), left=False)
    near("linalg_solve", a, b[..., 0].contiguous())
    for upper in (False, True):  # the other triangle is not read
        near("cholesky_solve", b, a, upper)
        near("linalg_solve_triangular", a, b, upper=upper)


def test_addr_of_truths():
    shapes = [(3, 4), (3,), (4,)]
    truths = [make(*shape, dtype=torch.bool, seed=i) for i, shape in enumerate(shapes)]
    for beta, alpha in ((1, 1), (True, False), (0, 2), (-1, True)):
        check("addr", *truths, beta=beta, alpha=alpha)


def test_complex_view_copies():
    check("view_as_real_copy", make(3, dtype=torch.complex64))
    check("view_as_complex_copy", make(3, 2))
    check("t_copy", make(3, 2))


def test_norm_of_the_package():
    a = make(3, 4, dtype=torch.float64)
    for args in [(), ("fro",), ("nuc",), ("fro", 1), ("nuc", (1, 0), True), (3, 1), (None, [0, 1])]:
        mine = lamella.norm(to_lamella(a), *args)
        torch.testing.assert_close(torch.from_dlpack(mine), torch.norm(a, *args))
        out = lamella.empty(0, dtype=lamella.float64)
        lamella.norm(to_lamella(a), *args, out=out)
        assert out.tolist() == mine.tolist()
        assert to_lamella(a).norm(*args).tolist() == mine.tolist()
    with pytest.raises(
        RuntimeError, match="^norm: expected 'p' to be a number, 'fro' or 'nuc', got"
    ):
        lamella.norm(to_lamella(a), "inf")


@pytest.mark.parametrize(
    "name, args, said",
    [
        ("norm", ("nuc",), ("linalg_matrix_norm", "self")),
        ("chain_matmul", (), ("chain_matmul", "matrices")),
    ],
)
def test_out_is_not_recorded(name, args, said):
    a = to_lamella(make(3, 3)).requires_grad_()
    out = lamella.empty(0)
    with pytest.raises(RuntimeError) as raised:
        getattr(lamella, name)(a, *args, out=out)
    assert str(raised.value) == (
        f"{said[0]}: expected no argument to require gradients where the result is written to "
        f"'out', got '{said[1]}' that does; call it without 'out', or under no_grad()"
    )
    with lamella.no_grad():
        assert not getattr(lamella, name)(a, *args, out=out).requires_grad


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("dtype", DTYPES)
def test_infinities_and_nans_are_refused_or_stay(dtype, value):
    a = torch.tensor([[0, value], [value, value]], dtype=dtype)
    batch = torch.stack([torch.eye(2, dtype=dtype), a])
    for name in ("linalg_eig", "linalg_eigvals"):
        for x in (a, batch):
            assert error_of(name, x) == (
                f"{name}: expected 'self' to be finite, got infinities or NaNs"
            )
    for name in ("linalg_svd", "linalg_svdvals", "pinverse", "svd"):
        inside = "" if name.startswith("linalg") else "linalg_svd: "
        assert error_of(name, a) == (
            f"{name}: {inside}expected 'A' to be finite, got infinities or NaNs in matrix 0 of the "
            "batch"
        )
    assert error_of("linalg_svd", batch) == (
        "linalg_svd: expected 'A' to be finite, got infinities or NaNs in matrix 1 of the batch"
    )
    # As in PyTorch, one matrix does not spoil the others.
    values, vectors = ours("linalg_eigh", batch)
    assert values[0].tolist() == [1, 1] and values[1].isnan().all()
    assert vectors[0].abs().sum() == 2 and vectors[1].isnan().all()
    for name in ("linalg_inv_ex", "linalg_lu_factor_ex", "linalg_cholesky_ex", "linalg_qr"):
        for part in run(lamella, name, [to_lamella(batch)], {}):
            assert not part.is_floating_point() or part[0].isfinite().all()


def test_eigh_reads_one_triangle():
    a = torch.tensor([[2.0, NAN], [1.0, 3.0]])
    near("linalg_eigvalsh", a)
    near("linalg_eigvalsh", a.t(), UPLO="U")
    assert ours("linalg_eigvalsh", a, UPLO="U").isnan().all()


@pytest.mark.parametrize("name", ["lu_unpack", "linalg_lu_solve"])
def test_pivots_are_checked(name):
    def error(pivots, lu=torch.eye(3)):
        rest = [torch.ones(3, 1)] if name == "linalg_lu_solve" else []
        return error_of(name, lu, pivots, *rest)

    argument = "LU_pivots" if name == "lu_unpack" else "pivots"
    for pivots, got in (
        ([0, 1, 2], 0),
        ([1, 2, 4], 4),
        ([1, -7, 2], -7),
        ([1, 2, 2**31 - 1], 2**31 - 1),
    ):
        assert error(torch.tensor(pivots, dtype=torch.int32)) == (
            f"{name}: expected the elements of '{argument}' to be in [1, 3], got {got}"
        )
    for pivots in ([1, 2], [1, 2, 3, 3], []):
        assert error(torch.tensor(pivots, dtype=torch.int32)) == (
            f"{name}: expected '{argument}' to be broadcastable to [3], got [{len(pivots)}]"
        )
    assert error(torch.tensor(1, dtype=torch.int32)) == (
        f"{name}: expected '{argument}' to be broadcastable to [3], got []"
    )
    assert error(torch.ones(3, 3, dtype=torch.int32), torch.eye(3).expand(2, 3, 3)) == (
        f"{name}: expected '{argument}' to be broadcastable to [2, 3], got [3, 3]"
    )
    assert error(torch.tensor([1, 2, 3])) == f"{name}: expected '{argument}' to be int32, got int64"


def test_pivots_of_matrices_that_are_not_square():
    for shape in ((4, 2), (2, 4), (3, 2, 4)):
        lu, pivots = torch.linalg.lu_factor(make(*shape, dtype=torch.float64))
        near("lu_unpack", lu, pivots)


def test_sizes_that_lapack_does_not_count_to():
    many = torch.zeros(1).expand(2, 2**31)
    for name in ("linalg_svd", "linalg_qr", "linalg_lu_factor_ex"):
        assert error_of(name, many) == (
            f"{name}: expected 'A' to have at most 2147483647 rows and columns, got [2, 2147483648]"
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_exp_of_norms_beside_each_other(dtype):
    # The exponential of a normal matrix is that of its eigenvalues. No matrix loses digits to its
    # neighbours.
    norms = torch.tensor([1e-6, 1e-3, 0.1, 0.4, 0.6, 1, 3, 10, 50], dtype=torch.float64)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    a = make(len(norms), 4, 4, dtype=wide)
    a = (a + a.mH) * (norms / torch.linalg.matrix_norm(a + a.mH, 1))[:, None, None]
    a = a.to(dtype)
    values, vectors = torch.linalg.eigh(a.to(wide))
    expected = (vectors * values.exp().unsqueeze(-2)) @ vectors.mH
    got = ours("linalg_matrix_exp", a).to(wide)
    apart = torch.linalg.matrix_norm(got - expected) / torch.linalg.matrix_norm(expected)
    eps = torch.finfo(dtype).eps
    assert (apart <= eps * (4 + 4 * norms)).all(), apart / eps


def test_matrix_exp_of_huge_numbers():
    for huge in (1e300, 1.7e308):
        for dtype in (torch.float64, torch.complex128):
            a = torch.tensor([[-huge, 0], [0, -1]], dtype=dtype)
            got = ours("linalg_matrix_exp", a)
            assert got[0, 0] == 0 and got[0, 1] == 0


def test_matrix_exp_of_numbers_and_small_types():
    for value in (INF, -INF, NAN, 2.0):
        near("linalg_matrix_exp", torch.tensor([[value]]))
    near("linalg_matrix_exp", torch.tensor([[[1.0, 2], [0, 1]], [[NAN, 0], [0, 1]]]))
    for dtype in (torch.float16, torch.bfloat16):
        a = make(3, 3, dtype=dtype)
        expected = torch.linalg.matrix_exp(a.float()).to(dtype)
        assert torch.equal(ours("linalg_matrix_exp", a), expected)


@pytest.mark.parametrize("scale", [1e-12, 1e6, 1e12])
def test_gradient_of_matrix_exp_is_linear_in_what_comes_in(scale):
    a = to_lamella(make(2, 3, 3, dtype=torch.float64)).requires_grad_()
    weight = to_lamella(make(2, 3, 3, dtype=torch.float64, seed=1))
    once, scaled = (
        torch.from_dlpack(lamella.autograd.grad(lamella.linalg.matrix_exp(a), a, w)[0])
        for w in (weight, weight * scale)
    )
    torch.testing.assert_close(scaled / scale, once, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("rcond", [None, 0.0, -1.0, 0.01, 1.0, 2.0])
def test_tolerances_of_least_squares(rcond):
    a = torch.tensor([[3.0, 1], [1, 2]], dtype=torch.float64)
    b = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    for driver in ("gels", "gelsd", "gelss"):
        theirs = torch.linalg.lstsq(a, b, rcond=rcond, driver=driver)
        mine = ours("linalg_lstsq", a, b, rcond=rcond, driver=driver)
        close(mine[0], theirs.solution, torch.float64)


def test_vander():
    for x in (make(3), make(2, 3, dtype=torch.complex128), torch.tensor([1, 2], dtype=torch.int8)):
        near("linalg_vander", x)
        near("linalg_vander", x, N=5)
    near("linalg_vander", torch.tensor(2.0), N=3)
    near("linalg_vander", torch.zeros(0), N=3)
    assert error_of("linalg_vander", torch.tensor(2.0)) == (
        "linalg_vander: expected 'N' for an 'x' without dimensions"
    )
    for n in (1, 0, -(2**63)):
        assert error_of("linalg_vander", make(3), N=n) == (
            f"linalg_vander: expected 'N' above 1, got {n}"
        )
    assert error_of("linalg_vander", torch.tensor([True])) == (
        "linalg_vander: expected 'x' not to be bool"
    )


def test_gels_takes_the_matrix_to_have_full_rank():
    a, b = make(5, 3), make(5, 2, seed=1)
    ours = lamella.linalg.lstsq(to_lamella(a), to_lamella(b), rcond=1.0, driver="gels")
    theirs = torch.linalg.lstsq(a, b, rcond=1.0, driver="gels")
    compare(ours[0], theirs[0], strides=False, tolerance=(1e-4, 1e-4))


def tangents(module, function, inputs, directions):
    if module is lamella:
        inputs, directions = map(to_lamella, inputs), map(to_lamella, directions)
    found = module.func.jvp(function, tuple(inputs), tuple(directions))[1]
    return [torch.from_dlpack(t.resolve_conj()) if module is lamella else t for t in found]


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 5), (3, 3)], ids=str)
def test_tangents_of_least_squares_and_singular_values(shape, dtype):
    a, da = (make(*shape, dtype=dtype, seed=i) for i in range(2))
    b, db = (make(*shape[:-1], 2, dtype=dtype, seed=i) for i in range(2, 4))

    def solution(module, b, db, **how):
        def solve(a, b):
            return module.linalg.lstsq(a, b, **how)[:2]

        return tangents(module, solve, (a, b), (da, db))

    cases = [(b, db, {"driver": driver}) for driver in ("gels", "gelsy", "gelsd")]
    if len(shape) > 2:
        cases.append((b[..., 0], db[..., 0], {}))
    for right, moved, how in cases:
        for mine, theirs in zip(
            solution(lamella, right, moved, **how), solution(torch, right, moved, **how)
        ):
            torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-8)
    # Columns that only fill up a basis stay where they are.
    du, ds, dvh = tangents(lamella, lambda a: tuple(lamella.linalg.svd(a)), (a,), (da,))
    k = ds.shape[-1]
    assert du.shape[-1] == shape[-2] and not du[..., k:].any()
    assert dvh.shape[-2] == shape[-1] and not dvh[..., k:, :].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [1, 2, 5, 8, 9])
def test_stacks_of_small_matrices(n, dtype):
    a = make(40, n, n, dtype=dtype)
    a[0] = 0
    a[0].diagonal()[:] = torch.arange(1, n + 1)
    a[1] = torch.flip(a[0], [0])  # needs an exchange of every row
    b = make(40, n, 3, dtype=dtype, seed=1)
    good = a[:2].clone()
    near("linalg_det", a)
    near("linalg_det", good)
    for side in (b[:2], b[:2, :, :1]):
        close(ours("linalg_solve", good, side), torch.linalg.solve(good, side), dtype)
    rows = side.mT.contiguous()
    left = torch.linalg.solve(good, rows, left=False)
    close(ours("linalg_solve", good, rows, left=False), left, dtype)
    close(ours("linalg_inv", good), torch.linalg.inv(good), dtype)
    P, L, U = ours("linalg_lu", a)
    close(P @ L @ U, a, dtype)
    assert (L.abs() <= 1 + 1e-6).all()
    rank_one = torch.ones(3, n, n, dtype=dtype)
    info = ours("linalg_lu_factor_ex", rank_one)[2]
    assert info.tolist() == [2 if n > 1 else 0] * 3
    tall = make(4, 8, 3, dtype=dtype)
    P, L, U = ours("linalg_lu", tall)
    close(P @ L @ U, tall, dtype)


@pytest.mark.parametrize(
    "shapes", [((3, 4), (5, 2)), ((7,), (63,)), ((2, 3, 2), (3, 2)), ((), (4,))]
)
def test_kron_of_short_lines(shapes):
    a, b = (make(*shape, dtype=torch.float64, seed=i) for i, shape in enumerate(shapes))
    near("kron", a, b)
    near("kron", b, a)
