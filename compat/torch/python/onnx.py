"""torch.onnx: only the functions that modules call."""

from __future__ import annotations

from typing import Any


def is_in_onnx_export() -> bool:
    """False."""
    return False


def register_custom_op_symbolic(*args: Any, **kwargs: Any) -> None:
    """Does nothing: there is no export to ONNX."""


unregister_custom_op_symbolic = register_custom_op_symbolic


def __getattr__(name: str) -> Any:
    from lamella.compat import _hollow

    return getattr(_hollow.module("onnx"), name)
