"""Shape propagation: runs a graph with example inputs and records the shapes of its values."""

from __future__ import annotations

from typing import Any, NamedTuple

import lamella
from lamella import Tensor
from lamella.compat.fx.interpreter import Interpreter
from lamella.compat.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """The properties of a tensor without its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    formats = (lamella.contiguous_format, lamella.channels_last, lamella.channels_last_3d)
    dims = {lamella.channels_last: 4, lamella.channels_last_3d: 5}
    found = None
    for form in formats if include_contiguity else ():
        if result.dim() == dims.get(form, result.dim()) and result.is_contiguous(
            memory_format=form
        ):
            found = form
            break
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), found, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph and sets `meta["tensor_meta"]` of nodes whose values are tensors or nested
    tensors, and `meta["type"]` of all nodes."""

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        if fake_mode is not None:
            raise NotImplementedError(
                "ShapeProp: expected no 'fake_mode', which Lamella has not; give it tensors on the "
                "meta device"
            )

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        tensors = []

        def note(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            tensors.append(value)
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, note)
        if tensors:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """The graph's result for the arguments."""
        return super().run(*args)
