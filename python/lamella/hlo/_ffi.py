"""Registering typed handlers, as capsules of other packages hand them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lamella import _hlo
from lamella.hlo._targets import _address, _place, register_custom_call_target

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

    fn: a capsule of any name that holds an XLA_FFI_Handler*, a function of ctypes or an address; or
        a dictionary of them by stage: "execute", and "instantiate", "prepare", "initialize".
    platform: "cpu" ("Host") or "gpu" ("CUDA").
    api_version: 1; or 0 for a function of the conventions before, as
        register_custom_call_target() takes.
    traits: XLA_FFI_Handler_Traits beside those that the handlers state.
    replace: whether other handlers of that name may be there already.
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

    type_registration: "type_id", a capsule or address of an XLA_FFI_TypeId, and "type_info", if the
        runtime is to delete objects of the type, of an XLA_FFI_TypeInfo. A number of 0 is replaced
        by a new one; any other is kept, so that a library may be registered with several runtimes.
    Returns the number.
    """
    for key in type_registration:
        if key not in ("type_id", "type_info"):
            raise ValueError(f"register_ffi_type: expected 'type_id' and 'type_info', got {key!r}")
    if "type_id" not in type_registration:
        raise ValueError("register_ffi_type: expected 'type_id', got none")
    number: int = _hlo._register_type(
        name,
        _address(type_registration["type_id"]),
        _address(type_registration.get("type_info")),
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
