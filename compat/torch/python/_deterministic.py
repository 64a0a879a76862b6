"""What use_deterministic_algorithms() does besides choosing kernels: new memory is filled, and
operators are refused whose result PyTorch does not determine."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import lamella
from lamella import _C, Tensor

_FACTORIES = ("empty", "empty_like", "empty_permuted", "empty_strided")
_METHODS = ("new_empty", "new_empty_strided")
_UNPOOLING = ("max_unpool1d", "max_unpool2d", "max_unpool3d")

# What was replaced: functions by module and name, methods by name.
_functions: dict[tuple[Any, str], Any] = {}
_methods: dict[str, Any] = {}
_state = {"warns": False}


def _fill(tensor: Tensor) -> None:
    """Fills memory with NaN, the largest integer or True."""
    from lamella.compat.utils import deterministic

    if not deterministic.fill_uninitialized_memory or tensor.numel() == 0 or tensor.is_meta:
        return
    dtype = tensor.dtype
    if dtype.is_floating_point or dtype.is_complex:
        value: Any = float("nan")
    else:
        value = True if dtype == lamella.bool else lamella.iinfo(dtype).max
    tensor.data.fill_(value)  # is not counted as a write to the tensor


def _filling(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(make)
    def filled(*args: Any, **kwargs: Any) -> Tensor:
        made = make(*args, **kwargs)
        _fill(made)
        return made

    return filled


def _resizing(resize: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(resize)
    def resized(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        def count() -> int:
            return self.untyped_storage().nbytes() // self.dtype.itemsize

        before = count()
        made = resize(self, *args, **kwargs)
        if count() > before:
            _fill(self.data.as_strided((count() - before,), (1,), before))
        return made

    return resized


def _refuse(op: str) -> None:
    text = (
        f"{op}: expected use_deterministic_algorithms(False), since {op} does not have a "
        "deterministic implementation"
    )
    if not _state["warns"]:
        raise RuntimeError(text)
    warnings.warn(text, UserWarning, stacklevel=3)


def _refused(op: str, call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def refused(*args: Any, **kwargs: Any) -> Any:
        _refuse(op)
        return call(*args, **kwargs)

    return refused


def _putting(put: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Sums are added in order; of several plain values for one place any may stay."""

    @functools.wraps(put)
    def wrapped(*args: Any, **kwargs: Any) -> Tensor:
        if not (kwargs.get("accumulate") or args[3:4] == (True,)):
            _refuse("put_")
        return put(*args, **kwargs)

    return wrapped


def _replace(module: Any, name: str, wrap: Callable[[Any], Any]) -> None:
    _functions[module, name] = getattr(module, name)
    setattr(module, name, wrap(_functions[module, name]))


def set_mode(on: bool, warns: bool) -> None:
    """Replaces the functions and the methods, or puts the replaced ones back."""
    _state["warns"] = warns
    if on == bool(_methods):
        return
    if on:
        for name in _FACTORIES:
            _replace(lamella, name, _filling)
        _replace(lamella, "put", _putting)
        for name in _UNPOOLING:
            _replace(lamella.nn.functional, name, functools.partial(_refused, name))
        wraps: dict[str, Callable[[Any], Any]] = {name: _filling for name in _METHODS}
        wraps.update(resize_=_resizing, put_=_putting, put=_putting)
        _methods.update({name: getattr(Tensor, name) for name in wraps})
        _C._add_to_tensor({name: wrap(_methods[name]) for name, wrap in wraps.items()})
    else:
        for (module, name), former in _functions.items():
            setattr(module, name, former)
        _C._add_to_tensor(dict(_methods))
        _functions.clear()
        _methods.clear()
    kept = vars(sys.modules["torch"]) if "torch" in sys.modules else {}
    for name in (*_FACTORIES, "put"):
        kept.pop(name, None)  # the module keeps what was asked for
