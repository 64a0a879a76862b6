"""__torch_function__: subclasses of Tensor survive operators, and may answer in their place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from lamella import _C, Tensor

_disabled_torch_function_impl = _C._disabled_torch_function_impl


class DisableTorchFunctionSubclass:
    """A context in which no __torch_function__ is asked."""

    def __enter__(self) -> None:
        _C._torch_function_off(1)

    def __exit__(self, *error: Any) -> None:
        _C._torch_function_off(-1)


DisableTorchFunction = DisableTorchFunctionSubclass


def _as(value: Any, cls: type[Tensor]) -> Any:
    """A result as a subclass's; those of tuples and lists too."""
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
    """What Tensor answers: the operator's result, as a tensor of the subclass."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        made = func(*args, **(kwargs or {}))
    return made if cls is Tensor or _dispatches(cls) else _as(made, cls)


def _dispatches(cls: type) -> bool:
    """Whether a subclass has a __torch_dispatch__, whose results then stay what they are."""
    derived = cls.__mro__[: cls.__mro__.index(Tensor)]
    return any("__torch_dispatch__" in vars(kind) for kind in derived)


def install() -> None:
    """Lets operators ask their arguments, from now on."""
    from lamella.nn.parameter import Buffer, Parameter

    _C._add_to_tensor({"__torch_function__": classmethod(_torch_function)})
    for kind in (Parameter, Buffer):  # what is computed with them is a plain tensor
        setattr(kind, "__torch_function__", _disabled_torch_function_impl)  # noqa: B010
    _C._switch_torch_function(True)


def uninstall() -> None:
    """Operators ask nobody any more, unless there are sparse tensors."""
    _C._switch_torch_function("lamella._sparse_tensor" in sys.modules)
