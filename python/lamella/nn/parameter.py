"""Parameter: a tensor that a module counts among its own."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import _C

__all__ = ["Parameter"]


class Parameter(lamella.Tensor):
    """A leaf over the memory of `data`, which becomes a parameter of the module it is assigned to.

    data: of any shape; none gives an empty tensor. requires_grad: whether to record gradients.
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        data = lamella.empty(0) if data is None else data
        parameter: Parameter = _C._make_subclass(cls, data, requires_grad)
        return parameter

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            data = self.detach().clone(memory_format=lamella.preserve_format)
            copy = type(self)(data, self.requires_grad)
            memo[id(self)] = copy
            _copy_attributes(self, copy, memo)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        data = _C._as_subclass(self.detach(), lamella.Tensor)
        return _rebuild, (type(self), data, self.requires_grad, dict(self.__dict__))

    def __repr__(self, **options: Any) -> str:
        plain = _C._as_subclass(self.detach(), lamella.Tensor)
        plain.requires_grad_(self.requires_grad)
        return f"Parameter containing:\n{plain.__repr__(**options)}"


def _copy_attributes(source: Parameter, copy: Parameter, memo: dict[int, Any]) -> None:
    import copy as copies

    if source.__dict__:
        copy.__dict__.update(copies.deepcopy(source.__dict__, memo))


def _rebuild(cls: Any, data: Any, requires_grad: bool, attributes: dict[str, Any]) -> Parameter:
    parameter: Parameter = cls(data, requires_grad)
    parameter.__dict__.update(attributes)
    return parameter
