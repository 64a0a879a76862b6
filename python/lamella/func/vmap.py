"""vmap: turns a function of one example into a function of a batch.

Note [What vmap does in Python]
  It enters a level, calls the function with batched tensors instead of its arguments, and unwraps
  the batched tensors that it returns. The batching of operators is in lamella/layers/vmap/vmap.h.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella._vmap_info import VmapInfo
from lamella.utils._pytree import LeafSpec, TreeSpec, tree_flatten, tree_unflatten

__all__ = ["debug_unwrap", "vmap"]

_RANDOMNESS = {"error": 0, "different": 1, "same": 2}


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that applies func to all examples of a batch at once.

    in_dims: the dimension of each positional argument that holds the examples, None for an argument
    that all examples share; one int for all arguments, or a tuple that nests like the arguments.
    Keyword arguments are passed unchanged. out_dims: the dimension of the examples in each output.
    randomness: the effect of drawing random numbers: "error", "different" numbers for each example,
    or the "same". chunk_size: the number of examples in one call, None for all.
    """
    if randomness not in _RANDOMNESS:
        raise RuntimeError(
            'vmap: expected \'randomness\' to be "error", "different" or "same", got '
            f"{randomness!r}"
        )
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size <= 0):
        raise ValueError(f"vmap: expected 'chunk_size' to be None or above 0, got {chunk_size!r}")
    mode = _RANDOMNESS[randomness]
    simple = type(in_dims) is int and type(out_dims) is int and chunk_size is None
    call = _C._vmap_call

    def finish(output: Any, level: int, size: int) -> Any:
        return _take_out(func, output, level, size, out_dims)

    def mapped(*args: Any, **kwargs: Any) -> Any:
        if simple:
            result = call(func, args, kwargs, in_dims, out_dims, mode, finish)
            if result is not NotImplemented:
                return result
        return _map(func, in_dims, out_dims, mode, chunk_size, args, kwargs)

    try:
        return functools.wraps(func)(mapped)
    except (AttributeError, TypeError):
        return mapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor inside a batched tensor, with its batch as the first dimension, for debugging; the
    tensor itself if it is not batched. recurse: unwraps all levels of vmap, not just one."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"debug_unwrap: expected 'tensor' to be a Tensor, got {tensor!r}")
    fact = _C._vmap_inspect(tensor)
    if fact is None:
        return tensor
    return debug_unwrap(fact[2]) if recurse else fact[2]


def _name(func: Any) -> str:
    return getattr(func, "__name__", None) or type(func).__name__


# ---- Arguments


def _spread(prefix: Any, spec: TreeSpec) -> list[Any] | None:
    """The entry of `prefix` for each leaf of a tree; None if its structure does not fit."""
    if spec.is_leaf() or not isinstance(prefix, (tuple, list, dict)):
        plain = not isinstance(prefix, (tuple, list, dict))
        return [prefix] * spec.num_leaves if plain else None
    leaves, outer = tree_flatten(prefix, is_leaf=lambda tree: tree is not prefix)
    if (
        outer.type is not spec.type
        or outer.context != spec.context
        or len(leaves) != len(spec.children_specs)
    ):
        return None
    found: list[Any] = []
    for leaf, child in zip(leaves, spec.children_specs):
        rest = _spread(leaf, child)
        if rest is None:
            return None
        found += rest
    return found


def _read_arguments(
    func: Any, in_dims: Any, args: tuple[Any, ...]
) -> tuple[list[Any], list[int | None], TreeSpec, int]:
    """The leaves, the non-negative batch dimension or None of each, the structure, and the number
    of examples."""
    if not isinstance(in_dims, (int, tuple)) or isinstance(in_dims, bool):
        raise ValueError(
            f"vmap: expected 'in_dims' to be an int or a tuple, got {type(in_dims).__name__} "
            f"for {_name(func)}"
        )
    if not args:
        raise ValueError(f"vmap: expected at least one positional argument for {_name(func)}")
    leaves, spec = tree_flatten(args)
    dims = _spread(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap: expected 'in_dims' to have the structure of the arguments of {_name(func)}, "
            f"got {in_dims!r} for {len(args)} arguments"
        )
    size = None
    for i, (leaf, dim) in enumerate(zip(leaves, dims)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"vmap: expected 'in_dims' to hold ints and None, got {type(dim).__name__} for "
                f"input {i}"
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap: expected input {i}, whose entry of 'in_dims' is {dim}, to be a Tensor, got "
                f"{type(leaf).__name__}; use None for arguments that are not tensors"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"vmap: expected an entry of 'in_dims' from {-leaf.dim()} to {leaf.dim() - 1} for "
                f"input {i} of shape {list(leaf.shape)}, got {dim}"
            )
        dims[i] = dim % leaf.dim()
        own = leaf.shape[dims[i]]
        if size is not None and own != size:
            raise ValueError(
                f"vmap: expected inputs to have the same number of examples, got {size} and, for "
                f"input {i} of shape {list(leaf.shape)} in dimension {dims[i]}, {own}"
            )
        size = own
    if size is None:
        raise ValueError(
            f"vmap: expected 'in_dims' to name a dimension of at least one input, got {in_dims!r}"
        )
    return leaves, dims, spec, size


# ---- Results


def _read_outputs(
    func: Any, output: Any, out_dims: Any
) -> tuple[list[Tensor], list[int | None], TreeSpec]:
    leaves, spec = tree_flatten(output)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap: expected {_name(func)} to return tensors or nests of tensors, got "
                f"{type(leaf).__name__}"
            )
    # For a single output, out_dims may be a tuple of one entry.
    if spec.is_leaf() and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    dims = _spread(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap: expected 'out_dims' to have the structure of what {_name(func)} returns, "
            f"{spec}, got {out_dims!r}"
        )
    for dim in dims:
        if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
            raise ValueError(
                f"vmap: expected 'out_dims' to hold ints and None, got {type(dim).__name__}"
            )
    return leaves, dims, spec


