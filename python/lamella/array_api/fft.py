"""The array API's Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lamella
from lamella import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

_ONE_AXIS = "fft ifft rfft irfft hfft ihfft".split()
_MORE_AXES = "fftn ifftn rfftn irfftn".split()
_FREQUENCIES = "fftfreq rfftfreq".split()
_SHIFTS = "fftshift ifftshift".split()

__all__ = _ONE_AXIS + _MORE_AXES + _FREQUENCIES + _SHIFTS


def _operator(name: str) -> Any:
    return getattr(lamella.fft, name)


def _one_axis(name: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Tensor:
        found: Tensor = _operator(name)(x, n, axis, norm)
        return found

    return function


def _more_axes(name: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward"
    ) -> Tensor:
        found: Tensor = _operator(name)(x, s, axes, norm)
        return found

    return function


def _frequencies(name: str) -> Callable[..., Tensor]:
    def function(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
        found: Tensor = _operator(name)(n, d, dtype=dtype, device=device)
        return found

    return function


def _shift(name: str) -> Callable[..., Tensor]:
    def function(x: Tensor, /, *, axes: Any = None) -> Tensor:
        found: Tensor = _operator(name)(x, axes)
        return found

    return function


for _names, _make, _what in (
    (_ONE_AXIS, _one_axis, "The transform along one axis"),
    (_MORE_AXES, _more_axes, "The transform along several axes"),
    (_FREQUENCIES, _frequencies, "The frequencies of a transform's elements"),
    (_SHIFTS, _shift, "Moves the zero frequency to or from the middle of the axes"),
):
    for _name in _names:
        _made = _make(_name)
        _made.__name__ = _made.__qualname__ = _name
        _made.__doc__ = f"{_what}: lamella.fft.{_name}."
        globals()[_name] = _made
