"""torch._C._functorch, torch._functorch.vmap and .autograd_function: tensors that carry a batch of
vmap."""

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
    """True if a running vmap has added a batch dimension to the tensor."""
    return isinstance(tensor, Tensor) and _C._vmap_inspect(tensor) is not None


def maybe_get_level(tensor: Any) -> int:
    """The level of the innermost vmap that batches the tensor, -1 if there is none."""
    fact = _C._vmap_inspect(tensor) if isinstance(tensor, Tensor) else None
    return -1 if fact is None else int(fact[0])


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The tensor with the innermost vmap's batch as its first dimension."""
    fact = _C._vmap_inspect(tensor)
    return tensor if fact is None else fact[2]


def _add_batch_dim(tensor: Tensor, batch_dim: int, level: int) -> Tensor:
    """Makes one dimension of the tensor the batch of a vmap."""
    made: Tensor = _C._vmap_wrap(tensor, batch_dim, level)
    return made


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """Makes the batch of a vmap a dimension again; expands a tensor without that batch."""
    made: Tensor = _C._vmap_unwrap(tensor, level, batch_size, out_dim)
    return made


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """_remove_batch_dim() for a function's results; without out_dim there is no batch to remove."""
    if out_dim is None or not isinstance(batched_output, Tensor):
        if maybe_get_level(batched_output) == vmap_level:
            raise ValueError(
                f"vmap({name}): expected no batch where the entry of 'out_dims' is None"
            )
        return batched_output
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def _broadcast_to_and_flatten(tree: Any, treespec: Any) -> list[Any] | None:
    """The leaves of a tree, each repeated for every leaf that the larger tree has in its place."""
    return _spread(tree, treespec)


def dlevel(tensor: Any) -> int:
    """The level of the innermost vmap that batches the tensor, -1 if there is none."""
    return maybe_get_level(tensor)


def maybe_get_bdim(tensor: Any) -> int:
    """The batch dimension of a batched tensor, which is always the first, or -1."""
    return 0 if is_batchedtensor(tensor) else -1


_fallback_enabled = True


def _is_vmap_fallback_enabled() -> bool:
    """What _set_vmap_fallback_enabled() was told; operators without a rule are always looped
    over."""
    return _fallback_enabled


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    """Stores the argument."""
    global _fallback_enabled
    _fallback_enabled = enabled


# Hooks for libraries whose objects hold batched tensors, such as tensordict: they flatten the
# arguments, add the batches, and remove them from the results.
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
    """lamella.vmap(), through the hooks above if they are set."""
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


class _WithSaved:
    """A context of backward with other saved tensors; all else is the inner context's."""

    _pt_reserved_attrs = ("_pt_reserved_attrs", "_pt_inner_ctx", "_pt_new_saved_tensors")

    def __init__(self, ctx: Any, new_saved_tensors: Any) -> None:
        for name in self._pt_reserved_attrs:
            if name in getattr(ctx, "__dict__", {}) and not isinstance(ctx, _WithSaved):
                raise RuntimeError(f"ctx: expected no attribute '{name}' (name collision)")
        vars(self).update(_pt_inner_ctx=ctx, _pt_new_saved_tensors=new_saved_tensors)

    @property
    def saved_tensors(self) -> Any:
        """The tensors that replace those of the inner context."""
        return self._pt_new_saved_tensors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pt_inner_ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._pt_inner_ctx, name, value)


CtxWithSavedTensors = _WithSaved


def reductify_leaf(
    grad_input: Tensor | None,
    grad_input_bdim: int | None,
    input_bdim: int | None,
    batch_size: int,
    target_shape_without_bdim_to_reduce_to: Any = None,
) -> Tensor | None:
    """The gradient of an input, with a batch where the input has one, summed where it has none, and
    summed to a shape."""
    if grad_input is None:
        return None
    if grad_input_bdim is not None and input_bdim is None:
        return grad_input.sum(grad_input_bdim)
    assert input_bdim is not None
    if grad_input_bdim is None:
        grad_input = grad_input.unsqueeze(input_bdim)
        shape = list(grad_input.shape)
        shape[input_bdim] = batch_size
        grad_input, grad_input_bdim = grad_input.expand(shape), input_bdim
    if target_shape_without_bdim_to_reduce_to is None:
        return grad_input.movedim(grad_input_bdim, input_bdim)
    sum_to = lambda x: x.sum_to_size(target_shape_without_bdim_to_reduce_to)  # noqa: E731
    made: Tensor = lamella.vmap(sum_to, in_dims=grad_input_bdim, out_dims=input_bdim)(grad_input)
    return made
