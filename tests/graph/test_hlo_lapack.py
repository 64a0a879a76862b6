"""The linear-algebra targets of JAX programs, run without jaxlib's handlers."""

from __future__ import annotations

import numpy as np
import pytest
from lapack_values import close, is_complex, random, real_of

hlo = pytest.importorskip("lamella.hlo")

TYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
NAMES = {
    "float32": "f32",
    "float64": "f64",
    "complex64": "c64",
    "complex128": "c128",
    "int32": "s32",
}


def adjoint(a):
    return np.swapaxes(a.conj(), -1, -2)


def text_of(shape, dtype, inner):
    """A shape in HLO's text; its last `inner` dimensions lie column by column."""
    rank = len(shape)
    order = list(range(rank))[::-1]
    if inner == 2:
        order[0], order[1] = order[1], order[0]
    sizes, layout = ",".join(map(str, shape)), ",".join(map(str, order))
    return f"{NAMES[np.dtype(dtype).name]}[{sizes}]" + (f"{{{layout}}}" if layout else "")


def call(target, operands, results, attributes="", inner=None):
    """The results of one custom call. `results`: (shape, dtype, inner dimensions) of each."""
    inner = inner or [2] * len(operands)
    shapes = [text_of(a.shape, a.dtype, k) for a, k in zip(operands, inner)]
    plain = [text_of(a.shape, a.dtype, 0) for a in operands]
    made = [text_of(*one) for one in results]
    result = made[0] if len(made) == 1 else f"({', '.join(made)})"
    lines = [f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(plain)]
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    lines.append(
        f'  ROOT r = {result} custom-call({names}), custom_call_target="{target}", '
        f"operand_layout_constraints={{{', '.join(shapes)}}}, "
        f"api_version=API_VERSION_TYPED_FFI, backend_config={{{attributes}}}"
    )
    text = "HloModule m\n\nENTRY main {\n" + "\n".join(lines) + "\n}\n"
    return [np.asarray(one.numpy()) for one in hlo.evaluate(text, *operands)]


@pytest.fixture(params="sdcz")
def letter(request):
    return request.param


@pytest.fixture(params=[(), (3,), (2, 1), (0,)], ids=str)
def batch(request):
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("uplo", "LU")
def test_cholesky(rng, letter, batch, uplo):
    dtype = TYPES[letter]
    a = random(rng, (*batch, 4, 4), dtype)
    a = a @ adjoint(a) + np.eye(4, dtype=dtype)
    factor, info = call(
        f"lapack_{letter}potrf_ffi",
        [a],
        [(a.shape, dtype, 2), (batch, np.int32, 0)],
        f"uplo = {ord(uplo)} : ui8",
    )
    half = np.tril(factor) if uplo == "L" else np.triu(factor)
    close(half @ adjoint(half) if uplo == "L" else adjoint(half) @ half, a, dtype, 10)
    assert (info == 0).all()
    # The other half stays as it was.
    other = np.triu if uplo == "L" else np.tril
    k = 1 if uplo == "L" else -1
    np.testing.assert_array_equal(other(factor, k), other(a, k))


def test_cholesky_says_where_it_stopped(letter):
    dtype = TYPES[letter]
    a = np.stack([np.diag([1, 1, -1, 1]), np.eye(4)]).astype(dtype)
    _, info = call(
        f"lapack_{letter}potrf_ffi",
        [a],
        [(a.shape, dtype, 2), ((2,), np.int32, 0)],
        "uplo = 76 : ui8",
    )
    assert info.tolist() == [3, 0]


@pytest.mark.parametrize("sizes", [(4, 4), (5, 3), (3, 5), (0, 3), (3, 0)], ids=str)
def test_lu(rng, letter, batch, sizes):
    dtype = TYPES[letter]
    m, n = sizes
    least = min(m, n)
    a = random(rng, (*batch, m, n), dtype)
    lu, pivots, info = call(
        f"lapack_{letter}getrf_ffi",
        [a],
        [(a.shape, dtype, 2), ((*batch, least), np.int32, 1), (batch, np.int32, 0)],
    )
    assert (info == 0).all()
    lower = np.tril(lu[..., :least], -1) + np.eye(m, least, dtype=dtype)
    product = lower @ np.triu(lu[..., :least, :])
    permuted = a.reshape(int(np.prod(batch)), m, n).copy()
    for matrix, swaps in zip(permuted, pivots.reshape(len(permuted), least)):
        for i, j in enumerate(swaps - 1):
            matrix[[i, j]] = matrix[[j, i]]
    close(product.reshape(permuted.shape), permuted, dtype)


