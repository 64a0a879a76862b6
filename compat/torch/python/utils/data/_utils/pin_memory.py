"""torch.utils.data._utils.pin_memory: memory is never pinned, because there is no device."""

from __future__ import annotations

from typing import Any


def pin_memory(data: Any, device: Any = None) -> Any:
    """Returns the data unchanged."""
    return data
