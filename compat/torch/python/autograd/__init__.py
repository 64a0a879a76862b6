"""torch.autograd: lamella.autograd, and deprecated names such as Variable."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella.compat._fallback import names_of

__getattr__, __dir__ = names_of(
    "autograd", lambda name: sys.modules.get("torch") if name == "torch" else None
)


def _profiler_enabled() -> bool:
    """False."""
    return False


class _VariableType(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)


class _Engine:
    """The backward engine, as far as programs use it."""

    @staticmethod
    def queue_callback(function: Callable[[], Any]) -> None:
        """Calls `function` at the end of the backward that is running on this thread."""
        _C._queue_callback(function)


class Variable(metaclass=_VariableType):
    """A tensor: Variable(x) is x with requires_grad as given."""

    _execution_engine = _Engine()

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        if volatile:
            warnings.warn(
                "Variable: 'volatile' was removed and has no effect; use no_grad()", stacklevel=2
            )
        tensor = data if isinstance(data, Tensor) else lamella.as_tensor(data)
        return tensor.detach().requires_grad_(requires_grad) if requires_grad else tensor
