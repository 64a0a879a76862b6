"""torch.xpu: there is no such device."""

from __future__ import annotations

from typing import Any

from lamella.compat import cuda

__getattr__, __dir__ = cuda._as_for("xpu")


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def manual_seed_all(seed: Any) -> None:
    """Does nothing: there is no generator to seed."""
