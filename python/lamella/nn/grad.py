"""Gradients of convolutions with respect to their input and weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lamella
from lamella import Tensor
from lamella.nn.modules.utils import _ntuple

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def _gradient(
    which: int,
    dims: int,
    input: Tensor,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    each = _ntuple(dims)
    mask = [which == 0, which == 1, False]
    operator: Any = lamella.ops.aten.convolution_backward
    return operator(
        grad_output,
        input,
        weight,
        None,
        list(each(stride)),
        list(each(padding)),
        list(each(dilation)),
        False,
        [0] * dims,
        groups,
        mask,
    )[which]


def _input(dims: int) -> Any:
    def gradient(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        """The gradient of a convolution with respect to its input, which had the size
        `input_size`."""
        input = grad_output.new_empty((1,)).expand(list(input_size))
        return _gradient(0, dims, input, weight, grad_output, stride, padding, dilation, groups)

    gradient.__name__ = gradient.__qualname__ = f"conv{dims}d_input"
    return gradient


def _weight(dims: int) -> Any:
    def gradient(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        """The gradient of a convolution with respect to its weight, which has the size
        `weight_size`."""
        weight = grad_output.new_empty((1,)).expand(list(weight_size))
        return _gradient(1, dims, input, weight, grad_output, stride, padding, dilation, groups)

    gradient.__name__ = gradient.__qualname__ = f"conv{dims}d_weight"
    return gradient


conv1d_input, conv1d_weight = _input(1), _weight(1)
conv2d_input, conv2d_weight = _input(2), _weight(2)
conv3d_input, conv3d_weight = _input(3), _weight(3)
