"""torch.cuda where there is none."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """False: Lamella's package runs on the CPU."""
    return False


def device_count() -> int:
    """0."""
    return 0


def is_initialized() -> bool:
    """False."""
    return False


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""


def empty_cache() -> None:
    """Nothing to free."""


def manual_seed_all(seed: int) -> None:
    """Nothing to seed."""


def manual_seed(seed: int) -> None:
    """Nothing to seed."""


def current_device() -> int:
    """RuntimeError: there is none."""
    raise RuntimeError("current_device: expected a CUDA device, found none")
