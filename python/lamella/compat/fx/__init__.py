"""torch.fx, of which there is the decorator that libraries put on their functions, and names."""

from __future__ import annotations

from typing import Any

from lamella.compat import _hollow


def wrap(fn_or_name: Any) -> Any:
    """The function itself."""
    return fn_or_name


def __getattr__(name: str) -> Any:
    return getattr(_hollow.module("fx"), name)
