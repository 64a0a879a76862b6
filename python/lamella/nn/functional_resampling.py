"""Images made smaller without aliases, as interpolate does with `antialias`."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor

__all__ = ["antialiased"]


def _shares(count: int, size: int, step: float, cubic: bool, like: Tensor) -> Tensor:
    """[size, count]: what each of `count` pixels gives to each of `size`, which are `step` apart.

    A pixel is a mean with a triangle as weights, or the cubic curve of R. Keys (Cubic convolution
    interpolation for digital image processing, 1981) with the parameter -0.5, widened by the step.
    """
    wide = max(step, 1.0)
    reach = (2.0 if cubic else 1.0) * wide
    kind: dict[str, Any] = {"dtype": lamella.float64, "device": like.device}
    centre = ((lamella.arange(size, **kind) + 0.5) * step).unsqueeze(1)
    place = lamella.arange(count, **kind)
    x = ((place - centre + 0.5) / wide).abs()
    if cubic:
        near = (1.5 * x - 2.5) * x * x + 1.0
        far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
        weight = lamella.where(x < 1, near, lamella.where(x < 2, far, 0.0))
    else:
        weight = (1.0 - x).clamp_min(0.0)
    first = (centre - reach + 0.5).clamp_min(0).floor()
    last = (centre + reach + 0.5).floor()
    weight = lamella.where((place >= first) & (place < last), weight, 0.0)
    return (weight / weight.sum(1, keepdim=True)).to(like.dtype)


def antialiased(
    input: Tensor,
    sizes: list[int] | None,
    scales: list[float] | None,
    mode: str,
    align_corners: bool,
) -> Tensor:
    """input [N, C, H, W] of the given sizes, or scaled; mode: bilinear or bicubic."""
    if mode not in ("bilinear", "bicubic") or input.dim() != 4:
        raise ValueError(
            "interpolate: expected mode 'bilinear' or 'bicubic' and 4 dimensions with 'antialias', "
            f"got {mode!r} and {input.dim()}"
        )
    result = input
    for d in (3, 2):
        count = input.size(d)
        size = int(count * scales[d - 2]) if sizes is None and scales else (sizes or [])[d - 2]
        if size <= 0:
            raise ValueError(f"interpolate: expected sizes of at least 1, got {size}")
        if align_corners:
            step = (count - 1) / (size - 1) if size > 1 else 0.0
        else:
            step = 1 / scales[d - 2] if scales else count / size
        shares = _shares(count, size, step, mode == "bicubic", input)
        result = result @ shares.t() if d == 3 else shares @ result
    return result
