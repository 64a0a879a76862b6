"""Renames the device types of backends, and generates the methods with these names."""

from __future__ import annotations

import importlib
from typing import Any

import lamella
from lamella import _C


def rename_privateuse1_backend(backend_name: str) -> None:
    """Renames the device type privateuseone. It can be renamed once; repeating the same name does
    nothing."""
    rename_backend("privateuseone", backend_name)


def rename_backend(device_type: str, backend_name: str) -> None:
    """Renames one of the device types privateuseone and privateuse2 to privateuse16."""
    _C._rename_device_type(device_type, backend_name)


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True,
    for_module: bool = True,
    for_packed_sequence: bool = True,
    for_storage: bool = False,
    unsupported_dtype: object = None,
) -> None:
    """Adds methods named after the device type to Tensor and nn.Module: x.sim(), x.is_sim."""
    generate_methods_for_backend("privateuseone", for_tensor=for_tensor, for_module=for_module)


def generate_methods_for_backend(
    device_type: str, *, for_tensor: bool = True, for_module: bool = True
) -> None:
    """Like generate_methods_for_privateuse1_backend(), for any device type by either name."""
    name = lamella.device(device_type).type

    def device_of(device: Any) -> Any:
        if isinstance(device, int):
            return lamella.device(name, device)
        return lamella.device(name if device is None else device)

    def is_there(self: Any) -> bool:
        return bool(self.device.type == name)

    def move_tensor(
        self: Any, device: Any = None, non_blocking: bool = False, **kwargs: Any
    ) -> Any:
        return self.to(device=device_of(device), non_blocking=non_blocking, **kwargs)

    def move_module(self: Any, device: Any = None) -> Any:
        return self.to(device_of(device))

    move_tensor.__name__ = move_module.__name__ = name
    if for_tensor:
        _C._add_to_tensor({f"is_{name}": property(is_there), name: move_tensor})
    if for_module:
        setattr(importlib.import_module("lamella.nn").Module, name, move_module)
