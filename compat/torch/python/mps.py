"""torch.mps: there is no Apple GPU device."""

from __future__ import annotations

from typing import Any

from lamella.compat import cuda

__getattr__, __dir__ = cuda._as_for("mps")

current_allocated_memory = cuda._refusing("current_allocated_memory")
driver_allocated_memory = cuda._refusing("driver_allocated_memory")
recommended_max_memory = cuda._refusing("recommended_max_memory")


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: Any) -> None:
    """Does nothing: there is no generator to seed."""