def test_lu_of_singular_matrices(letter):
    dtype = TYPES[letter]
    a = np.array([[[1, 2], [2, 4]], [[0, 0], [0, 0]], [[1, 0], [0, 1]]], dtype)
    _, pivots, info = call(
        f"lapack_{letter}getrf_ffi",
        [a],
        [(a.shape, dtype, 2), ((3, 2), np.int32, 1), ((3,), np.int32, 0)],
    )
    assert info.tolist() == [2, 1, 0]
    assert pivots.tolist() == [[2, 2], [1, 2], [1, 2]]


@pytest.mark.parametrize("sizes", [(4, 4), (5, 3), (3, 5)], ids=str)
@pytest.mark.parametrize("pivoted", [False, True])
def test_qr(rng, letter, batch, sizes, pivoted):
    dtype = TYPES[letter]
    m, n = sizes
    least = min(m, n)
    a = random(rng, (*batch, m, n), dtype)
    order = "un" if is_complex(dtype) else "or"
    if pivoted:
        packed, columns, tau = call(
            f"lapack_{letter}geqp3_ffi",
            [a, np.zeros((*batch, n), np.int32)],
            [(a.shape, dtype, 2), ((*batch, n), np.int32, 1), ((*batch, least), dtype, 1)],
            inner=[2, 1],
        )
        permuted = np.take_along_axis(a, columns[..., None, :] - 1, -1)
        size = np.abs(np.diagonal(packed, axis1=-2, axis2=-1))
        assert (size[..., 1:] <= size[..., :-1] * 1.01).all()
    else:
        packed, tau = call(
            f"lapack_{letter}geqrf_ffi",
            [a],
            [(a.shape, dtype, 2), ((*batch, least), dtype, 1)],
        )
        permuted = a
    (q,) = call(
        f"lapack_{letter}{order}gqr_ffi",
        [packed[..., :least].copy(), tau],
        [((*batch, m, least), dtype, 2)],
        inner=[2, 1],
    )
    r = np.triu(packed[..., :least, :])
    close(q @ r, permuted, dtype)
    close(adjoint(q) @ q, np.broadcast_to(np.eye(least), (*batch, least, least)), dtype)
    # The same product without forming q.
    c = random(rng, (*batch, m, 2), dtype)
    (product,) = call(
        f"lapack_{letter}{order}mqr_ffi",
        [packed[..., :least].copy(), tau, c],
        [(c.shape, dtype, 2)],
        "left = true, transpose = true",
        inner=[2, 1, 2],
    )
    close(product[..., :least, :], adjoint(q) @ c, dtype)
    (product,) = call(
        f"lapack_{letter}{order}mqr_ffi",
        [packed[..., :least].copy(), tau, np.swapaxes(c, -1, -2).copy()],
        [((*batch, 2, m), dtype, 2)],
        "left = false, transpose = false",
        inner=[2, 1, 2],
    )
    close(product[..., :least], np.swapaxes(c, -1, -2) @ q, dtype)


@pytest.mark.parametrize("routine", ["gesdd", "gesvd"])
@pytest.mark.parametrize("mode", "ASN")
@pytest.mark.parametrize("sizes", [(4, 4), (5, 3), (3, 5)], ids=str)
def test_svd(rng, letter, routine, mode, sizes):
    dtype = TYPES[letter]
    m, n = sizes
    least = min(m, n)
    a = random(rng, (2, m, n), dtype)
    _, s, u, vt, info = call(
        f"lapack_{letter}{routine}_ffi",
        [a],
        [
            (a.shape, dtype, 2),
            ((2, least), real_of(dtype), 1),
            ((2, m, m if mode == "A" else least), dtype, 2),
            ((2, n if mode == "A" else least, n), dtype, 2),
            ((2,), np.int32, 0),
        ],
        f"mode = {ord(mode)} : ui8",
    )
    assert (info == 0).all()
    close(s, np.linalg.svd(a, compute_uv=False), dtype)
    if mode == "N":
        assert not u.any() and not vt.any()
        return
    close((u[..., :least] * s[..., None, :]) @ vt[..., :least, :], a, dtype)
    close(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (2, *[u.shape[-1]] * 2)), dtype)


