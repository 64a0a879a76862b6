"""The caching allocator of CUDA devices: statistics and limits, under PyTorch's names."""

from __future__ import annotations

import ctypes
from typing import Any

from lamella import _C
from lamella.cuda import _library

__all__ = [
    "empty_cache",
    "host_memory_stats",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]

# In the order of StatisticName in lamella/cuda/allocator.h.
_NAMES = (
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)
_KINDS = ("current", "peak", "allocated", "freed")
_POOLS = ("all", "large_pool", "small_pool")
_COUNTS = ("num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free")


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The allocator's counts, such as 'allocated_bytes.all.current'; {} without a device."""
    if _C._device_count("cuda") == 0:
        return {}
    index = _library.device_index("memory_stats", device)
    count = len(_NAMES) * 12 + len(_COUNTS)
    values = iter(_library.numbers("memory_stats", "statistics", count, index))
    found = {
        f"{name}.{pool}.{kind}": next(values)
        for name in _NAMES
        for kind in _KINDS
        for pool in _POOLS
    }
    found.update((name, next(values)) for name in _COUNTS)
    return dict(sorted(found.items()))


def _statistic(name: str) -> Any:
    def read(device: Any = None) -> int:
        return int(memory_stats(device).get(name, 0))

    return read


memory_allocated = _statistic("allocated_bytes.all.current")
memory_allocated.__doc__ = "The bytes of a device's tensors."
max_memory_allocated = _statistic("allocated_bytes.all.peak")
max_memory_allocated.__doc__ = "The most bytes that tensors had since the start or the last reset."
memory_reserved = memory_cached = _statistic("reserved_bytes.all.current")
memory_reserved.__doc__ = "The bytes that were taken from the driver."
max_memory_reserved = max_memory_cached = _statistic("reserved_bytes.all.peak")
max_memory_reserved.__doc__ = "The most bytes that were taken since the start or the last reset."
for _name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
    globals()[_name].__name__ = globals()[_name].__qualname__ = _name


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begins to measure the peaks anew."""
    what = "reset_peak_memory_stats"
    _library.call(what, "reset", _library.device_index(what, device), 0)


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Begins to count what was allocated and freed anew."""
    what = "reset_accumulated_memory_stats"
    _library.call(what, "reset", _library.device_index(what, device), 1)


def empty_cache() -> None:
    """Gives memory that no tensor uses back to the driver."""
    if _C._has_backend("cuda"):
        _library.call("empty_cache", "empty_cache")


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The free bytes of a device, of all processes, and all its bytes."""
    index = _library.device_index("mem_get_info", device)
    free, total = _library.numbers("mem_get_info", "memory_info", 2, index)
    return free, total


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Lets the allocator take at most this share of a device's memory."""
    what = "set_per_process_memory_fraction"
    index = _library.device_index(what, device)
    _library.call(what, "set_fraction", index, ctypes.c_double(fraction))


def host_memory_stats() -> dict[str, int]:
    """Bytes of pinned memory of the host, in tensors and kept for reuse, and its blocks."""
    used, kept, blocks = _library.numbers("host_memory_stats", "pinned_statistics", 3)
    return {"used_bytes": used, "kept_bytes": kept, "blocks": blocks}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The statistics as a table."""
    stats = memory_stats(device)
    if not stats:
        return ""
    lines = [f"{'':22}{'now':>14}{'peak':>14}{'allocated':>16}{'freed':>16}"]
    for name in _NAMES:
        for pool in _POOLS[: 1 if abbreviated else 3]:
            label = name if pool == "all" else f"  {pool}"
            row = [stats[f"{name}.{pool}.{kind}"] for kind in _KINDS]
            lines.append(f"{label:22}{row[0]:>14}{row[1]:>14}{row[2]:>16}{row[3]:>16}")
    lines += [f"{name:22}{stats[name]:>14}" for name in _COUNTS]
    return "\n".join(lines)
