"""Convolutions. Inputs are [N, C, spatial...] or, without a batch, [C, spatial...]."""

from __future__ import annotations

import math
from typing import Any

import lamella
from lamella import Tensor
from lamella.nn import functional as F
from lamella.nn import init
from lamella.nn.modules.module import Module
from lamella.nn.parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_FUNCTIONS: dict[int, Any] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def _tuple(value: Any, count: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class _ConvNd(Module):
    """The base of convolutions. Sizes are tuples with a number for each spatial dimension; `_dims`
    is the number of these, or 0 if the class does not fix it."""

    _dims = 0
    weight: Tensor
    bias: Tensor | None
    padding: str | tuple[int, ...]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        transposed: bool,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = self._get_name()
        if groups <= 0:
            raise ValueError(f"{name}: expected 'groups' to be positive, got {groups}")
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{name}: expected 'in_channels' and 'out_channels' to be divisible by "
                f"{groups} groups, got {in_channels} and {out_channels}"
            )
        if not self._dims:
            self._dims = len(kernel_size)
        if isinstance(padding, str):
            if transposed:
                raise ValueError(f"{name}: expected 'padding' to be numbers, got '{padding}'")
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"{name}: expected 'padding' to be numbers, 'same' or 'valid', got '{padding}'"
                )
            if padding == "same" and any(s != 1 for s in _tuple(stride, self._dims)):
                raise ValueError(f"{name}: expected 'stride' to be 1 for padding 'same'")
        modes = ("zeros",) if transposed else _PADDING_MODES
        if padding_mode not in modes:
            raise ValueError(
                f"{name}: expected 'padding_mode' to be {' or '.join(modes)}, got '{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _tuple(kernel_size, self._dims)
        self.stride = _tuple(stride, self._dims)
        self.padding = padding if isinstance(padding, str) else _tuple(padding, self._dims)
        self.dilation = _tuple(dilation, self._dims)
        self.transposed = transposed
        self.output_padding = _tuple(output_padding, self._dims)
        self.groups = groups
        self.padding_mode = padding_mode
        channels = (in_channels, out_channels // groups)
        if not transposed:
            channels = (out_channels, in_channels // groups)
        self.weight = Parameter(
            lamella.empty((*channels, *self.kernel_size), device=device, dtype=dtype)
        )
        if bias:
            self.bias = Parameter(lamella.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        # For F.pad: two numbers for each dimension, the last dimension first. PyTorch's name, which
        # convolutions of other packages read.
        self._reversed_padding_repeated_twice = [
            n for pair in reversed(self._both_sides()) for n in pair
        ]
        self.reset_parameters()

    def _both_sides(self) -> list[tuple[int, int]]:
        if self.padding == "valid":
            return [(0, 0)] * self._dims
        if isinstance(self.padding, str):
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            return [(total // 2, total - total // 2) for total in totals]
        return [(p, p) for p in self.padding]

    def reset_parameters(self) -> None:
        """Draws new values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        init._bias_uniform_(self.bias, self.weight)

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        ]
        zeros, ones = (0,) * self._dims, (1,) * self._dims
        if self.padding != zeros:
            parts.append(f"padding={self.padding}")
        if self.dilation != ones:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != zeros:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Forward(_ConvNd):
    """A convolution."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        shape = (in_channels, out_channels, kernel_size, stride, padding, dilation)
        super().__init__(*shape, False, 0, groups, bias, padding_mode, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """input: [N, in_channels, spatial...] or [in_channels, spatial...]."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution with the given weight and bias; subclasses call it."""
        # Read at each call, as programs set padding after construction.
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            edges = self._reversed_padding_repeated_twice
            input, padding = F.pad(input, edges, self.padding_mode), 0
        function = _FUNCTIONS[self._dims]
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    """The transpose of a convolution, its gradient."""

    padding: tuple[int, ...]

    def _output_padding(
        self,
        input: Tensor,
        output_size: Any,
        stride: Any = None,
        padding: Any = None,
        kernel_size: Any = None,
        num_spatial_dims: int | None = None,
        dilation: Any = None,
    ) -> tuple[int, ...]:
        """The output padding that gives output_size; arguments default to the module's own."""
        if output_size is None:
            return self.output_padding
        stride, padding = stride or self.stride, padding or self.padding
        kernel_size, dilation = kernel_size or self.kernel_size, dilation or self.dilation
        wanted = list(output_size)[-self._dims :]
        extra = []
        for i, size in enumerate(wanted):
            least = (
                (input.size(i - self._dims) - 1) * stride[i]
                - 2 * padding[i]
                + dilation[i] * (kernel_size[i] - 1)
                + 1
            )
            if not least <= size < least + stride[i]:
                raise ValueError(
                    f"{self._get_name()}: expected 'output_size' {i} to be from {least} to "
                    f"{least + stride[i] - 1}, got {size}"
                )
            extra.append(size - least)
        return tuple(extra)


class _Transpose(_ConvTransposeNd):
    """The transpose of a convolution with PyTorch's public arguments."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        shape = (in_channels, out_channels, kernel_size, stride, padding, dilation)
        super().__init__(*shape, True, output_padding, groups, bias, padding_mode, device, dtype)

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """input: [N, in_channels, spatial...]; output_size: one of the possible output sizes."""
        extra = self._output_padding(input, output_size)
        how = (self.stride, self.padding, extra, self.groups, self.dilation)
        convolve = getattr(F, f"conv_transpose{self._dims}d")
        return convolve(input, self.weight, self.bias, *how)


class Conv1d(_Forward):
    """Cross-correlation over one dimension."""

    _dims = 1


class Conv2d(_Forward):
    """Cross-correlation over two dimensions."""

    _dims = 2


class Conv3d(_Forward):
    """Cross-correlation over three dimensions."""

    _dims = 3


class ConvTranspose1d(_Transpose):
    """The transpose of Conv1d."""

    _dims = 1


class ConvTranspose2d(_Transpose):
    """The transpose of Conv2d."""

    _dims = 2


class ConvTranspose3d(_Transpose):
    """The transpose of Conv3d."""

    _dims = 3
