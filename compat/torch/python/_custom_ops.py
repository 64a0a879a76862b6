"""torch._custom_ops: the functions that define and extend operators made of Python functions, as
they were before torch.library.custom_op."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from lamella.compat._custom_op_impl import _find_custom_op, define, parse_qualname
from lamella.library import get_ctx, infer_schema

__all__ = [
    "custom_op",
    "get_ctx",
    "impl",
    "impl_abstract",
    "impl_backward",
    "impl_save_for_backward",
]


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Defines an operator by a schema such as "(Tensor x) -> Tensor", or by a function's hints.
    Its kernels are registered by impl(). Also a decorator."""
    _, name = parse_qualname(qualname)
    if isinstance(func_or_schema, str):
        define(qualname, func_or_schema, ("needs_fixed_stride_order",))
        return lambda function: function

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        if not inspect.isfunction(function):
            raise ValueError(f"custom_op: expected a function, got {type(function).__name__}")
        if function.__name__ != name:
            raise ValueError(
                f"custom_op: expected the function to have name '{name}', got "
                f"'{function.__name__}'"
            )
        define(qualname, infer_schema(function, mutates_args=()), ("needs_fixed_stride_order",))
        return function

    return make if func_or_schema is None else make(func_or_schema)


def _extend(
    qualname: str, member: str, func: Callable[..., Any] | None, *options: Any
) -> Callable[..., Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        found = _find_custom_op(qualname, also_check_torch_library=True)
        getattr(found, member)(*options)(function)
        return function

    return register if func is None else register(func)


def impl(
    qualname: str,
    *,
    device_types: str | Iterable[str] = ("cpu", "cuda"),
    func: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Registers the kernel for device types. Also a decorator."""
    return _extend(qualname, "impl", func, device_types)


def impl_abstract(qualname: str, *, func: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Registers the kernel for `meta` tensors. Also a decorator."""
    return _extend(qualname, "impl_abstract", func)


def impl_save_for_backward(
    qualname: str, *, func: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Registers the function of (inputs, output) whose result the backward is given. Also a
    decorator."""
    return _extend(qualname, "impl_save_for_backward", func)


def impl_backward(
    qualname: str,
    output_differentiability: Any = None,
    *,
    func: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Registers the function of (ctx, saved, *grads) that returns a dict of gradients. Also a
    decorator."""
    return _extend(qualname, "impl_backward", func, output_differentiability)


def _destroy(qualname: str) -> None:
    """Undoes what defined and extended the operator."""
    _find_custom_op(qualname)._destroy()
