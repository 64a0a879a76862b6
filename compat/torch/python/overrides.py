"""torch.overrides: tests and dispatch for arguments with their own __torch_function__."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from lamella import Tensor
from lamella.compat._modes import BaseTorchFunctionMode as BaseTorchFunctionMode
from lamella.compat._modes import TorchFunctionMode as TorchFunctionMode
from lamella.compat._modes import _stack
from lamella.compat._torch_function import _disabled_torch_function_impl


def enable_reentrant_dispatch() -> Any:
    """A context inside __torch_dispatch__ in which calls meet the modes and subclasses again."""
    from lamella.compat._tools import enable_reentrant_dispatch as context

    return context()


def _get_current_function_mode_stack() -> list[Any]:
    """The modes that are entered on this thread, from the outermost."""
    return list(_stack.modes)


def _get_current_function_mode() -> Any:
    """The innermost mode that is entered on this thread, or None."""
    return _stack.modes[-1] if _stack.modes else None


def get_testing_overrides() -> dict[Any, Callable[..., Any]]:
    """For each function that can be overridden one of any arguments that returns -1."""
    return {
        function: lambda *args, **kwargs: -1
        for functions in get_overridable_functions().values()
        for function in functions
    }


def is_tensor_like(inp: Any) -> bool:
    """True for tensors and objects with a __torch_function__."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def _overrides(value: Any) -> bool:
    kind = type(value)
    own = getattr(kind, "__torch_function__", None)
    return own is not None and kind is not Tensor and own is not _disabled_torch_function_impl


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """True if an argument overrides __torch_function__."""
    return any(_overrides(value) for value in relevant_args)


def has_torch_function_unary(tensor: Any) -> bool:
    """True if the argument overrides __torch_function__."""
    return _overrides(tensor)


def has_torch_function_variadic(*args: Any) -> bool:
    """True if an argument overrides __torch_function__."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """The first result that a __torch_function__ of the arguments returns; subclasses come
    first."""
    kinds: list[type] = []
    for value in relevant_args:
        kind = type(value)
        if not _overrides(value) or kind in kinds:
            continue
        place = next((i for i, other in enumerate(kinds) if issubclass(kind, other)), len(kinds))
        kinds.insert(place, kind)
    for kind in kinds:
        made = kind.__torch_function__(public_api, tuple(kinds), args, kwargs)
        if made is not NotImplemented:
            return made
    raise TypeError(
        f"{getattr(public_api, '__name__', public_api)}: no type has an answer: "
        + ", ".join(kind.__name__ for kind in kinds)
    )


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """True if the function is a member of Tensor."""
    return any(member is func for member in vars(Tensor).values()) or (
        getattr(func, "__name__", None) == "__get__"
    )


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results are not converted to subclasses: attributes of the base class."""
    return set()


def get_ignored_functions() -> set[Any]:
    """Functions that ignore __torch_function__: those without tensor arguments."""
    import torch

    names = "tensor zeros ones empty full eye arange linspace logspace rand randn randint randperm"
    return {getattr(torch, name) for name in f"{names} as_tensor from_numpy is_tensor".split()}


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Functions that can be overridden, by namespace."""
    import torch

    ignored, found = get_ignored_functions(), {}
    for home in (torch, torch.nn.functional, torch.Tensor, torch.linalg, torch.fft, torch.special):
        names = [name for name in dir(home) if home is torch.Tensor or not name.startswith("_")]
        members = [getattr(home, name) for name in names if hasattr(home, name)]
        found[home] = [
            member
            for member in members
            if callable(member) and not isinstance(member, type) and member not in ignored
        ]
    return found


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The function's name under torch, or None."""
    name, module = getattr(f, "__name__", None), getattr(f, "__module__", None) or "torch"
    return None if name is None else f"{module.replace('lamella', 'torch')}.{name}"


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: the arguments that dispatcher(*args, **kwargs) returns may override the
    function."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def asking(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(asking, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return asking

    return decorate


def redispatch_function(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Calls a function without the __torch_function__ of its arguments; the operators that it calls
    meet it again, unless `func` is one."""
    from lamella.compat._torch_function import DisableTorchFunctionSubclass

    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))
