"""torch.utils: data loading, and what lamella.utils has."""

from __future__ import annotations

from typing import Any

from lamella.compat._fallback import names_of

__getattr__, __dir__ = names_of("utils")


def set_module(obj: Any, module: str) -> None:
    """Says in which module an object is."""
    obj.__module__ = module
