"""torch._foreach_*: operators that apply to each tensor of a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor


def _entries(argument: Any, count: int) -> list[Any]:
    """An argument's value for each tensor: the entries of a list, or the same value for all. The
    caller splits a tensor of numbers into its elements."""
    return list(argument) if isinstance(argument, (list, tuple)) else [argument] * count


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    def over(self: list[Tensor], *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        columns = [_entries(argument, len(self)) for argument in args]
        for column in columns:
            if len(column) != len(self):
                raise RuntimeError(
                    f"_foreach_{function.__name__}: expected lists of one length, got {len(self)} "
                    f"and {len(column)}"
                )
        return tuple(function(*row, **kwargs) for row in zip(self, *columns))

    return over


def _pointwise(name: str) -> Callable[..., Any]:
    """addcmul and addcdiv: the factor after the tensors is one number, or one for each tensor."""
    function = getattr(lamella, name)

    def over(
        self: list[Tensor], tensor1: list[Tensor], tensor2: list[Tensor], value: Any = 1
    ) -> tuple[Tensor, ...]:
        values = value.tolist() if isinstance(value, Tensor) else _entries(value, len(self))
        return tuple(
            function(x, a, b, value=factor)
            for x, a, b, factor in zip(self, tensor1, tensor2, values)
        )

    return over


def _in_place(made: Callable[..., Any]) -> Callable[..., None]:
    def write(self: list[Tensor], *args: Any, **kwargs: Any) -> None:
        for tensor, value in zip(self, made(self, *args, **kwargs)):
            tensor.copy_(value)

    return write


def _raised(self: Any, exponent: Any) -> tuple[Tensor, ...]:
    """Powers; base or exponent may be a single number."""
    if isinstance(self, (list, tuple)):
        return _each(lamella.pow)(self, exponent)
    return tuple(lamella.pow(self, each) for each in exponent)


def _bounded(name: str, by_number: str) -> Callable[..., Any]:
    """maximum and minimum; numbers act as bounds."""
    of_two, of_number = getattr(lamella, name), getattr(lamella, by_number)

    def choose(tensor: Tensor, other: Any) -> Tensor:
        return of_two(tensor, other) if isinstance(other, Tensor) else of_number(tensor, other)

    choose.__name__ = name
    return _each(choose)


def _powsum(self: list[Tensor], ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The sum of |element| ** ord of each tensor."""
    return tuple(tensor.abs().pow(ord).sum(dtype=dtype) for tensor in self)


def _natively(name: str, args: tuple[Any, ...]) -> bool:
    """True if Lamella's operator accepts the arguments: lists of tensors, and single numbers."""
    if not args:
        return True
    if isinstance(args[-1], (list, tuple)):
        return all(isinstance(each, Tensor) for each in args[-1]) and name != "_foreach_lerp_"
    if isinstance(args[-1], Tensor):
        return name in ("_foreach_add_", "_foreach_div_", "_foreach_mul_")
    return name not in ("_foreach_maximum_", "_foreach_minimum_", "_foreach_sub_")


def _in_any_form(name: str, general: Callable[..., None]) -> Callable[..., None]:
    native = getattr(lamella, name)

    def over(self: list[Tensor], *args: Any, **kwargs: Any) -> None:
        (native if _natively(name, args) else general)(self, *args, **kwargs)

    return over


_POINTWISE = ("addcmul", "addcdiv")
_PLAIN = (
    "abs acos add asin atan ceil clamp_max clamp_min clone cos cosh div erf erfc exp expm1 floor "
    "frac lerp lgamma log log10 log1p log2 max maximum minimum mul neg pow powsum reciprocal round "
    "rsqrt sigmoid sign sin sinh sqrt sub tan tanh trunc"
).split()
NAMES = [f"_foreach_{name}{end}" for name in (*_PLAIN, *_POINTWISE) for end in ("", "_")]


# Lamella's operators that accept fewer forms of arguments than PyTorch's.
NARROW = [
    f"_foreach_{name}_" for name in "add addcdiv addcmul div lerp maximum minimum mul sub".split()
]


def _made(base: str) -> Callable[..., Any]:
    if base in _POINTWISE:
        return _pointwise(base)
    if base in ("maximum", "minimum"):
        return _bounded(base, "clamp_min" if base == "maximum" else "clamp_max")
    if base in ("pow", "powsum"):
        return _raised if base == "pow" else _powsum
    return _each(getattr(lamella, base))


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = _made(name.removeprefix("_foreach_").removesuffix("_"))
    if name.endswith("_"):
        found = _in_place(found)
    if name in NARROW and hasattr(lamella, name):
        found = _in_any_form(name, found)
    globals()[name] = found
    return found
