"""torch._logging: Lamella's compiler keeps no logs."""

from __future__ import annotations

from typing import Any


def set_logs(**options: Any) -> None:
    """Nothing is logged."""
