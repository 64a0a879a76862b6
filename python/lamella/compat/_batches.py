"""torch._C._functorch and torch._functorch.vmap: batches in tensors."""

from __future__ import annotations

from typing import Any

from lamella import _C, Tensor
from lamella.func.vmap import _name as _get_name
from lamella.func.vmap import _spread
from lamella.utils._pytree import tree_flatten as tree_flatten
from lamella.utils._pytree import tree_unflatten as tree_unflatten

__all__ = ["_get_name"]


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a vmap that is running has put a batch into the tensor."""
    return isinstance(tensor, Tensor) and _C._vmap_inspect(tensor) is not None


def maybe_get_level(tensor: Any) -> int:
    """The innermost vmap whose batch is in the tensor, -1 where there is none."""
    fact = _C._vmap_inspect(tensor) if isinstance(tensor, Tensor) else None
    return -1 if fact is None else int(fact[0])


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The tensor with the batch of the innermost vmap as its first dimension."""
    fact = _C._vmap_inspect(tensor)
    return tensor if fact is None else fact[2]


def _add_batch_dim(tensor: Tensor, batch_dim: int, level: int) -> Tensor:
    """The tensor with one dimension taken for the batch of a vmap."""
    made: Tensor = _C._vmap_wrap(tensor, batch_dim, level)
    return made


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """The tensor with the batch of a vmap as a dimension; expanded where it has none."""
    made: Tensor = _C._vmap_unwrap(tensor, level, batch_size, out_dim)
    return made


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """The same, for what a function returned; where out_dim is None there is no batch to remove."""
    if out_dim is None or not isinstance(batched_output, Tensor):
        if maybe_get_level(batched_output) == vmap_level:
            raise ValueError(
                f"vmap({name}): expected no batch where the entry of 'out_dims' is None"
            )
        return batched_output
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def _broadcast_to_and_flatten(tree: Any, treespec: Any) -> list[Any] | None:
    """The leaves of a tree, each as often as the larger tree has leaves in its place."""
    return _spread(tree, treespec)
