"""torch._foreach_*: an operator over each tensor of lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor


def _entries(argument: Any, count: int) -> list[Any]:
    """What an argument is for each tensor: an entry of a list, an element of a tensor of numbers
    is the caller's business, and everything else is the same for all."""
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
    """addcmul and addcdiv take the factor behind the tensors, one for all or one for each."""
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


def _for_numbers(operator: Callable[..., Any], each: Callable[..., Any]) -> Callable[..., Any]:
    """Lamella's operator, which is faster, but for a list of numbers."""

    def over(self: list[Tensor], *args: Any, **kwargs: Any) -> Any:
        last = args[-1] if args else None
        numbers = isinstance(last, (list, tuple)) and last and not isinstance(last[0], Tensor)
        return (each if numbers else operator)(self, *args, **kwargs)

    return over


def _bound(name: str, of_numbers: str) -> Callable[..., Tensor]:
    """maximum and minimum, which take a number for a tensor here."""

    def function(x: Tensor, y: Any) -> Tensor:
        return getattr(lamella, name if isinstance(y, Tensor) else of_numbers)(x, y)

    return function


_BOUNDS = {"maximum": _bound("maximum", "clamp_min"), "minimum": _bound("minimum", "clamp_max")}
_POINTWISE = ("addcmul", "addcdiv")
_PLAIN = (
    "abs acos add asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp expm1 floor frac "
    "lerp lgamma log log10 log1p log2 maximum minimum mul neg pow reciprocal round rsqrt sigmoid "
    "sign sin sinh sqrt sub tan tanh trunc"
).split()
NAMES = [f"_foreach_{name}{end}" for name in (*_PLAIN, *_POINTWISE) for end in ("", "_")]


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    base = name.removeprefix("_foreach_").removesuffix("_")
    function = _BOUNDS.get(base) or getattr(lamella, base)
    made = _pointwise(base) if base in _POINTWISE else _each(function)
    found = _in_place(made) if name.endswith("_") else made
    if hasattr(lamella, name):
        found = _for_numbers(getattr(lamella, name), found)
    globals()[name] = found
    return found
