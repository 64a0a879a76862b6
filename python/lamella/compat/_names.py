"""Names of the module torch that Lamella has not, or has with another meaning."""

from __future__ import annotations

import importlib
from typing import Any

# Where each name is: a module of this package and an attribute of it.
NAMES = {
    "save": "serialization:save",
    "load": "serialization:load",
}

# Names whose values change.
CHANGING = frozenset({"default_generator"})


def find(name: str) -> Any:
    """The value of one of NAMES."""
    module, _, attribute = NAMES[name].partition(":")
    return getattr(importlib.import_module(f"lamella.compat.{module}"), attribute or name)
