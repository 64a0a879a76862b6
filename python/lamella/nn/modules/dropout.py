"""Dropout: in training, zeroes elements or channels with probability p and scales the others."""

from __future__ import annotations

from lamella import Tensor
from lamella.nn import functional as F
from lamella.nn.modules.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"{self._get_name()}: expected 'p' to be from 0 to 1, got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Dropout of single elements."""

    def forward(self, input: Tensor) -> Tensor:
        """input: any shape."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Dropout of whole channels of [N, C, L]."""

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, L] or [C, L]."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Dropout of whole channels of [N, C, H, W]."""

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, H, W]."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Dropout of whole channels of [N, C, D, H, W]."""

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, D, H, W] or without N."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps the mean and variance of SELU's outputs."""

    def forward(self, input: Tensor) -> Tensor:
        """input: any shape."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, ...]."""
        return F.feature_alpha_dropout(input, self.p, self.training)
