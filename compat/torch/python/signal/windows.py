"""torch.signal.windows: windows of M samples. With sym=False they are periodic: a symmetric window
of M + 1 samples without its last one. The formulas are those of SciPy's documentation."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import lamella
from lamella import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _window(formula: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Evaluates a window's formula, a function of the positions 0, 1, … and of the last
    position."""

    @functools.wraps(formula)
    def window(
        M: int,
        *args: Any,
        sym: bool = True,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> Tensor:
        name = formula.__name__
        dtype = lamella.get_default_dtype() if dtype is None else dtype
        if M < 0:
            raise ValueError(f"{name}: expected 'M' not to be negative, got {M}")
        if layout not in (None, lamella.strided):
            raise ValueError(f"{name}: expected 'layout' to be strided, got {layout}")
        if dtype not in (lamella.float32, lamella.float64):
            raise ValueError(f"{name}: expected 'dtype' to be float32 or float64, got {dtype}")
        places = lamella.arange(M, dtype=lamella.float64)
        last = M - 1 if sym else M
        made = formula(places, last, *args, **options)
        if M == 1:
            made = lamella.ones(1)
        return made.to(dtype=dtype, device=device).requires_grad_(requires_grad)

    return window


def _sum_of_cosines(k: Tensor, last: int, a: Iterable[float]) -> Tensor:
    """a0 - a1 cos(t) + a2 cos(2t) - … over one period."""
    turn = k * (2 * math.pi / max(last, 1))
    terms = [(-1) ** i * weight * (turn * i).cos() for i, weight in enumerate(a)]
    return lamella.stack(terms).sum(0) if terms else lamella.zeros_like(k)


@_window
def general_cosine(k: Tensor, last: int, *, a: Iterable[float]) -> Tensor:
    """A sum of cosines with the weights `a` and alternating signs."""
    weights = list(a) if isinstance(a, Iterable) else None
    if not weights:
        raise ValueError(f"general_cosine: expected 'a' to have weights, got {a!r}")
    return _sum_of_cosines(k, last, weights)


@_window
def general_hamming(k: Tensor, last: int, *, alpha: float = 0.54) -> Tensor:
    """alpha - (1 - alpha) cos"""
    return _sum_of_cosines(k, last, [alpha, 1 - alpha])


@_window
def hamming(k: Tensor, last: int) -> Tensor:
    """0.54 - 0.46 cos"""
    return _sum_of_cosines(k, last, [0.54, 0.46])


@_window
def hann(k: Tensor, last: int) -> Tensor:
    """0.5 - 0.5 cos"""
    return _sum_of_cosines(k, last, [0.5, 0.5])


@_window
def blackman(k: Tensor, last: int) -> Tensor:
    """Three cosines."""
    return _sum_of_cosines(k, last, [0.42, 0.5, 0.08])


@_window
def nuttall(k: Tensor, last: int) -> Tensor:
    """Four cosines with the smallest side lobes."""
    return _sum_of_cosines(k, last, [0.3635819, 0.4891775, 0.1365995, 0.0106411])


@_window
def bartlett(k: Tensor, last: int) -> Tensor:
    """A triangle that ends at zero."""
    return 1 - (2 * k / max(last, 1) - 1).abs()


@_window
def cosine(k: Tensor, last: int) -> Tensor:
    """Half a period of a sine."""
    return ((k + 0.5) * (math.pi / max(last + 1, 1))).sin()


@_window
def exponential(k: Tensor, last: int, *, center: float | None = None, tau: float = 1.0) -> Tensor:
    """exp(-|k - center| / tau); a center is only allowed for periodic windows."""
    if tau <= 0:
        raise ValueError(f"exponential: expected 'tau' to be positive, got {tau}")
    if center is not None and last == k.numel() - 1:
        raise ValueError("exponential: expected no 'center' of a symmetric window")
    return (-(k - (last / 2 if center is None else center)).abs() / tau).exp()


@_window
def gaussian(k: Tensor, last: int, *, std: float = 1.0) -> Tensor:
    """A Gaussian of standard deviation `std`."""
    if std <= 0:
        raise ValueError(f"gaussian: expected 'std' to be positive, got {std}")
    return (-(((k - last / 2) / std) ** 2) / 2).exp()


@_window
def kaiser(k: Tensor, last: int, *, beta: float = 12.0) -> Tensor:
    """The Kaiser window, a ratio of Bessel functions with the shape parameter `beta`."""
    if beta < 0:
        raise ValueError(f"kaiser: expected 'beta' not to be negative, got {beta}")
    x = 2 * k / max(last, 1) - 1
    top = lamella.tensor(float(beta), dtype=lamella.float64)
    return lamella.i0(beta * (1 - x * x).clamp_min(0).sqrt()) / lamella.i0(top)