def _take_out(func: Any, output: Any, level: int, size: int, out_dims: Any) -> Any:
    leaves, dims, spec = _read_outputs(func, output, out_dims)
    made = []
    for leaf, dim in zip(leaves, dims):
        if dim is not None:
            made.append(_C._vmap_unwrap(leaf, level, size, dim))
            continue
        if _C._vmap_has_level(leaf, level):
            raise ValueError(
                f"vmap: expected {_name(func)} to return the same tensor for every example where "
                "the entry of 'out_dims' is None, got a batched one"
            )
        made.append(leaf)
    return tree_unflatten(made, spec)


# ---- Rules written in Python


def call_rule(
    name: str, rule: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
) -> Any:
    """Calls rule(info, in_dims, *args, **kwargs) -> (outputs, out_dims) for the highest level among
    the positional arguments: unwraps them at that level, and wraps the outputs."""
    leaves, spec = tree_flatten(args)
    facts = [_C._vmap_inspect(leaf) if isinstance(leaf, Tensor) else None for leaf in leaves]
    level = max((fact[0] for fact in facts if fact is not None), default=0)
    running = {number: mode for number, _, mode in _C._vmap_levels()}
    if level not in running:
        raise RuntimeError(f"{name}: expected tensors of a running vmap, got one that ended")
    size = 0
    values: list[Any] = []
    dims: list[int | None] = []
    for leaf, fact in zip(leaves, facts):
        if fact is not None and fact[0] == level:
            size = fact[1]
            values.append(fact[2])
            dims.append(0)
        else:
            values.append(leaf)
            dims.append(None)
    randomness = next(name for name, mode in _RANDOMNESS.items() if mode == running[level])
    in_dims = tree_unflatten(dims, spec)
    result = rule(
        VmapInfo(size, randomness), in_dims, *tree_unflatten(values, spec), **(kwargs or {})
    )
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{name}: expected a tuple (outputs, out_dims), got {type(result).__name__}"
        )
    outputs, out_spec = tree_flatten(result[0])
    # Operators return several results as a tuple, so a list in either place counts as a tuple.
    out_dims = tuple(result[1]) if isinstance(result[1], list) else result[1]
    nest = tree_unflatten(outputs, out_spec)
    _, plain_spec = tree_flatten(tuple(nest) if isinstance(nest, list) else nest)
    places = _spread(out_dims, plain_spec)
    if places is None:
        raise RuntimeError(
            f"{name}: expected 'out_dims' to have the structure of the outputs, got {result[1]!r}"
        )
    made = []
    for i, (output, dim) in enumerate(zip(outputs, places)):
        if dim is None or not isinstance(output, Tensor):
            made.append(output)
            continue
        if not -output.dim() <= dim < output.dim() or output.shape[dim] != size:
            raise RuntimeError(
                f"{name}: expected output {i} to have the batch of {size} in dimension {dim}, got "
                f"shape {list(output.shape)}"
            )
        made.append(_C._vmap_wrap(output, dim, level))
    return tree_unflatten(made, out_spec)


# ---- Calls


def _map(
    func: Any,
    in_dims: Any,
    out_dims: Any,
    mode: int,
    chunk_size: int | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    leaves, dims, spec, size = _read_arguments(func, in_dims, args)
    if chunk_size is None or chunk_size >= size:
        output, level = _run(func, leaves, dims, spec, size, mode, kwargs)
        return _take_out(func, output, level, size, out_dims)
    return _map_chunks(func, out_dims, mode, chunk_size, leaves, dims, spec, size, kwargs)


def _run(
    func: Any,
    leaves: list[Any],
    dims: list[int | None],
    spec: TreeSpec,
    size: int,
    mode: int,
    kwargs: dict[str, Any],
) -> tuple[Any, int]:
    level = _C._vmap_enter(size, mode)
    try:
        batched = [
            leaf if dim is None else _C._vmap_wrap(leaf, dim, level)
            for leaf, dim in zip(leaves, dims)
        ]
        return func(*tree_unflatten(batched, spec), **kwargs), level
    finally:
        _C._vmap_leave(level)


def _map_chunks(
    func: Any,
    out_dims: Any,
    mode: int,
    chunk_size: int,
    leaves: list[Any],
    dims: list[int | None],
    spec: TreeSpec,
    size: int,
    kwargs: dict[str, Any],
) -> Any:
    """Runs the function on chunks of the batch and joins the outputs. With randomness "same", each
    chunk starts from the same state of the generator."""
    state = lamella.get_rng_state() if mode == _RANDOMNESS["same"] else None
    parts: list[list[Tensor]] = []
    places: list[int | None] = []
    out_spec = LeafSpec()
    for start in range(0, size, chunk_size):
        count = min(chunk_size, size - start)
        chunk = [
            leaf if dim is None else leaf.narrow(dim, start, count)
            for leaf, dim in zip(leaves, dims)
        ]
        if state is not None:
            lamella.set_rng_state(state)
        output, level = _run(func, chunk, dims, spec, count, mode, kwargs)
        _, places, _ = _read_outputs(func, output, out_dims)
        made, out_spec = tree_flatten(_take_out(func, output, level, count, out_dims))
        parts.append(made)
    joined = [
        column[0] if dim is None else lamella.cat(list(column), dim)
        for column, dim in zip(zip(*parts), places)
    ]
    return tree_unflatten(joined, out_spec)
