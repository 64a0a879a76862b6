"""Registers and removes the targets of custom calls."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lamella import _hlo

_F = TypeVar("_F", bound=Callable[..., Any])


def register_custom_call_target(
    name: str, target: Any, platform: str = "Host", api_version: int = 0, *, replace: bool = False
) -> None:
    """Registers a target of custom calls by its name.

    target: a C function with one of the signatures of lamella/custom_call.h, as a ctypes function,
        a capsule or an address; or a Python function, see custom_call_target().
    platform: "Host" ("cpu") or "CUDA" ("gpu").
    api_version: 0 for these; 1 for a typed handler, as register_ffi_target() takes.
    replace: whether the target may replace another one of that name.
    """
    if api_version == 1:
        register_ffi_target(name, target, platform=platform)
        return
    if api_version != 0:
        raise ValueError(
            f"register_custom_call_target: expected 'api_version' to be 0 or 1, got {api_version}"
        )
    address = _address(target)
    if address is not None:
        _hlo._register_function(name, address, platform, _place(), replace)
    elif callable(target):
        _register_callable(name, target, platform, replace)
    else:
        raise TypeError(
            "register_custom_call_target: expected 'target' to be a capsule, a function or an "
            f"address, got {type(target).__name__}"
        )


def custom_call_target(
    name: str, *, platform: str = "Host", replace: bool = True
) -> Callable[[_F], _F]:
    """Decorates a Python function that becomes the target of custom calls:
    `@lamella.hlo.custom_call_target("name")`.

    The function takes a Tensor, which it owns, for each array of the operands (tuples flattened),
    and returns an array of the result's shape: a Tensor, a NumPy array or a number; for a tuple one
    for each of its arrays. If it has keyword-only parameters of these names, `opaque` (bytes) gets
    the call's opaque text and `shape` (Shape) the shape of its result.
    """

    def register(function: _F) -> _F:
        _register_callable(name, function, platform, replace)
        return function

    return register


def remove_custom_call_target(name: str, platform: str = "Host") -> None:
    """Removes the registrations of a name; LookupError if there are none. Modules that are already
    compiled keep their targets."""
    if not _hlo._remove_target(name, platform):
        raise LookupError(
            f"remove_custom_call_target: expected '{name}' to be registered for {platform}"
        )


def custom_call_targets(platform: str | None = None) -> list[str]:
    """The names of all registered targets, sorted."""
    wanted = None if platform is None else platform.lower()
    alias = {"cpu": "host", "gpu": "cuda"}
    wanted = alias.get(wanted, wanted) if wanted is not None else None
    return sorted(
        {
            entry["name"]
            for entry in _hlo._list_targets()
            if wanted is None or entry["platform"].lower() == wanted
        }
    )


def _address(target: Any) -> int | None:
    if isinstance(target, int) and not isinstance(target, bool):
        return target
    if type(target).__name__ == "PyCapsule":
        get_name = ctypes.pythonapi.PyCapsule_GetName
        get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
        get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
        get_pointer.restype = ctypes.c_void_p
        get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        address: int | None = get_pointer(target, get_name(target))
        return address
    if isinstance(target, (ctypes._CFuncPtr, ctypes.c_void_p)):  # type: ignore[attr-defined]
        return ctypes.cast(target, ctypes.c_void_p).value or 0
    return None


class _Call:
    """The callable that C++ calls with the operands' arrays, the opaque bytes and the result's
    shape."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            parameters = {}  # type: ignore[assignment]
        self._named = [
            name
            for name in ("opaque", "shape")
            if name in parameters and parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        ]

    def __call__(self, arrays: tuple[Any, ...], opaque: bytes, shape: _hlo.Shape) -> Any:
        facts = {"opaque": opaque, "shape": shape}
        return self.function(*arrays, **{name: facts[name] for name in self._named})


def _register_callable(
    name: str, function: Callable[..., Any], platform: str, replace: bool
) -> None:
    if not callable(function):
        raise TypeError(f"custom_call_target: expected a function, got {type(function).__name__}")
    code = getattr(function, "__code__", None)
    where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else _place()
    _hlo._register_callable(name, _Call(function), platform, where, replace)


def _place() -> str:
    """The file and line of the innermost caller outside of the package."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("lamella."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


# ---- Typed handlers (XLA_FFI_Handler), usually capsules from other packages

_STAGES = ("instantiate", "prepare", "initialize", "execute")


def register_ffi_target(
    name: str,
    fn: Any,
    platform: str = "cpu",
    api_version: int = 1,
    *,
    traits: int = 0,
    replace: bool = False,
) -> None:
    """Registers a typed handler as a target of custom calls, as jax.ffi.register_ffi_target() does.

    fn: a capsule of any name that holds an XLA_FFI_Handler*, a ctypes function or an address; or a
        dictionary of them by stage: "execute", and "instantiate", "prepare", "initialize".
    platform: "cpu" ("Host") or "gpu" ("CUDA").
    api_version: 1; or 0 for an untyped function, as register_custom_call_target() takes.
    traits: XLA_FFI_Handler_Traits in addition to those that the handlers state.
    replace: whether the handlers may replace others of that name.
    """
    if api_version == 0:
        register_custom_call_target(name, fn, platform, 0, replace=replace)
        return
    if api_version != 1:
        raise ValueError(
            f"register_ffi_target: expected 'api_version' to be 0 or 1, got {api_version}"
        )
    stages = dict(fn) if isinstance(fn, Mapping) else {"execute": fn}
    for stage in stages:
        if stage not in _STAGES:
            raise ValueError(
                "register_ffi_target: expected the stages 'instantiate', 'prepare', 'initialize' "
                f"and 'execute', got {stage!r}"
            )
    addresses = [_handler(stages.get(stage), stage) for stage in _STAGES]
    _hlo._register_handlers(name, platform, *addresses, traits, _place(), replace)


def register_ffi_type(name: str, type_registration: Mapping[str, Any]) -> int:
    """Registers a type of states or user data, as jax.ffi.register_ffi_type() does.

    type_registration: "type_id", a capsule or address of an XLA_FFI_TypeId; and "type_info", one of
        an XLA_FFI_TypeInfo, if the runtime is to delete objects of the type. A type id of 0 is
        replaced by a new one; others are kept, so that several runtimes can register one library.
    Returns the type id.
    """
    for key in type_registration:
        if key not in ("type_id", "type_info"):
            raise ValueError(f"register_ffi_type: expected 'type_id' and 'type_info', got {key!r}")
    if "type_id" not in type_registration:
        raise ValueError("register_ffi_type: expected 'type_id', got none")
    number: int = _hlo._register_type(
        name, _address(type_registration["type_id"]), _address(type_registration.get("type_info"))
    )
    return number


def _handler(handler: Any, stage: str) -> int | None:
    if handler is None:
        return None
    address = _address(handler)
    if address is None:
        raise TypeError(
            f"register_ffi_target: expected the handler of {stage!r} to be a capsule, a function "
            f"or an address, got {type(handler).__name__}"
        )
    return address