@pytest.mark.parametrize("uplo", "LU")
@pytest.mark.parametrize("mode", "VN")
def test_eigenvalues_of_hermitian_matrices(rng, letter, batch, uplo, mode):
    dtype = TYPES[letter]
    a = random(rng, (*batch, 5, 5), dtype)
    a = a + adjoint(a)
    half = np.tril(a) if uplo == "L" else np.triu(a)
    name = "heevd" if is_complex(dtype) else "syevd"
    v, w, info = call(
        f"lapack_{letter}{name}_ffi",
        [half],
        [(a.shape, dtype, 2), ((*batch, 5), real_of(dtype), 1), (batch, np.int32, 0)],
        f"mode = {ord(mode)} : ui8, uplo = {ord(uplo)} : ui8",
    )
    assert (info == 0).all()
    close(w, np.linalg.eigvalsh(a), dtype, 10)
    if mode == "V":
        close(a @ v, v * w[..., None, :], dtype, 10)


@pytest.mark.parametrize("left", "VN")
@pytest.mark.parametrize("right", "VN")
def test_eigenvalues(rng, letter, batch, left, right):
    dtype = TYPES[letter]
    a = random(rng, (*batch, 5, 5), dtype)
    complex_type = np.result_type(dtype, np.complex64)
    parts = 1 if is_complex(dtype) else 2
    *w, vl, vr, info = call(
        f"lapack_{letter}geev_ffi",
        [a],
        [((*batch, 5), dtype, 1)] * parts
        + [(a.shape, complex_type, 2)] * 2
        + [(batch, np.int32, 0)],
        f"compute_left = {ord(left)} : ui8, compute_right = {ord(right)} : ui8",
    )
    assert (info == 0).all()
    values = w[0] if parts == 1 else w[0] + 1j * w[1]
    key = lambda z: np.sort_complex(np.round(z, 3))  # noqa: E731
    close(key(values), key(np.linalg.eigvals(a)), np.float32, 10)
    if right == "V":
        close(a @ vr, vr * values[..., None, :], dtype, 10)
    if left == "V":
        close(adjoint(vl) @ a, values[..., :, None] * adjoint(vl), dtype, 10)


@pytest.mark.parametrize("mode", "VN")
def test_schur(rng, letter, batch, mode):
    dtype = TYPES[letter]
    a = random(rng, (*batch, 5, 5), dtype)
    parts = 1 if is_complex(dtype) else 2
    t, z, *w, selected, info = call(
        f"lapack_{letter}gees_ffi",
        [a],
        [(a.shape, dtype, 2)] * 2 + [((*batch, 5), dtype, 1)] * parts + [(batch, np.int32, 0)] * 2,
        f"mode = {ord(mode)} : ui8, sort = 78 : ui8",
    )
    assert (info == 0).all() and (selected == 0).all()
    close(np.trace(t, axis1=-2, axis2=-1), np.trace(a, axis1=-2, axis2=-1), dtype, 10)
    assert not np.tril(t, -2).any()
    if mode == "V":
        close(z @ t @ adjoint(z), a, dtype, 10)


def test_hessenberg(rng, letter, batch):
    dtype = TYPES[letter]
    a = random(rng, (*batch, 4, 4), dtype)
    packed, tau, info = call(
        f"lapack_{letter}gehrd_ffi",
        [a],
        [(a.shape, dtype, 2), ((*batch, 3), dtype, 1), (batch, np.int32, 0)],
        "low = 1 : i32, high = 4 : i32",
    )
    order = "un" if is_complex(dtype) else "or"
    (q,) = call(
        f"lapack_{letter}{order}gqr_ffi",
        [packed[..., 1:, :3].copy(), tau],
        [((*batch, 3, 3), dtype, 2)],
        inner=[2, 1],
    )
    whole = np.broadcast_to(np.eye(4, dtype=dtype), a.shape).copy()
    whole[..., 1:, 1:] = q
    h = np.triu(packed, -1)
    close(whole @ h @ adjoint(whole), a, dtype, 10)
    assert (info == 0).all()


