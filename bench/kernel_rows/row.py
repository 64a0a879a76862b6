"""A row of `make bench kernels`: an expression over arrays, written for each library.

A row's text is the body of a function of its arrays: PyTorch and Lamella share one (`m` is the
module), NumPy and JAX have their own (`np`, `jnp`), or none if they lack the function. SciPy's
functions are used in NumPy's text (`scipy`). JAX compiles its text, with the arrays as arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SIZES = (1_000, 100_000, 10_000_000)
# Two dimensions of about as many elements.
PLANES = {1_000: (25, 40), 100_000: (250, 400), 10_000_000: (2_500, 4_000)}

Make = Callable[[Any, int], Any]  # NumPy's generator and the size -> a NumPy array


@dataclass
class Row:
    name: str
    size: int  # elements; 0 where the name says the shape
    arrays: dict[str, Make]
    text: str
    numpy: str | None = None
    jax: str | None = None
    dtypes: dict[str, str] = field(default_factory=dict)  # array -> dtype, where it is not NumPy's

    @property
    def label(self) -> str:
        return f"{self.name}, 1e{len(str(self.size)) - 1}" if self.size else self.name


class Rows(list[Row]):
    def add(self, *values: Any, **more: Any) -> None:
        """Appends the row of these values."""
        self.append(Row(*values, **more))


def uniform(low: float, high: float, dtype: str = "float32") -> Make:
    return lambda random, n: random.uniform(low, high, n).astype(dtype)


def plane(low: float = -2, high: float = 2, dtype: str = "float32") -> Make:
    return lambda random, n: random.uniform(low, high, PLANES[n]).astype(dtype)


def whole(low: int, high: int, dtype: str = "int64") -> Make:
    return lambda random, n: random.integers(low, high, n).astype(dtype)


def normal(*shape: int, dtype: str = "float32") -> Make:
    return lambda random, n: random.standard_normal(shape).astype(dtype)


def places(shape: tuple[int, ...] | None, below: int, dtype: str = "int64") -> Make:
    """Indices below `below` (0: below the number of elements)."""
    return lambda random, n: random.integers(0, below or n, shape or n).astype(dtype)


SAME = "the same name"


def sized(
    name: str,
    arrays: dict[str, Make],
    text: str,
    numpy: str | None = None,
    jax: str | None = SAME,
    sizes: tuple[int, ...] = SIZES,
    **more: Any,
) -> list[Row]:
    """One row for each size. JAX spells as NumPy does unless it is said otherwise."""
    if jax is SAME:
        jax = None if numpy is None else numpy.replace("np.", "jnp.")
    return [Row(name, n, arrays, text, numpy, jax, **more) for n in sizes]
