"""Pooling over windows. Inputs are [N, C, spatial...] or, without a batch, [C, spatial...]."""

from __future__ import annotations

from typing import Any

from lamella import Tensor
from lamella.nn import functional as F
from lamella.nn.modules.module import Module
from lamella.nn.modules.utils import _single

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
]


class _MaxPoolNd(Module):
    """The largest element of each window; with return_indices also its index."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _pool(self, function: Any, input: Tensor) -> Any:
        return function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """Over one dimension."""

    def forward(self, input: Tensor) -> Any:
        """input: [N, C, L]."""
        return self._pool(F.max_pool1d, input)


class MaxPool2d(_MaxPoolNd):
    """Over two dimensions."""

    def forward(self, input: Tensor) -> Any:
        """input: [N, C, H, W]."""
        return self._pool(F.max_pool2d, input)


class MaxPool3d(_MaxPoolNd):
    """Over three dimensions."""

    def forward(self, input: Tensor) -> Any:
        """input: [N, C, D, H, W]."""
        return self._pool(F.max_pool3d, input)


class _AvgPoolNd(Module):
    kernel_size: Any
    stride: Any
    padding: Any

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window over one dimension."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, L]."""
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _AvgPoolImages(_AvgPoolNd):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _pool(self, function: Any, input: Tensor) -> Tensor:
        return function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolImages):
    """The mean of each window over two dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, H, W]."""
        return self._pool(F.avg_pool2d, input)


class AvgPool3d(_AvgPoolImages):
    """The mean of each window over three dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, D, H, W]."""
        return self._pool(F.avg_pool3d, input)


class _AdaptiveAvgPoolNd(Module):
    """The mean of one window of the input for each element of the output."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Over one dimension."""

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, L]."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Over two dimensions; None in output_size keeps a size."""

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, H, W]."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Over three dimensions; None in output_size keeps a size."""

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, C, D, H, W]."""
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPoolNd(Module):
    """The maximum of one window of the input for each element of the output."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Over one dimension."""

    def forward(self, input: Tensor) -> Any:
        """input: [N, C, L]."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Over two dimensions."""

    def forward(self, input: Tensor) -> Any:
        """input: [N, C, H, W]."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Over three dimensions."""

    def forward(self, input: Tensor) -> Any:
        """input: [N, C, D, H, W]."""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
