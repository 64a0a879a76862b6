"""torch.onnx, of which there is the question that modules ask."""

from __future__ import annotations

from typing import Any


def is_in_onnx_export() -> bool:
    """False."""
    return False


def register_custom_op_symbolic(*args: Any, **kwargs: Any) -> None:
    """Nothing to register: no program is exported."""


unregister_custom_op_symbolic = register_custom_op_symbolic


def __getattr__(name: str) -> Any:
    from lamella.compat import _hollow

    return getattr(_hollow.module("onnx"), name)