@pytest.mark.parametrize("uplo", "LU")
def test_tridiagonal_form(rng, letter, batch, uplo):
    dtype = TYPES[letter]
    a = random(rng, (*batch, 4, 4), dtype)
    a = a + adjoint(a)
    name = "hetrd" if is_complex(dtype) else "sytrd"
    real = real_of(dtype)
    _, d, e, tau, info = call(
        f"lapack_{letter}{name}_ffi",
        [a],
        [
            (a.shape, dtype, 2),
            ((*batch, 4), real, 1),
            ((*batch, 3), real, 1),
            ((*batch, 3), dtype, 1),
            (batch, np.int32, 0),
        ],
        f"uplo = {ord(uplo)} : ui8",
    )
    assert (info == 0).all() and tau.shape == (*batch, 3)
    form = np.zeros(a.shape, real)
    for i in range(4):
        form[..., i, i] = d[..., i]
        if i < 3:
            form[..., i, i + 1] = form[..., i + 1, i] = e[..., i]
    close(np.linalg.eigvalsh(form), np.linalg.eigvalsh(a), dtype, 10)


@pytest.mark.parametrize("side", "LR")
@pytest.mark.parametrize("uplo", "LU")
@pytest.mark.parametrize("trans", "NTC")
@pytest.mark.parametrize("diag", "NU")
def test_triangular_solve(rng, letter, side, uplo, trans, diag):
    dtype = TYPES[letter]
    a = random(rng, (2, 4, 4), dtype) + 4 * np.eye(4, dtype=dtype)
    b = random(rng, (2, 4, 3) if side == "L" else (2, 3, 4), dtype)
    (x,) = call(
        f"lapack_{letter}trsm_ffi",
        [a, b],
        [(b.shape, dtype, 2)],
        f"diag = {ord(diag)} : ui8, side = {ord(side)} : ui8, trans_x = {ord(trans)} : ui8, "
        f"uplo = {ord(uplo)} : ui8",
    )
    used = np.tril(a) if uplo == "L" else np.triu(a)
    if diag == "U":
        used = used - used * np.eye(4, dtype=dtype) + np.eye(4, dtype=dtype)
    used = {"N": used, "T": np.swapaxes(used, -1, -2), "C": adjoint(used)}[trans]
    close(used @ x if side == "L" else x @ used, b, dtype, 100)


@pytest.mark.parametrize("perturbed", [False, True])
def test_tridiagonal_solve(rng, letter, batch, perturbed):
    dtype = TYPES[letter]
    dl, d, du = (random(rng, (*batch, 5), dtype) for _ in range(3))
    b = random(rng, (*batch, 5, 2), dtype)
    vector = ((*batch, 5), dtype, 1)
    if perturbed:
        (x,) = call(
            "tridiagonal_solve_perturbed_ffi",
            [dl, d, du, b],
            [(b.shape, dtype, 2)],
            inner=[1, 1, 1, 2],
        )
    else:
        *_, x, info = call(
            f"lapack_{letter}gtsv_ffi",
            [dl, d, du, b],
            [vector, vector, vector, (b.shape, dtype, 2), (batch, np.int32, 0)],
            inner=[1, 1, 1, 2],
        )
        assert (info == 0).all()
    product = d[..., None] * x
    product[..., 1:, :] += dl[..., 1:, None] * x[..., :-1, :]
    product[..., :-1, :] += du[..., :-1, None] * x[..., 1:, :]
    close(product, b, dtype, 100)


def test_perturbed_pivots_give_the_null_vector():
    # Singular: each row sums to zero.
    n = 6
    d = np.array([1.0, 2, 2, 2, 2, 1])
    off = -np.ones(n)
    (x,) = call(
        "tridiagonal_solve_perturbed_ffi",
        [off, d, off, np.arange(1.0, n + 1)[:, None]],
        [((n, 1), np.float64, 2)],
        inner=[1, 1, 1, 2],
    )
    assert np.isfinite(x).all()
    np.testing.assert_allclose(x / np.linalg.norm(x), np.full((n, 1), n**-0.5), atol=1e-8)


