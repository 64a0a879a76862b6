"""torch.autograd: lamella.autograd, and the names of before tensors had gradients themselves."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.compat._fallback import names_of

__getattr__, __dir__ = names_of("autograd")


def _profiler_enabled() -> bool:
    """False: what profiles knows it itself."""
    return False


class _VariableType(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)


class Variable(metaclass=_VariableType):
    """A tensor: Variable(x) is x with requires_grad as given."""

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        tensor = data if isinstance(data, Tensor) else lamella.as_tensor(data)
        return tensor.detach().requires_grad_(requires_grad) if requires_grad else tensor
