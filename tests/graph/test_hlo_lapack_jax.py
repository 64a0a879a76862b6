"""Linear algebra as JAX lowers it, run without jaxlib's handlers: results equal JAX's."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from jax_programs import QUICKLY
from lapack_values import close, random, real_of

hlo = pytest.importorskip("lamella.hlo")


def spd(x):
    return x @ x.conj().mT + 3 * x.shape[-1] ** 0.5 * np.eye(x.shape[-1], dtype=x.dtype)


def programs():
    jax = pytest.importorskip("jax")
    jnp, lax = jax.numpy, jax.lax.linalg
    from jax.scipy import linalg as scipy

    def rebuilt_svd(x, full):
        u, s, vt = jnp.linalg.svd(x, full_matrices=full)
        k = s.shape[-1]
        return s, (u[..., :k] * s[..., None, :]) @ vt[..., :k, :]

    def rebuilt_eigh(x):
        w, v = jnp.linalg.eigh(x)
        return w, (v * w[..., None, :]) @ v.conj().mT

    def rebuilt_eig(x):
        w, v = jnp.linalg.eig(x)
        return x @ v - v * w[..., None, :]

    def rebuilt_schur(x):
        t, z = lax.schur(x)
        return z @ t @ z.conj().mT

    def rebuilt_hessenberg(x):
        h, q = scipy.hessenberg(x, calc_q=True)
        return q @ h @ q.conj().mT

    def rebuilt_qr(x):
        q, r = jnp.linalg.qr(x)
        return q @ r, q.conj().mT @ q

    return {
        "cholesky": lambda x: jnp.linalg.cholesky(spd(x)),
        "cholesky of an indefinite matrix": lambda x: jnp.linalg.cholesky(-spd(x)),
        "lu": lambda x: lax.lu(x),
        "solve": lambda x: jnp.linalg.solve(x, x[..., :2]),
        "inv": jnp.linalg.inv,
        "det": jnp.linalg.det,
        "slogdet": jnp.linalg.slogdet,
        "qr": rebuilt_qr,
        "svd": lambda x: rebuilt_svd(x, False),
        "full svd": lambda x: rebuilt_svd(x, True),
        "singular values": jnp.linalg.svdvals,
        "eigh": lambda x: rebuilt_eigh(x + x.conj().mT),
        "eigvalsh": lambda x: jnp.linalg.eigvalsh(x + x.conj().mT),
        "eig": rebuilt_eig,
        "schur": rebuilt_schur,
        "hessenberg": rebuilt_hessenberg,
        "pinv": jnp.linalg.pinv,
        "lstsq": jnp.vectorize(
            lambda x: jnp.linalg.lstsq(x, x[:, :2])[0], signature="(n,n)->(n,k)"
        ),
        "expm": lambda x: jnp.vectorize(scipy.expm, signature="(n,n)->(n,n)")(x),
        "tridiagonal solve": lambda x: lax.tridiagonal_solve(
            x[..., 0, :], x[..., 1, :] + 5, x[..., 2, :], x
        ),
        "householder product": lambda x: lax.householder_product(x, x[..., 0, :2]),
        "gradient of logdet": lambda x: jax.grad(
            lambda y: jnp.linalg.slogdet(spd(y))[1].real.sum()
        )(x),
    }


NAMES_OF_PROGRAMS = [
    "cholesky",
    "cholesky of an indefinite matrix",
    "lu",
    "solve",
    "inv",
    "det",
    "slogdet",
    "qr",
    "svd",
    "full svd",
    "singular values",
    "eigh",
    "eigvalsh",
    "eig",
    "schur",
    "hessenberg",
    "pinv",
    "lstsq",
    "expm",
    "tridiagonal solve",
    "householder product",
    "gradient of logdet",
]


@pytest.mark.parametrize("name", NAMES_OF_PROGRAMS)
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [(np.float32, (4, 4)), (np.complex128, (2, 3, 3))],
    ids=["float32", "complex128"],
)
def test_programs_are_equal_to_jax(name, dtype, shape):
    jax = pytest.importorskip("jax")
    x = random(np.random.default_rng(3), shape, dtype)
    wide = real_of(dtype) == np.float64
    with jax.enable_x64(True) if wide else contextlib.nullcontext():
        lowered = jax.jit(programs()[name]).lower(x)
        results = lowered.compile(compiler_options=QUICKLY)(x)
        want = [np.asarray(one) for one in jax.tree.leaves(results)]
        text = lowered.as_text("hlo")
    got = [np.asarray(one.numpy()) for one in hlo.evaluate(text, x)]
    assert len(got) == len(want)
    for mine, theirs in zip(got, want):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        if theirs.dtype.kind in "iub":
            np.testing.assert_array_equal(mine, theirs)
        else:
            close(mine, theirs, theirs.dtype, 10)
