"""Batching rules written in Python for operators: lamella.library.register_vmap()."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamella.func.vmap import call_rule


def register(library: Any, name: str, rule: Callable[..., Any]) -> None:
    """Registers rule(info, in_dims, *args, **kwargs) -> (outputs, out_dims) in a library."""

    def batched(*args: Any, **kwargs: Any) -> Any:
        return call_rule(name, rule, args, kwargs)

    library._put(name, batched, "Batched")
