"""Dropout of lamella.nn.functional. A probability outside of [0, 1] is a ValueError."""

from __future__ import annotations

import warnings
from typing import Any

import lamella
from lamella import Tensor

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]


def _dropped(name: str, kind: str, input: Tensor, p: float, training: bool, inplace: bool) -> Any:
    """The operator `kind`, in place or not, for the function `name`."""
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: expected 'p' to be in [0, 1], got {p}")
    operator = getattr(lamella, f"{kind}_" if inplace else kind)
    return operator(input, p, training)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets elements to zero with probability `p` and scales the others, in training."""
    return _dropped("dropout", "dropout", input, p, training, inplace)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps the mean and variance of SELU's outputs."""
    return _dropped("alpha_dropout", "alpha_dropout", input, p, training, inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """alpha_dropout of whole channels."""
    return _dropped("feature_alpha_dropout", "feature_alpha_dropout", input, p, training, inplace)


def _channels(
    name: str, dims: int, input: Tensor, p: float, training: bool, inplace: bool
) -> Tensor:
    """Dropout of channels that have `dims` dimensions, for a batch or one sample."""
    if input.dim() != dims + 1:
        return _dropped(name, "feature_dropout", input, p, training, inplace)
    result: Tensor = _dropped(
        name, "feature_dropout", input.unsqueeze(0), p, training, inplace
    ).squeeze(0)
    return input if inplace else result


def _warn(name: str, dims: tuple[int, int], input: Tensor) -> None:
    if input.dim() not in dims:
        warnings.warn(
            f"{name}: expected 'input' to have {dims[0]} or {dims[1]} dimensions, got "
            f"{input.dim()}; channels are the second",
            stacklevel=3,
        )


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Sets whole channels of [N, C, L] or [C, L] to zero with probability `p` and scales the
    others, in training."""
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: expected 'input' to have 2 or 3 dimensions, got {input.dim()}"
        )
    return _channels("dropout1d", 1, input, p, training, inplace)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Sets whole channels of [N, C, H, W] to zero with probability `p` and scales the others, in
    training. Three dimensions are a batch of [N, C, L]."""
    _warn("dropout2d", (3, 4), input)
    return _dropped("dropout2d", "feature_dropout", input, p, training, inplace)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Sets whole channels of [N, C, D, H, W] or [C, D, H, W] to zero with probability `p` and
    scales the others, in training."""
    _warn("dropout3d", (4, 5), input)
    return _channels("dropout3d", 3, input, p, training, inplace)
