"""Registration of hooks on all modules, which run before a module's own hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamella.nn.modules import _hooks
from lamella.utils.hooks import RemovableHandle

__all__ = [
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


def _added(kind: str, hook: Any, with_kwargs: bool = False, always: bool = False) -> Any:
    return _hooks.add_everywhere(kind, hook, with_kwargs, always)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """hook(module, args) before each forward(); it may return other arguments."""
    return _added("forward_pre", hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """hook(module, args, output) after each forward(); it may return another output."""
    return _added("forward", hook, with_kwargs, always_call)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """hook(module, grad_output) before each module's backward; it may return other gradients."""
    return _added("backward_pre", hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """hook(module, grad_input, grad_output) after each module's backward; it may return other
    gradients for the inputs."""
    return _added("backward", hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """A deprecated name of register_module_full_backward_hook()."""
    return _added("backward", hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """hook(module, name, parameter) when one is registered; it may return another one."""
    return _added("parameter", hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """hook(module, name, buffer) when one is registered; it may return another one."""
    return _added("buffer", hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """hook(module, name, submodule) when one is registered; it may return another one."""
    return _added("module", hook)
