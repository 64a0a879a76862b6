"""Activations of lamella.nn.functional under PyTorch's signatures, with `inplace`."""

# Types are for those who call; the bodies are not checked.
# mypy: ignore-errors

import lamella
from lamella import _C

_functions = _C._functions("nn")


def _activation(name):
    """The function (input, inplace=False) of an operator without further arguments."""
    op, op_ = _functions[name], _functions[f"{name}_"]

    def activation(input, inplace=False):
        return op_(input) if inplace else op(input)

    activation.__name__ = activation.__qualname__ = name
    activation.__doc__ = f"See lamella.nn.{_CLASSES[name]}."
    return activation


_CLASSES = {
    "hardsigmoid": "Hardsigmoid",
    "hardswish": "Hardswish",
    "mish": "Mish",
    "silu": "SiLU",
}
_elu, _elu_ = _functions["elu"], _functions["elu_"]
_leaky_relu, _leaky_relu_ = _functions["leaky_relu"], _functions["leaky_relu_"]
_hardtanh, _hardtanh_ = _functions["hardtanh"], _functions["hardtanh_"]

hardsigmoid = _activation("hardsigmoid")
hardswish = _activation("hardswish")
mish = _activation("mish")
silu = _activation("silu")


def elu(input, alpha=1.0, inplace=False):
    """x above 0, alpha * (exp(x) - 1) below."""
    return (_elu_ if inplace else _elu)(input, alpha)


def selu(input, inplace=False):
    """scale * elu(x, alpha), with the constants that keep mean 0 and variance 1."""
    return (lamella.selu_ if inplace else lamella.selu)(input)


def celu(input, alpha=1.0, inplace=False):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    return (lamella.celu_ if inplace else lamella.celu)(input, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x above 0, negative_slope * x below."""
    return (_leaky_relu_ if inplace else _leaky_relu)(input, negative_slope)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x, but within [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError(f"hardtanh: expected 'max_val' to be at least {min_val}, got {max_val}")
    return (_hardtanh_ if inplace else _hardtanh)(input, min_val, max_val)


def relu6(input, inplace=False):
    """min(max(x, 0), 6)."""
    return hardtanh(input, 0.0, 6.0, inplace)


def threshold(input, threshold, value, inplace=False):
    """x above the threshold, else `value`."""
    return (lamella.threshold_ if inplace else lamella.threshold)(input, threshold, value)


def logsigmoid(input):
    """log(sigmoid(x))."""
    return _functions["log_sigmoid"](input)


def softsign(input):
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) over its sum along `dim`."""
    return lamella.softmax(input, _softmax_dim(input, dim), dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of softmax."""
    return lamella.log_softmax(input, _softmax_dim(input, dim), dtype=dtype)


def _softmax_dim(input, dim):
    if dim is not None:
        return dim
    return 0 if input.dim() in (0, 1, 3) else 1


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """Softmax of -x."""
    return softmax(-input, dim, _stacklevel, dtype)


def tanhshrink(input):
    """x - tanh(x)."""
    return input - input.tanh()


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """leaky_relu with slopes that are drawn in training."""
    # What backward needs of the input is kept in a copy where the input is written.
    result = lamella.rrelu(input.clone() if inplace else input, lower, upper, training)
    return input.copy_(result) if inplace else result
