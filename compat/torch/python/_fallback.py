"""Modules of this package that extend the module of the same name in Lamella."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

from lamella.compat._absent import missing


def names_of(
    tail: str, extra: Callable[[str], Any] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """__getattr__ and __dir__ for lamella.compat.`tail`: submodules, then the names of
    lamella.`tail`.

    extra: returns the value of a further name, or None. A function of lamella.`tail` takes
    precedence over a submodule of the same name, as in PyTorch's packages.
    """
    own = f"lamella.compat.{tail}"

    def find(name: str) -> Any:
        import lamella.compat

        beside = lamella.compat.lamella_module(tail)
        named = getattr(beside, name, None)
        found = None
        if not name.startswith("__") and not isinstance(named, FunctionType):
            found = lamella.compat.find_module(f"{tail}.{name}")
        if found is not None:
            return importlib.import_module(found)
        value = extra(name) if extra is not None else None
        if value is not None:
            return value
        if hasattr(beside, name):
            return getattr(beside, name)
        raise missing(f"{tail}.{name}", names())

    def names() -> list[str]:
        import lamella.compat

        here = vars(importlib.import_module(own))
        return sorted(set(here) | set(dir(lamella.compat.lamella_module(tail))))

    return find, names
