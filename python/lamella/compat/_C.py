"""torch._C, as far as programs reach into it: lamella._C, and a few names of PyTorch's."""

from __future__ import annotations

from typing import Any

from lamella.compat._fallback import names_of
from lamella.compat._torch_function import (
    DisableTorchFunction as DisableTorchFunction,
)
from lamella.compat._torch_function import (
    DisableTorchFunctionSubclass as DisableTorchFunctionSubclass,
)
from lamella.compat._torch_function import (
    _disabled_torch_function_impl as _disabled_torch_function_impl,
)

__getattr__, __dir__ = names_of("_C")


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged."""


def _get_tracing_state() -> None:
    """None: nothing is traced by torch.jit."""


def _is_tracing() -> bool:
    """False."""
    return False


def _infer_size(a: Any, b: Any) -> Any:
    """The shape that two shapes broadcast to."""
    import lamella

    return lamella.broadcast_shapes(a, b)
