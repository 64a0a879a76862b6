"""Members of PyTorch's OpOverload that Lamella's operators lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lamella
from lamella import _C, _library
from lamella._dispatch import DispatchKeySet
from lamella.compat import _dispatcher

# A backend that has no kernels of its own, so that composite kernels serve its key.
_EMPTY = "PrivateUse16"

# The libraries of py_impl().
_kept: dict[str, Any] = {}


def _name(op: Any) -> str:
    return str(_library._qualified(op))


def _py_impl(op: Any, key: Any) -> Callable[..., Any]:
    """A decorator that registers a function for a dispatch key, a mode or a subclass of Tensor."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(key, type) and not isinstance(key, str):

            def rule(owner: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
                given = args if isinstance(owner, type) else (owner, *args)
                return function(*given, **(kwargs or {}))

            _C._set_dispatch_rule(op, key, rule)
            return function
        library = _kept.setdefault(op.namespace, _library.Library(op.namespace, "FRAGMENT"))
        library._put(_name(op), function, _dispatcher.key_of(key))
        return function

    return register


def _can_decompose(op: Any) -> bool:
    """Whether the operator is composed of others."""
    return any(key == _EMPTY and way == "math kernel" for key, _, way, _ in _C._dispatch_slots(op))


def _decompose(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls the operators that this one is composed of; NotImplemented where it is not."""
    if not _can_decompose(op):
        return NotImplemented
    return op.redispatch(DispatchKeySet().add(_EMPTY), *args, **kwargs)


def _has_kernel_for_any_dispatch_key(op: Any, keys: Any) -> bool:
    """Whether a kernel is registered for one of the keys of a set."""
    return _dispatcher._dispatch_has_kernel_for_any_dispatch_key(_name(op), keys)


def _resolve_name(library: Any, name: Any) -> str:
    """An operator's name with the library's namespace."""
    text = name if isinstance(name, str) else _name(name)
    return text if "::" in text else f"{library.ns}::{text}"


def _register_fake(
    library: Any, op_name: Any, fn: Callable[..., Any], _stacklevel: int = 1, **options: Any
) -> None:
    """Registers the kernel for `meta` tensors."""
    _library.register_fake(_resolve_name(library, op_name), fn, lib=library)


def _register_torch_dispatch_rule(
    library: Any, op_name: Any, torch_dispatch_class: type, fn: Callable[..., Any]
) -> None:
    """Registers what an operator does under a mode or on instances of a subclass."""
    name = _resolve_name(library, op_name)
    _library.register_torch_dispatch(name, torch_dispatch_class, fn, lib=library)


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any = (),
    schema: str | None = None,
) -> Any:
    """custom_op() for a function that calls Triton's kernels through wrap_triton()."""
    return lamella.library.custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """The kernel as it is: calls in triton_op()'s functions are not traced into."""
    return triton_kernel


def _tags(op: Any) -> list[Any]:
    """The tags, with which PyTorch marks all of its own operators."""
    tags = _own_tags.__get__(op)
    return [*tags, "pt2_compliant_tag"] if op.namespace == "aten" else tags


_own_tags: Any = type(lamella.ops.aten.sin.default).tags


def install() -> None:
    """Adds the members."""
    _C._add_to_operator(
        {
            "tags": property(_tags),
            "py_impl": _py_impl,
            "decompose": _decompose,
            "_can_decompose": _can_decompose,
            "has_kernel_for_any_dispatch_key": _has_kernel_for_any_dispatch_key,
            "__module__": property(lambda op: f"torch._ops.{op.namespace}"),
            "_name": property(_name),
            "_op": property(lambda op: op),
            "_handle": property(lambda op: op),
            "_defined_in_python": property(lambda op: _name(op) in _library._declared),
            "op": property(lambda op: op),
        }
    )
