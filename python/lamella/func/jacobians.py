"""jacrev, jacfwd and hessian: Jacobians from vmap over vjp and jvp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella.func.transforms import _named, _of_tangents_alone, _positions, jvp, vjp
from lamella.func.vmap import vmap
from lamella.utils._pytree import LeafSpec, tree_flatten, tree_map_only, tree_unflatten

__all__ = ["hessian", "jacfwd", "jacrev"]


def _basis(like: list[Tensor]) -> list[Tensor]:
    """The rows of the identity matrix over the elements of all tensors, split by tensor: for each
    tensor [total number of elements, *shape]."""
    sizes = [x.numel() for x in like]
    total = sum(sizes)
    made, start = [], 0
    for x, size in zip(like, sizes):
        rows = lamella.zeros(total, size, dtype=x.dtype, device=x.device)
        rows.diagonal(-start).fill_(1)
        made.append(rows.reshape(total, *x.shape))
        start += size
    return made


def _with_chosen(func: Any, args: tuple[Any, ...], chosen: tuple[int, ...], kwargs: Any) -> Any:
    """func as a function of the chosen arguments, with the others fixed."""

    def of_chosen(*values: Any) -> Any:
        full = list(args)
        for place, value in zip(chosen, values):
            full[place] = value
        return func(*full, **kwargs)

    return of_chosen


def _first_example(x: Tensor) -> Tensor:
    """The first example of a tensor at the innermost level of vmap, for tensors that do not depend
    on the tangents and are thus equal in all examples."""
    level, size, _ = _C._vmap_levels()[-1]
    return _C._vmap_unwrap(x, level, size, 0)[0] if _C._vmap_has_level(x, level) else x


def _checked(name: str, tensors: list[Any], what: str) -> None:
    for x in tensors:
        if not isinstance(x, Tensor):
            raise RuntimeError(
                f"{name}: expected {what} to be tensors or nests of tensors, got "
                f"{type(x).__name__}"
            )
        if x.is_complex():
            raise RuntimeError(f"{name}: expected {what} to be real, got {x.dtype}")


def _check_chunk(name: str, chunk_size: int | None) -> None:
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size <= 0):
        raise ValueError(f"{name}: expected 'chunk_size' to be None or above 0, got {chunk_size!r}")


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """The function that computes the Jacobian of func by rows, in reverse mode.

    Its result has the structure of func's, with tensors of shape [*output, *input], or tuples of
    these if `argnums` is a tuple. has_aux: func returns (output, aux), and the new function
    (Jacobian, aux). chunk_size: the number of rows to compute at once, None for all.
    """
    _check_chunk("jacrev", chunk_size)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = _positions("jacrev", argnums, len(args))
        given = tuple(args[i] for i in chosen)
        found = vjp(_with_chosen(func, args, chosen, kwargs), *given, has_aux=has_aux)
        output, vjp_fn = found[:2]
        outputs, out_spec = tree_flatten(output)
        inputs, in_spec = tree_flatten(given)
        _checked("jacrev", inputs, "inputs")
        _checked("jacrev", outputs, "outputs")

        def rows_of(*vectors: Any) -> Any:
            return tuple(tree_flatten(vjp_fn(tree_unflatten(vectors, out_spec)))[0])

        basis = _basis(outputs)
        if chunk_size == 1:  # without vmap, so that backward may do what depends on data
            each = [rows_of(*vectors) for vectors in zip(*basis)]
            rows = tuple(lamella.stack(row) for row in zip(*each))
        else:
            rows = vmap(rows_of, chunk_size=chunk_size)(*basis)
        blocks, start = [], 0
        for y in outputs:
            block = [
                r.narrow(0, start, y.numel()).reshape((*y.shape, *x.shape))
                for r, x in zip(rows, inputs)
            ]
            nest = tree_unflatten(block, in_spec)
            blocks.append(nest if isinstance(argnums, tuple) else nest[0])
            start += y.numel()
        result = tree_unflatten(blocks, out_spec)
        return (result, found[2]) if has_aux else result

    return _named(jacobian, func)


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Like jacrev(), but by columns, in forward mode. randomness: see vmap."""
    _check_chunk("jacfwd", chunk_size)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = _positions("jacfwd", argnums, len(args))
        given = tuple(args[i] for i in chosen)
        inputs, in_spec = tree_flatten(given)
        _checked("jacfwd", inputs, "inputs")
        spec = LeafSpec()
        kept: Any = None

        def columns_of(*vectors: Any) -> Any:
            nonlocal spec, kept
            tangents = tree_unflatten(vectors, in_spec)
            of_chosen = _with_chosen(func, args, chosen, kwargs)
            with _of_tangents_alone():
                found = jvp(of_chosen, given, tangents, has_aux=has_aux)
            _checked("jacfwd", tree_flatten(found[0])[0], "outputs")
            tangent, spec = tree_flatten(found[1])
            kept = tree_map_only(Tensor, _first_example, found[2]) if has_aux else None
            return tuple(tangent)

        mapped = vmap(columns_of, out_dims=-1, randomness=randomness, chunk_size=chunk_size)
        columns = mapped(*_basis(inputs))
        nests = []
        for c in columns:
            block, start = [], 0
            for x in inputs:
                part = c.narrow(-1, start, x.numel())
                block.append(part.reshape((*c.shape[:-1], *x.shape)))
                start += x.numel()
            nest = tree_unflatten(block, in_spec)
            nests.append(nest if isinstance(argnums, tuple) else nest[0])
        result = tree_unflatten(nests, spec)
        return (result, kept) if has_aux else result

    return _named(jacobian, func)


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that computes the second derivatives of func: forward over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)
