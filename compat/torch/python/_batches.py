"""torch._C._functorch and torch._functorch.vmap: batches in tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella.func.vmap import _RANDOMNESS, _spread
from lamella.func.vmap import _name as _get_name
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


# A library puts functions here whose objects hold tensors with batches, as tensordict's do: what
# takes the arguments apart, puts the batches into them, and takes them out of what is returned.
_process_batched_inputs: Callable[..., Any] | None = None
_create_batched_inputs: Callable[..., Any] | None = None
_unwrap_batched: Callable[..., Any] | None = None


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """lamella.vmap(), by the functions above where there are some."""
    mapped = lamella.vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)
    apart, put, out = _process_batched_inputs, _create_batched_inputs, _unwrap_batched
    if apart is None or put is None or out is None or chunk_size is not None:
        return mapped

    def taken(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, spec = apart(in_dims, args, func)
        level = _C._vmap_enter(size, _RANDOMNESS[randomness])
        try:
            made = func(*put(dims, leaves, level, spec), **kwargs)
            return out(made, out_dims, level, size, func)
        finally:
            _C._vmap_leave(level)

    return taken
