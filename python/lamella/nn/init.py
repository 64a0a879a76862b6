"""Initial values of parameters. Each function fills its tensor in place and returns it."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor, _missing

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d") + tuple(f"conv_transpose{n}d" for n in (1, 2, 3))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which to scale weights so that a layer with this nonlinearity keeps the
    variance."""
    if nonlinearity in _LINEAR or nonlinearity == "sigmoid":
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(
                f"calculate_gain: expected 'param' to be the negative slope, a number, got {param}"
            )
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(
        "calculate_gain: expected 'nonlinearity' to be linear, conv1d, conv2d, conv3d, sigmoid, "
        f"tanh, relu, leaky_relu or selu, got '{nonlinearity}'"
    )


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform in [a, b)."""
    with lamella.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with a mean and a standard deviation."""
    with lamella.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Normal, but within [a, b]: numbers outside are drawn again.

    If less than three tenths of the distribution lie inside, uniform candidates in [a, b] are
    accepted with a probability of their density over the largest density.
    """
    if tensor.is_meta:
        return tensor

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "trunc_normal_: expected 'mean' within two 'std' of ['a', 'b'], got "
            f"{mean}; the distribution of the numbers may be off",
            stacklevel=2,
        )
    with lamella.no_grad():
        if below(b) - below(a) > 0.3:
            # The bounds are rounded to the dtype, so that they count as inside.
            low, high = lamella.tensor([a, b], dtype=tensor.dtype).tolist()
            result = tensor.normal_(mean, std, generator=generator)
            while (outside := (result < low) | (result > high)).any():
                again = lamella.empty_like(result).normal_(mean, std, generator=generator)
                result = lamella.where(outside, again, result)
            return tensor if result is tensor else tensor.copy_(result)
        mode = max(a, min(mean, b))
        log_peak = -0.5 * ((mode - mean) / std) ** 2

        def refused(candidates: Tensor) -> Tensor:
            log_chance = ((candidates - mean) / std).pow(2).mul(-0.5).sub(log_peak)
            return lamella.empty_like(tensor).uniform_(generator=generator).log_() > log_chance

        result = tensor.uniform_(a, b, generator=generator)
        pending = refused(result)
        while pending.any():
            candidates = lamella.empty_like(tensor).uniform_(a, b, generator=generator)
            result = lamella.where(pending, candidates, result)
            pending = pending & refused(candidates)
        return tensor if result is tensor else tensor.copy_(result)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """All `val`."""
    with lamella.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """All 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """All 0."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.dim() != 2:
        raise ValueError(f"eye_: expected 'tensor' to have 2 dimensions, got {tensor.dim()}")
    with lamella.no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Weights [out, in / groups, ...] of a convolution that passes channels through."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError(
            f"dirac_: expected 'tensor' to have 3, 4 or 5 dimensions, got {tensor.dim()}"
        )
    if tensor.size(0) % groups:
        raise ValueError(
            f"dirac_: expected 'groups' to divide {tensor.size(0)}, the size of dimension 0, got "
            f"{groups}"
        )
    per_group = tensor.size(0) // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    with lamella.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.size(1))):
                tensor[(group * per_group + channel, channel, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Inputs of each output and outputs of each input, of weights [out, in, ...]."""
    if tensor.dim() < 2:
        raise ValueError(
            "fan in and fan out: expected 'tensor' to have at least 2 dimensions, got "
            f"{tensor.dim()}"
        )
    field = 1
    for size in tensor.shape[2:]:
        field *= size
    return tensor.size(1) * field, tensor.size(0) * field


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform with variance gain^2 * 2 / (fan_in + fan_out)."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal with variance gain^2 * 2 / (fan_in + fan_out)."""
    return normal_(
        tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator
    )


def _kaiming_std(name: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"{name}: expected 'mode' to be fan_in or fan_out, got '{mode}'")
    fan = _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _is_empty(name: str, tensor: Tensor) -> bool:
    if 0 not in tensor.shape:
        return False
    warnings.warn(f"{name}: there is nothing to fill in {list(tensor.shape)}", stacklevel=3)
    return True


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Uniform with variance gain^2 / fan, which keeps the variance of the signal through ReLUs."""
    if _is_empty("kaiming_uniform_", tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Normal with variance gain^2 / fan."""
    if _is_empty("kaiming_normal_", tensor):
        return tensor
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """gain times a random matrix with orthonormal rows, or columns if there are fewer columns.

    Dimensions after the first count as one.
    """
    if tensor.dim() < 2:
        raise ValueError(
            f"orthogonal_: expected 'tensor' to have at least 2 dimensions, got {tensor.dim()}"
        )
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with lamella.no_grad():
        matrix = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        if rows < columns:
            matrix = matrix.t()
        q, r = lamella.linalg.qr(matrix)
        # The signs of r's diagonal make the distribution uniform over such matrices.
        q = q * r.diagonal().sgn()
        if rows < columns:
            q = q.t()
        return tensor.copy_(q.reshape(tensor.shape)).mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal around 0, with a fraction `sparsity` of each column of a matrix set to 0."""
    if tensor.dim() != 2:
        raise ValueError(f"sparse_: expected 'tensor' to have 2 dimensions, got {tensor.dim()}")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with lamella.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            chosen = lamella.randperm(rows, generator=generator)[:zeros]
            tensor[chosen, column] = 0
    return tensor


def _bias_uniform_(bias: Tensor | None, weight: Tensor) -> None:
    """Fills a layer's initial bias: uniform within +-1 / sqrt(fan_in) of the weight."""
    if bias is not None:
        fan_in = _calculate_fan_in_and_fan_out(weight)[0]
        if fan_in > 0:
            bound = 1 / math.sqrt(fan_in)
            uniform_(bias, -bound, bound)


def _old_name(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(function)
    def old(*args: Any, **kwargs: Any) -> Tensor:
        name = function.__name__
        warnings.warn(
            f"nn.init.{name[:-1]} is the old name of nn.init.{name}", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    return old


# PyTorch's deprecated names, without the underscore of functions that write in place.
uniform, normal, constant = _old_name(uniform_), _old_name(normal_), _old_name(constant_)
eye, dirac, orthogonal = _old_name(eye_), _old_name(dirac_), _old_name(orthogonal_)
xavier_uniform, xavier_normal = _old_name(xavier_uniform_), _old_name(xavier_normal_)
kaiming_uniform, kaiming_normal = _old_name(kaiming_uniform_), _old_name(kaiming_normal_)
sparse = _old_name(sparse_)
_missing.suggest(__name__)
