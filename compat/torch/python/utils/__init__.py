"""torch.utils: this package's data loading, and lamella.utils."""

from __future__ import annotations

from typing import Any

from lamella.compat._fallback import names_of

__getattr__, __dir__ = names_of("utils")


def set_module(obj: Any, module: str) -> None:
    """Sets the __module__ of an object."""
    obj.__module__ = module
