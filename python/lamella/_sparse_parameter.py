"""SparseParameter: a module parameter that is a sparse tensor."""

# mypy: disable-error-code="override"

from __future__ import annotations

from typing import Any

from lamella._sparse_tensor import SparseTensor
from lamella.nn.parameter import Parameter

__all__ = ["SparseParameter"]


class SparseParameter(SparseTensor, Parameter):
    """A parameter that shares the indices and values of a sparse tensor; the values are the leaf.
    """

    def __new__(cls, data: Any, requires_grad: bool = True) -> SparseParameter:
        own = data.detach().requires_grad_(requires_grad)
        made: Any = SparseTensor.__new__(
            cls, own._places, own._stored, own.shape, own._crow, own._coalesced, own.layout
        )
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseParameter:
        if id(self) not in memo:
            memo[id(self)] = SparseParameter(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return SparseParameter, (self.detach(), self.requires_grad)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"Parameter containing:\n{super().__repr__()}"
