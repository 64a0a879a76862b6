"""__torch_function__: operators preserve subclasses of Tensor, which may also override
operators."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from lamella import _C, Tensor

_disabled_torch_function_impl = _C._disabled_torch_function_impl


class DisableTorchFunctionSubclass:
    """A context that disables __torch_function__."""

    def __enter__(self) -> None:
        _C._torch_function_off(1)

    def __exit__(self, *error: Any) -> None:
        _C._torch_function_off(-1)


DisableTorchFunction = DisableTorchFunctionSubclass


def _as(value: Any, cls: type[Tensor]) -> Any:
    """Converts a result, or the tensors in a tuple or list, to a subclass."""
    if isinstance(value, Tensor):
        return value if isinstance(value, cls) else value.as_subclass(cls)
    if isinstance(value, (tuple, list)):
        entries = [_as(entry, cls) for entry in value]
        if type(value) in (tuple, list):
            return type(value)(entries)
        return type(value)(entries) if not hasattr(value, "_fields") else type(value)(*entries)
    return value


def _torch_function(
    cls: Any, func: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None
) -> Any:
    """Tensor's default __torch_function__: the operator's result, converted to the subclass."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        made = func(*args, **(kwargs or {}))
    return made if cls is Tensor or _dispatches(cls) else _as(made, cls)


def _dispatches(cls: type) -> bool:
    """True if a subclass has a __torch_dispatch__; its results are then not converted."""
    derived = cls.__mro__[: cls.__mro__.index(Tensor)]
    return any("__torch_dispatch__" in vars(kind) for kind in derived)


def install() -> None:
    """Makes operators call __torch_function__ of their arguments."""
    from lamella.nn.parameter import Buffer, Parameter

    _C._add_to_tensor({"__torch_function__": classmethod(_torch_function)})
    for kind in (Parameter, Buffer):  # results computed with them are plain tensors
        setattr(kind, "__torch_function__", _disabled_torch_function_impl)  # noqa: B010
    _C._switch_torch_function(True)


def uninstall() -> None:
    """Makes operators ignore __torch_function__, unless sparse tensors are in use."""
    _C._switch_torch_function("lamella._sparse_tensor" in sys.modules)
