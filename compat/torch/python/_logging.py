"""torch._logging: Lamella's compiler writes no logs."""

from __future__ import annotations

from typing import Any


def set_logs(**options: Any) -> None:
    """Does nothing: there are no logs."""
