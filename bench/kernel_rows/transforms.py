"""Rows of Fourier transforms."""

from __future__ import annotations

from kernel_rows.row import Make, Row, Rows, normal


def complex_normal(*shape: int, dtype: str = "complex64") -> Make:
    def make(random: object, n: int) -> object:
        real, imaginary = random.standard_normal((2, *shape))  # type: ignore[attr-defined]
        return (real + 1j * imaginary).astype(dtype)

    return make


def transform_rows() -> list[Row]:
    out = Rows()

    def row(name: str, shape: tuple[int, ...], dtype: str) -> None:
        text = "x".join(map(str, shape))
        made = (complex_normal if dtype.startswith("complex") else normal)(*shape, dtype=dtype)
        jax = None if dtype in ("complex128", "float64") else f"jnp.fft.{name}(x)"
        out.add(
            f"{name} {text}, {dtype}",
            0,
            {"x": made},
            f"m.fft.{name}(x)",
            f"np.fft.{name}(x)",
            jax,
            dtypes={"x": dtype},
        )

    for n in (16, 1000, 1009, 1024, 4096, 100_000, 1 << 20):
        row("fft", (n,), "complex64")
    for n in (1024, 10_007, 1 << 20):
        row("fft", (n,), "complex128")
    for n in (1024, 100_000):
        row("rfft", (n,), "float32")
        row("rfft", (n,), "float64")
    for shape in ((64, 1024), (1000, 100), (10_000, 16)):
        row("fft", shape, "complex64")
    row("rfft", (100, 400), "float32")
    row("irfft", (50_001,), "complex64")
    row("fft2", (256, 256), "complex64")
    row("fft2", (512, 512), "complex128")
    row("rfft2", (512, 512), "float32")
    row("fftn", (64, 64, 64), "complex64")
    return out