def test_what_is_not_finite_ends(rng, letter):
    dtype = TYPES[letter]
    a = random(rng, (2, 4, 4), dtype)
    a[0, 1, 2] = np.nan
    parts = 1 if is_complex(dtype) else 2
    complex_type = np.result_type(dtype, np.complex64)
    *_, info = call(
        f"lapack_{letter}geev_ffi",
        [a],
        [((2, 4), dtype, 1)] * parts + [(a.shape, complex_type, 2)] * 2 + [((2,), np.int32, 0)],
        "compute_left = 86 : ui8, compute_right = 86 : ui8",
    )
    assert info.tolist() == [-4, 0]
    _, _, *_, info = call(
        f"lapack_{letter}gees_ffi",
        [a],
        [(a.shape, dtype, 2)] * 2 + [((2, 4), dtype, 1)] * parts + [((2,), np.int32, 0)] * 2,
        "mode = 86 : ui8, sort = 78 : ui8",
    )
    assert info[0] != 0 and info[1] == 0


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_singular_values_of_what_is_not_finite(rng, letter, value):
    dtype = TYPES[letter]
    a = random(rng, (2, 4, 3), dtype)
    a[0, 1, 2] = value
    for routine in ("gesdd", "gesvd"):
        _, s, u, vt, info = call(
            f"lapack_{letter}{routine}_ffi",
            [a],
            [
                (a.shape, dtype, 2),
                ((2, 3), real_of(dtype), 1),
                ((2, 4, 3), dtype, 2),
                ((2, 3, 3), dtype, 2),
                ((2,), np.int32, 0),
            ],
            f"mode = {ord('S')} : ui8",
        )
        assert info.tolist() == [-4, 0]
        for part in (s, u, vt):
            assert np.isnan(part[0]).all() and np.isfinite(part[1]).all()


@pytest.mark.parametrize("uplo", "LU")
def test_hermitian_matrices_that_are_not_finite(letter, uplo):
    dtype = TYPES[letter]
    name = "heevd" if is_complex(dtype) else "syevd"
    a = np.zeros((2, 3, 3), dtype) + np.diag([1, 2, 3]).astype(dtype)
    a[0, 2, 0] = a[0, 0, 2] = np.inf
    # What stands in the other triangle does not count.
    a[1, 0, 2] = np.nan if uplo == "L" else 0
    a[1, 2, 0] = np.nan if uplo == "U" else 0
    _, w, info = call(
        f"lapack_{letter}{name}_ffi",
        [a],
        [(a.shape, dtype, 2), ((2, 3), real_of(dtype), 1), ((2,), np.int32, 0)],
        f"mode = {ord('N')} : ui8, uplo = {ord(uplo)} : ui8",
    )
    assert info.tolist() == [-4, 0]
    assert np.isnan(w[0]).all()
    close(w[1], np.array([1, 2, 3], dtype=w.dtype), dtype)


@pytest.mark.parametrize(
    ("attributes", "results", "said"),
    [
        (
            "uplo = 65 : ui8",
            [((4, 4), np.float32, 2), ((), np.int32, 0)],
            "expected attribute 'uplo' to be one of 76 ('L'), 85 ('U'), got 65",
        ),
        (
            "",
            [((4, 4), np.float32, 2), ((), np.int32, 0)],
            "expected an attribute 'uplo'",
        ),
        (
            "uplo = 76 : i32",
            [((4, 4), np.float32, 2), ((), np.int32, 0)],
            "expected attribute 'uplo' to be of type u8, got s32",
        ),
        (
            "uplo = 76 : ui8",
            [((4, 3), np.float32, 2), ((), np.int32, 0)],
            "expected result 0 to have 4 columns, got 3",
        ),
        (
            "uplo = 76 : ui8",
            [((4, 4), np.float64, 2), ((), np.int32, 0)],
            "expected result 0 to be f32[m,n], got f64[4,4]",
        ),
        (
            "uplo = 76 : ui8",
            [((4, 4), np.float32, 2)],
            "expected 2 results, got 1",
        ),
    ],
)
def test_errors(attributes, results, said):
    a = np.eye(4, dtype=np.float32)
    with pytest.raises(RuntimeError) as caught:
        call("lapack_spotrf_ffi", [a], results, attributes)
    assert said in str(caught.value)
    assert "'r'" in str(caught.value) and "lapack_spotrf_ffi" in str(caught.value)


def test_an_unknown_routine_is_an_error_with_near_names():
    with pytest.raises(RuntimeError, match="lapack_spotrf_ffi"):
        call("lapack_spotrg_ffi", [np.eye(2, dtype=np.float32)], [((2, 2), np.float32, 2)])
