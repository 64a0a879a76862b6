"""The array API's elementwise functions: each promotes its operands and calls an operator."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import lamella
from lamella import Tensor
from lamella.array_api._dtypes import INTEGRAL, UNSIGNED, common

if TYPE_CHECKING:
    from collections.abc import Callable


def _unary(name: str, call: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def function(x: Tensor, /) -> Tensor:
        return call(x)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "lamella.array_api"
    function.__doc__ = f"{name} of each element."
    return function


def _binary(name: str, call: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        return call(*common(x1, x2))

    function.__name__ = function.__qualname__ = name
    function.__module__ = "lamella.array_api"
    function.__doc__ = f"{name} of each pair of elements; the arrays broadcast."
    return function


def _whole(call: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A rounding function that copies arrays of integers."""
    return lambda x: x.clone() if x.dtype in INTEGRAL else call(x)


def _round(x: Tensor) -> Tensor:
    if x.is_complex():
        return lamella.complex(lamella.round(x.real), lamella.round(x.imag))
    return lamella.round(x)


def _sign(x: Tensor) -> Tensor:
    if x.is_complex():
        size = lamella.abs(x)
        return lamella.where(size == 0, lamella.zeros_like(x), x / size)
    if x.is_floating_point():
        return lamella.where(lamella.isnan(x), x, lamella.sign(x))
    return lamella.sign(x)


def _abs(x: Tensor) -> Tensor:
    return x.clone() if x.dtype in UNSIGNED else lamella.abs(x)


def _real(x: Tensor) -> Tensor:
    return x.real.clone() if x.is_complex() else x.clone()


def _imag(x: Tensor) -> Tensor:
    return x.imag.clone() if x.is_complex() else lamella.zeros_like(x)


def _conj(x: Tensor) -> Tensor:
    return lamella.conj_physical(x) if x.is_complex() else x.clone()


def _expm1(x: Tensor) -> Tensor:
    found = lamella.expm1(x)
    if not x.is_complex():
        return found
    # For infinite and NaN elements C's Annex G follows exp; for 0 a real part of -0 becomes 0.
    powers = lamella.exp(x)
    found = lamella.where(lamella.isfinite(x), found, lamella.complex(powers.real - 1, powers.imag))
    return lamella.where(x == 0, lamella.complex(x.real + 0, x.imag), found)


def _tanh(x: Tensor) -> Tensor:
    found = lamella.tanh(x)
    if not x.is_complex():
        return found
    # At infinity the imaginary part is 0 with the sign of imag(x), not that of sin(2 imag(x)).
    one, zero = lamella.ones_like(x.real), lamella.zeros_like(x.imag)
    limit = lamella.complex(lamella.copysign(one, x.real), lamella.copysign(zero, x.imag))
    return lamella.where(lamella.isinf(x.real) & lamella.isfinite(x.imag), limit, found)


# Implementations of functions for which the operator of the same name differs or does not exist.
_UNARY: dict[str, Any] = {
    "abs": _abs,
    "bitwise_invert": lamella.bitwise_not,
    "ceil": _whole(lamella.ceil),
    "conj": _conj,
    "expm1": _expm1,
    "floor": _whole(lamella.floor),
    "imag": _imag,
    "negative": lamella.neg,
    "positive": lambda x: x.clone(),
    "real": _real,
    "round": _whole(_round),
    "sign": _sign,
    "tanh": _tanh,
    "trunc": _whole(lamella.trunc),
    "square": lambda x: x * x,
}
_BINARY: dict[str, Any] = {
    "divide": lamella.div,
    "equal": lamella.eq,
    "floor_divide": operator.floordiv,
    "greater": lamella.gt,
    "greater_equal": lamella.ge,
    "less": lamella.lt,
    "less_equal": lamella.le,
    "multiply": lamella.mul,
    "not_equal": lamella.ne,
    "subtract": lamella.sub,
}
UNARY = (
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag "
    "isfinite isinf isnan log log10 log1p log2 logical_not negative positive real reciprocal round "
    "sign signbit sin sinh sqrt square tan tanh trunc"
).split()
BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign "
    "divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and "
    "logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract"
).split()
FUNCTIONS = {
    **{name: _unary(name, _UNARY.get(name) or getattr(lamella, name)) for name in UNARY},
    **{name: _binary(name, _BINARY.get(name) or getattr(lamella, name)) for name in BINARY},
}


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Clamps each element to the bounds; the dtype is that of x."""

    def bound(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, Tensor):
            return value.to(x.dtype)
        return lamella.tensor(value, dtype=x.dtype, device=x.device)

    if min is None and max is None:
        return x.clone()
    return lamella.clamp(x, bound(min), bound(max))


def where(condition: Tensor, x1: Any = None, x2: Any = None, /) -> Any:
    """Elements of x1 where the condition is true, elsewhere of x2; alone: where it is true."""
    if x1 is None and x2 is None:
        return lamella.where(condition)
    if isinstance(x1, Tensor) or isinstance(x2, Tensor):
        return lamella.where(condition, *common(x1, x2))
    return lamella.where(condition, x1, x2)
