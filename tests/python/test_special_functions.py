"""Operators of liblamella_more.so in cases that op_db does not cover: special functions against
mpmath, and values, errors and gradients where PyTorch has few samples."""

import numpy as np
import pytest
import torch
from mpmath import mp, mpf
from operator_cases import lamella

mp.dps = 40

# Function, its reference, where it is held, ULP of float64 allowed (of what is near where it is 0:
# the largest value there).
FUNCTIONS = [
    ("bessel_j0", lambda x: mp.besselj(0, x), -60, 60, 8),
    ("bessel_j1", lambda x: mp.besselj(1, x), -60, 60, 8),
    ("bessel_y0", lambda x: mp.bessely(0, x), 0.01, 60, 8),
    ("bessel_y1", lambda x: mp.bessely(1, x), 0.1, 60, 8),
    ("modified_bessel_i0", lambda x: mp.besseli(0, x), -20, 20, 8),
    ("modified_bessel_i1", lambda x: mp.besseli(1, x), -20, 20, 8),
    ("modified_bessel_k0", lambda x: mp.besselk(0, x), 0.001, 600, 16),
    ("modified_bessel_k1", lambda x: mp.besselk(1, x), 0.001, 600, 16),
    ("scaled_modified_bessel_k0", lambda x: mp.besselk(0, x) * mp.exp(x), 0.001, 600, 16),
    ("scaled_modified_bessel_k1", lambda x: mp.besselk(1, x) * mp.exp(x), 0.001, 600, 16),
    ("airy_ai", mp.airyai, -14, 40, 16),
    ("spherical_bessel_j0", lambda x: mp.sin(x) / x, -60, 60, 8),
]


def held(found, references, allowed):
    """Each value is within `allowed` ULP, or that much of the largest near a crossing of 0."""
    for at, (value, reference) in enumerate(zip(found, references)):
        near = references[max(at - 8, 0) : at + 9]
        size = float(abs(reference))
        if any((r > 0) != (reference > 0) for r in near):
            size = max(float(abs(r)) for r in near)
        assert abs(mpf(float(value)) - reference) <= allowed * np.spacing(size), (at, value)


@pytest.mark.parametrize("name, reference, low, high, allowed", FUNCTIONS)
def test_special_functions(name, reference, low, high, allowed):
    random = np.random.default_rng(0)
    x = np.sort(
        np.concatenate([random.uniform(low, high, 150), random.uniform(max(low, -2), 2, 50)])
    )
    x = x[x != 0]
    found = getattr(lamella.special, name)(lamella.from_numpy(x)).numpy()
    held(found, [reference(mpf(float(v))) for v in x], allowed)
    single = getattr(lamella.special, name)(lamella.from_numpy(x.astype("float32"))).numpy()
    assert single.dtype == np.float32
    wide = getattr(lamella.special, name)(lamella.from_numpy(x.astype("float32").astype(float)))
    np.testing.assert_allclose(single, wide.numpy().astype("float32"), rtol=3e-7)


SPECIAL_VALUES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-300, 5e-324, 1e300]


@pytest.mark.parametrize("name", [row[0] for row in FUNCTIONS])
def test_special_values(name):
    x = torch.tensor(SPECIAL_VALUES, dtype=torch.float64)
    expected = getattr(torch.special, name)(x).numpy()
    found = getattr(lamella.special, name)(lamella.from_numpy(x.numpy())).numpy()
    # PyTorch loses itself where arguments are huge, and its K at the least number above 0.
    least = 1e-310 if "_k" in name else 0
    keep = [i for i, v in enumerate(SPECIAL_VALUES) if not (v > 1 or v < -1 or 0 < v < least)]
    np.testing.assert_allclose(found[keep], expected[keep], rtol=1e-6, atol=1e-7)
    if least:
        at = SPECIAL_VALUES.index(5e-324)
        wanted = next(f for row, f, *_ in FUNCTIONS if row == name)(mpf(5e-324))
        np.testing.assert_allclose(found[at], float(wanted), rtol=1e-12)


@pytest.mark.parametrize("name, upper", [("igamma", False), ("igammac", True)])
def test_incomplete_gamma(name, upper):
    random = np.random.default_rng(1)
    a = np.concatenate(
        [random.uniform(0.01, 1, 40), random.uniform(1, 20, 60), random.uniform(20, 300, 60)]
    )
    x = np.concatenate(
        [
            random.uniform(0.01, 2, 40),
            random.uniform(0, 30, 60),
            a[100:] * random.uniform(0.8, 1.2, 60),
        ]
    )
    found = getattr(lamella, name)(lamella.from_numpy(a), lamella.from_numpy(x)).numpy()
    for p, q, value in zip(a, x, found):
        p, q = mpf(float(p)), mpf(float(q))
        bounds = (q, mp.inf) if upper else (0, q)
        reference = mp.gammainc(p, *bounds, regularized=True)
        assert abs(mpf(float(value)) - reference) <= 4e-14 * abs(reference), (p, q)


POLYNOMIALS = [
    ("chebyshev_polynomial_t", lambda n, x: mp.chebyt(n, x)),
    ("chebyshev_polynomial_u", lambda n, x: mp.chebyu(n, x)),
    ("hermite_polynomial_h", lambda n, x: mp.hermite(n, x)),
    ("laguerre_polynomial_l", lambda n, x: mp.laguerre(n, 0, x)),
    ("legendre_polynomial_p", lambda n, x: mp.legendre(n, x)),
    ("shifted_chebyshev_polynomial_t", lambda n, x: mp.chebyt(n, 2 * x - 1)),
]


@pytest.mark.parametrize("name, reference", POLYNOMIALS)
def test_polynomials(name, reference):
    x = np.linspace(-0.99, 0.99, 23)
    for n in (-1, 0, 1, 2, 5, 12, 30):
        found = getattr(lamella.special, name)(lamella.from_numpy(x), n).numpy()
        expected = np.array([float(reference(n, mpf(v))) if n >= 0 else 0.0 for v in x])
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=1e-13 * max(1, np.abs(expected).max())
        )


def test_windows():
    for name in ("bartlett", "blackman", "hann", "hamming", "kaiser"):
        for length in (0, 1, 2, 7, 8):
            for arguments in ((), (False,)):
                ours = getattr(lamella, f"{name}_window")(length, *arguments, dtype=lamella.float64)
                theirs = getattr(torch, f"{name}_window")(length, *arguments, dtype=torch.float64)
                np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-15)
