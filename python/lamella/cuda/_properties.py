"""What the devices are: names, capabilities, sizes."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

from lamella.cuda import _library


@dataclasses.dataclass(frozen=True)
class _DeviceProperties:
    """A device's properties, with PyTorch's names."""

    name: str
    total_memory: int
    major: int
    minor: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    is_integrated: int
    is_multi_gpu_board: int


def get_device_properties(device: Any = None) -> _DeviceProperties:
    """The properties of a device, by default the current one."""
    what = "get_device_properties"
    index = _library.device_index(what, device)
    name = ctypes.create_string_buffer(256)
    count = len(dataclasses.fields(_DeviceProperties)) - 1
    values = _library.numbers(what, "properties", count, index, name)
    return _DeviceProperties(name.value.decode("utf-8", "replace"), *values)


def get_device_name(device: Any = None) -> str:
    """The name of a device, by default the current one."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a device, by default the current one: (9, 0)."""
    found = get_device_properties(device)
    return found.major, found.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a device can reach the memory of another."""
    what = "can_device_access_peer"
    can = ctypes.c_int()
    pair = _library.device_index(what, device), _library.device_index(what, peer_device)
    _library.call(what, "can_access_peer", *pair, ctypes.byref(can))
    return bool(can.value)
