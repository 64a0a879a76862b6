"""torch.cpu."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

from lamella.compat.amp import autocast as _autocast


def is_available() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """cpu"""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Does nothing: operators are synchronous."""


def set_device(device: Any) -> None:
    """Does nothing: there is one device."""


def is_initialized() -> bool:
    """True."""
    return True


def current_stream(device: Any = None) -> None:
    """None: the CPU has no streams."""


def stream(stream: Any) -> Any:
    """A context that changes nothing."""
    return contextlib.nullcontext()


class amp:
    """torch.cpu.amp."""

    @staticmethod
    def autocast(enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> Any:
        """autocast("cpu"), with a warning."""
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use "
            "`torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return _autocast("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
