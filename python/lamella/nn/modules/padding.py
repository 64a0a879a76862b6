"""Padding of the spatial dimensions of [N, C, spatial...] or, without a batch, [C, spatial...].

padding: one number for all edges, or two for each dimension, the last dimension's first.
"""

from __future__ import annotations

from typing import Any

from lamella import Tensor
from lamella.nn import functional as F
from lamella.nn.modules.module import Module
from lamella.nn.modules.utils import _ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    _dims = 0
    _mode = "constant"
    padding: tuple[int, ...]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, spatial...] or [C, spatial...]."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    """Padding with a constant value."""

    value: float

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, spatial...] or [C, spatial...]."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """One value before and after the last dimension."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """One value around the last two dimensions."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """One value around the last three dimensions."""

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros before and after the last dimension."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Zeros around the last two dimensions."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Zeros around the last three dimensions."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPadNd(_Pad):
    """The input mirrored at its edges, which are not repeated."""

    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Mirrors the last dimension."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Mirrors the last two dimensions."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Mirrors the last three dimensions."""

    _dims = 3


class _ReplicationPadNd(_Pad):
    """The edges of the input, repeated."""

    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Repeats the ends of the last dimension."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Repeats the edges of the last two dimensions."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Repeats the edges of the last three dimensions."""

    _dims = 3


class _CircularPadNd(_Pad):
    """The input wraps around at its edges."""

    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, spatial...] or [C, spatial...]."""
        ranks = (self._dims + 1, self._dims + 2)
        if input.dim() not in ranks:
            raise ValueError(
                f"{self._get_name()}: expected 'input' to have {ranks[0]} or {ranks[1]} "
                f"dimensions, got {input.dim()}"
            )
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Wraps the last dimension around."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Wraps the last two dimensions around."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Wraps the last three dimensions around."""

    _dims = 3
