"""PyTorch's deprecated module of func.functional_call."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "functional_call":
        # Imported late, as lamella.func imports modules of this package.
        from importlib import import_module

        return import_module("lamella.func").functional_call
    raise AttributeError(f"module 'lamella.nn.utils.stateless' has no attribute '{name}'")
