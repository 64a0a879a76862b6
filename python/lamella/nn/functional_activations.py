"""Activations of lamella.nn.functional under PyTorch's signatures, with `inplace`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Protocol

import lamella
from lamella import _C, Tensor

__all__ = [
    "celu",
    "elu",
    "gumbel_softmax",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "mish",
    "relu",
    "relu6",
    "rrelu",
    "rrelu_",
    "selu",
    "silu",
    "softmax",
    "softmin",
    "softsign",
    "tanhshrink",
    "threshold",
]

if TYPE_CHECKING:

    class _Activation(Protocol):
        def __call__(self, input: Tensor, inplace: bool = False) -> Tensor: ...


_functions = _C._functions("nn")


def _activation(name: str) -> _Activation:
    """The function (input, inplace=False) of an operator without further arguments."""
    op, op_ = _functions[name], _functions[f"{name}_"]

    def activation(input: Tensor, inplace: bool = False) -> Tensor:
        return op_(input) if inplace else op(input)

    activation.__name__ = activation.__qualname__ = name
    activation.__doc__ = f"See lamella.nn.{_CLASSES[name]}."
    return activation


_CLASSES = {"hardsigmoid": "Hardsigmoid", "hardswish": "Hardswish", "mish": "Mish", "silu": "SiLU"}
_elu, _elu_ = _functions["elu"], _functions["elu_"]
_leaky_relu, _leaky_relu_ = _functions["leaky_relu"], _functions["leaky_relu_"]
_hardtanh, _hardtanh_ = _functions["hardtanh"], _functions["hardtanh_"]

hardsigmoid = _activation("hardsigmoid")
hardswish = _activation("hardswish")
mish = _activation("mish")
silu = _activation("silu")


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return lamella.relu_(input) if inplace else lamella.relu(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha * (exp(x) - 1) below."""
    return (_elu_ if inplace else _elu)(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale * elu(x, alpha), with the constants that keep mean 0 and variance 1."""
    return (lamella.selu_ if inplace else lamella.selu)(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    return (lamella.celu_ if inplace else lamella.celu)(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, negative_slope * x below."""
    return (_leaky_relu_ if inplace else _leaky_relu)(input, negative_slope)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """x, but within [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError(f"hardtanh: expected 'max_val' to be at least {min_val}, got {max_val}")
    return (_hardtanh_ if inplace else _hardtanh)(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return hardtanh(input, 0.0, 6.0, inplace)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x above the threshold, else `value`."""
    return (lamella.threshold_ if inplace else lamella.threshold)(input, threshold, value)


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x))."""
    return _functions["log_sigmoid"](input)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: lamella.dtype | None = None
) -> Tensor:
    """exp(x) over its sum along `dim`."""
    if dim is None:
        dim = _implicit_dim("softmax", input, _stacklevel)
    return lamella.softmax(input, dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: lamella.dtype | None = None
) -> Tensor:
    """The logarithm of softmax."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input, _stacklevel)
    return lamella.log_softmax(input, dim, dtype=dtype)


def _implicit_dim(name: str, input: Tensor, level: int) -> int:
    dim = 0 if input.dim() in (0, 1, 3) else 1
    warnings.warn(f"{name}: 'dim' is not given, so dim={dim} is taken; say it", stacklevel=level)
    return dim


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: lamella.dtype | None = None
) -> Tensor:
    """Softmax of -x."""
    if dim is None:
        dim = _implicit_dim("softmin", input, _stacklevel)
    return softmax(-input, dim, dtype=dtype)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """leaky_relu with slopes that are drawn in training."""
    # In place, a copy keeps the input that backward needs.
    result = lamella.rrelu(input.clone() if inplace else input, lower, upper, training)
    return input.copy_(result) if inplace else result


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """rrelu in place."""
    return rrelu(input, lower, upper, training, True)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A sample of the Gumbel-softmax distribution along `dim`: softmax((logits + g) / tau), where g
    has the Gumbel distribution. With `hard` it is 1 at the largest entry and 0 elsewhere, with the
    gradients of the softmax."""
    noise = -lamella.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    place = soft.argmax(dim, keepdim=True)
    one = lamella.zeros_like(logits).scatter(dim, place, 1.0)
    return one - soft.detach() + soft
