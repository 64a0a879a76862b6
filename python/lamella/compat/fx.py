"""torch.fx, of which there is the decorator that libraries put on their functions."""

from __future__ import annotations

from typing import Any


def wrap(fn_or_name: Any) -> Any:
    """The function itself."""
    return fn_or_name


def __getattr__(name: str) -> Any:
    from lamella.compat._absent import missing

    raise missing(f"fx.{name}", ())
