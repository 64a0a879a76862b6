"""Rows of special functions, which SciPy has and NumPy lacks."""

from __future__ import annotations

from kernel_rows.row import Make, Row, Rows, uniform


def special_rows() -> list[Row]:
    """Bessel functions, and orthogonal polynomials of degree 5."""
    bessel = {
        "bessel_j0": "j0", "bessel_j1": "j1", "bessel_y0": "y0", "bessel_y1": "y1",
        "modified_bessel_i0": "i0", "modified_bessel_i1": "i1", "modified_bessel_k0": "k0",
        "modified_bessel_k1": "k1", "scaled_modified_bessel_k0": "k0e",
        "scaled_modified_bessel_k1": "k1e",
    }  # fmt: skip
    polynomials = {
        "chebyshev_polynomial_t": "chebyt", "chebyshev_polynomial_u": "chebyu",
        "hermite_polynomial_h": "hermite", "hermite_polynomial_he": "hermitenorm",
        "laguerre_polynomial_l": "laguerre", "legendre_polynomial_p": "legendre",
        "shifted_chebyshev_polynomial_t": "sh_chebyt",
    }  # fmt: skip

    def row(name: str, dtype: str, size: int, x: Make, text: str, scipy: str) -> Row:
        return Row(f"{name}, {dtype}", size, {"x": x}, text, scipy, dtypes={"x": dtype})

    out = Rows()
    for dtype in ("float32", "float64"):
        for size in (1_000, 100_000):
            for name, theirs in bessel.items():
                text, scipy = f"m.special.{name}(x)", f"scipy.special.{theirs}(x)"
                x = uniform(0.1, 20, dtype)
                out.add(f"{name}, {dtype}", size, {"x": x}, text, scipy, dtypes={"x": dtype})
            for name, theirs in polynomials.items():
                text, scipy = f"m.special.{name}(x, 5)", f"scipy.special.eval_{theirs}(5, x)"
                x = uniform(-1, 1, dtype)
                out.add(f"{name}, {dtype}", size, {"x": x}, text, scipy, dtypes={"x": dtype})
    return out
