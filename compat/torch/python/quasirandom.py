"""torch.quasirandom: Sobol' points, with SciPy's direction numbers."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor


class SobolEngine:
    """Draws points of a Sobol' sequence in [0, 1)^dimension, scrambled or not.

    The direction numbers are those of Joe and Kuo (2008), for up to 21,201 dimensions; scrambling
    is a random lower triangular matrix of bits and a shift for each dimension (Matousek, 1998).
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                "Supported range of dimensionality for SobolEngine is " f"[1, {self.MAXDIM}]"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = self._directions()
        self.shift = lamella.zeros(dimension, dtype=lamella.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self.num_generated = 0

    def _directions(self) -> Tensor:
        from scipy.stats import qmc  # type: ignore[import-untyped]

        found = qmc.Sobol(self.dimension, scramble=False, bits=self.MAXBIT)._sv
        return lamella.from_numpy(found.astype("int64"))

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = lamella.Generator()
            generator.manual_seed(self.seed)
        bits, count = self.MAXBIT, self.dimension
        powers = 2 ** lamella.arange(bits)
        shifts = lamella.randint(2, (count, bits), generator=generator)
        self.shift = (shifts * powers).sum(1)
        matrices = lamella.randint(2, (count, bits, bits), generator=generator).tril()
        matrices.diagonal(0, -2, -1).fill_(1)
        # Row p of the matrix gives bit p of each number, the highest bit first.
        held = (self.sobolstate.unsqueeze(-1) >> lamella.arange(bits - 1, -1, -1)) & 1
        made = (held.double() @ matrices.double().transpose(1, 2)).long() & 1
        self.sobolstate = (made * powers.flip(0)).sum(-1)

    def _points(self, n: int) -> list[Tensor]:
        """The next n points, as integers."""
        points = []
        for _ in range(n):
            points.append(self.quasi)
            # Points follow the Gray code: each step applies one direction number, that of the
            # lowest zero bit of the index.
            step = self.num_generated
            low = ((step + 1) & ~step).bit_length() - 1
            self.quasi = self.quasi ^ self.sobolstate[:, low]
            self.num_generated += 1
        return points

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next n points, as rows."""
        dtype = lamella.get_default_dtype() if dtype is None else dtype
        points = self._points(n)
        made = lamella.stack(points) if points else self.quasi.new_empty(0, self.dimension)
        made = (made.double() / 2**self.MAXBIT).to(dtype)
        return made if out is None else out.resize_as_(made).copy_(made)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2^m points; the total must be a power of two."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require that the total number of points "
                f"is a power of 2; {self.num_generated} and {n} are {total}"
            )
        return self.draw(n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Restarts the sequence."""
        self.quasi, self.num_generated = self.shift.clone(), 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skips n points."""
        self._points(n)
        return self

    def __repr__(self) -> str:
        texts = [f"dimension={self.dimension}"]
        if self.scramble:
            texts.append("scramble=True")
        if self.seed is not None:
            texts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(texts)})"
