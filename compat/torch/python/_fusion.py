"""Folds batch normalization into the weights of the layer before it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

import lamella
from lamella import Tensor
from lamella.nn.parameter import Parameter


def _fused(
    weight: Tensor, bias: Any, mean: Any, var: Any, eps: float, scale: Any, shift: Any, shape: Any
) -> tuple[Parameter, Parameter]:
    bias = lamella.zeros_like(mean) if bias is None else bias
    factor = lamella.rsqrt(var + eps)
    scale = lamella.ones_like(mean) if scale is None else scale
    shift = lamella.zeros_like(mean) if shift is None else shift
    with lamella.no_grad():
        made = weight * (scale * factor).reshape(shape)
        moved = (bias - mean) * factor * scale + shift
    return (
        Parameter(made.to(weight.dtype), weight.requires_grad),
        Parameter(moved.to(bias.dtype), bias.requires_grad),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the convolution that also does the normalization after it."""
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the linear layer that also does the normalization after it."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _checked(name: str, layer: Any, bn: Any) -> Any:
    if layer.training or bn.training:
        raise AssertionError(f"{name}: expected modules in eval()")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError(f"{name}: expected 'bn' to have running statistics")
    return copy.deepcopy(layer)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution in eval mode that also does the normalization after it."""
    made = _checked("fuse_conv_bn_eval", conv, bn)
    made.weight, made.bias = fuse_conv_bn_weights(
        made.weight,
        made.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    return made


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer in eval mode that also does the normalization after it."""
    made = _checked("fuse_linear_bn_eval", linear, bn)
    made.weight, made.bias = fuse_linear_bn_weights(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return made
