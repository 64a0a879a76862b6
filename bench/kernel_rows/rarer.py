"""Rows of operators that programs call less often: parts of numbers, products and factors of small
matrices, distances of pairs, pooling along lines, samples of images."""

from __future__ import annotations

from typing import Any

from kernel_rows.row import Make, Row, Rows, uniform, whole


def squares(n: int) -> Make:
    """A stack of n x n matrices of about as many elements."""
    return lambda random, size: random.standard_normal((size // (n * n), n, n)).astype("float32")


def columns(n: int) -> Make:
    return lambda random, size: random.standard_normal((size // n, n)).astype("float32")


def numbers(dtype: str) -> Make:
    def make(random: Any, size: int) -> Any:
        return (random.standard_normal(size) + 1j * random.standard_normal(size)).astype(dtype)

    return make


def image(random: Any, size: int) -> Any:
    side = int((size / 4) ** 0.5)
    return random.standard_normal((1, 4, side, side)).astype("float32")


def grid(random: Any, size: int) -> Any:
    side = int((size / 4) ** 0.5)
    return random.uniform(-1, 1, (1, side, side, 2)).astype("float32")


def rows_of_pairs(random: Any, size: int) -> Any:
    """Rows that have about as many pairs."""
    return random.standard_normal((int((2 * size) ** 0.5), 8)).astype("float32")


def rarer_rows() -> list[Row]:
    x, z = {"x": uniform(-2, 2)}, {"x": numbers("complex64")}
    line = {"x": lambda random, size: random.standard_normal((1, 4, size // 4)).astype("float32")}
    parts: list[tuple[str, dict[str, Make], str, str | None]] = [
        ("abs, complex64", z, "m.abs(x)", "np.abs(x)"),
        ("angle, complex64", z, "m.angle(x)", "np.angle(x)"),
        ("round to 2 decimals", x, "m.round(x, decimals=2)", "np.round(x, 2)"),
        ("frexp", x, "m.frexp(x)", "np.frexp(x)"),
        ("ldexp", {**x, "y": whole(-5, 5, "int32")}, "m.ldexp(x, y)", "np.ldexp(x, y)"),
        ("bool to float32", {"x": whole(0, 2, "bool")}, "x.float()", "x.astype('float32')"),
        ("igamma", {"x": uniform(0.1, 3), "y": uniform(0.1, 3)}, "m.igamma(x, y)",
         "scipy.special.gammainc(x, y)"),
        ("cummin", x, "m.cummin(x, 0)", None),
        ("poisson", {"x": uniform(0.1, 3)}, "m.poisson(x)", "G.poisson(x)"),
        ("det of 4x4", {"x": squares(4)}, "m.linalg.det(x)", "np.linalg.det(x)"),
        ("inv of 4x4", {"x": squares(4)}, "m.linalg.inv(x)", "np.linalg.inv(x)"),
        ("kron of 10 columns", {"x": columns(10)}, "m.kron(x[:10], x)", "np.kron(x[:10], x)"),
        ("pdist of 8 columns", {"x": rows_of_pairs}, "F.pdist(x)", None),
        ("max_pool1d", line, "F.max_pool1d(x, 3)", None),
        ("grid_sample", {"x": image, "y": grid}, "F.grid_sample(x, y, align_corners=False)", None),
        ("embedding_bag of 5", {"x": columns(20), "j": whole(0, 50)},
         "F.embedding_bag(j[:x.shape[0] // 5 * 5].view(-1, 5), x[:50])", None),
    ]  # fmt: skip
    out = Rows()
    for size in (1_000, 100_000):
        for name, arrays, text, numpy in parts:
            out.add(name, size, arrays, text, numpy)
    return out
