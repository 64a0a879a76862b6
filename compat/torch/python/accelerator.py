"""torch.accelerator: there is no accelerator."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """False: Lamella's package runs on the CPU."""
    return False


def device_count() -> int:
    """0."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """None."""


def synchronize(device: Any = None) -> None:
    """Does nothing: there is no accelerator."""


def empty_cache() -> None:
    """Does nothing: there is no memory to free."""


def _none(what: str) -> RuntimeError:
    return RuntimeError(f"{what}: expected an accelerator, found none")


def current_device_index() -> int:
    """RuntimeError: there is no accelerator."""
    raise _none("current_device_index")


current_device_idx = current_device_index


def set_device_index(device: Any) -> None:
    """RuntimeError: there is no accelerator."""
    raise _none("set_device_index")


set_device_idx = set_device_index


def current_stream(device: Any = None) -> Any:
    """RuntimeError: there is no accelerator."""
    raise _none("current_stream")


def set_stream(stream: Any) -> None:
    """RuntimeError: there is no accelerator."""
    raise _none("set_stream")


def memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """Does nothing."""
