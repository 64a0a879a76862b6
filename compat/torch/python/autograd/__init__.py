"""torch.autograd: lamella.autograd, and the names of before tensors had gradients themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella.compat._fallback import names_of

__getattr__, __dir__ = names_of("autograd")


def _profiler_enabled() -> bool:
    """False: what profiles knows it itself."""
    return False


class _VariableType(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)


class _Engine:
    """What runs backward, as far as programs reach for it."""

    @staticmethod
    def queue_callback(function: Callable[[], Any]) -> None:
        """Calls `function` when the backward that runs on this thread has ended."""
        _C._queue_callback(function)


class Variable(metaclass=_VariableType):
    """A tensor: Variable(x) is x with requires_grad as given."""

    _execution_engine = _Engine()

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        tensor = data if isinstance(data, Tensor) else lamella.as_tensor(data)
        return tensor.detach().requires_grad_(requires_grad) if requires_grad else tensor
