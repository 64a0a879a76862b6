"""The array API's functions that rearrange elements: shapes, joining, indexing."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.array_api._dtypes import common


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes as a tuple of non-negative numbers; an error if one is out of range or repeated."""
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -ndim <= a < ndim for a in given):
        raise IndexError(f"expected axes from {-ndim} to {ndim - 1}, got {axis}")
    found = tuple(a % ndim for a in given)
    if len(set(found)) != len(found):
        raise ValueError(f"expected each axis once, got {axis}")
    return found


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """The arrays, all of the shape that they broadcast to."""
    return tuple(lamella.broadcast_tensors(*arrays)) if arrays else ()


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that all given shapes broadcast to."""
    try:
        return tuple(lamella.broadcast_shapes(*map(tuple, shapes)))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """The array broadcast to a shape, as a view."""
    return x.expand(shape)


def concat(arrays: Any, /, *, axis: Any = 0) -> Tensor:
    """Concatenates arrays along an axis; without an axis, the flattened arrays."""
    parts = common(*arrays)
    if axis is None:
        return lamella.cat([x.flatten() for x in parts])
    axes_of(axis, parts[0].ndim)
    if any(x.ndim != parts[0].ndim for x in parts):
        raise ValueError("concat: expected arrays with the same number of dimensions")
    return lamella.cat(parts, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Stacks arrays along a new axis."""
    return lamella.stack(common(*arrays), axis)


def expand_dims(x: Tensor, /, axis: Any) -> Tensor:
    """Inserts axes of size 1 at the given positions."""
    count = 1 if isinstance(axis, int) else len(axis)
    for a in sorted(axes_of(axis, x.ndim + count)):
        x = x.unsqueeze(a)
    return x


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """Removes axes, which must have size 1."""
    axes = axes_of(axis, x.ndim)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: expected size 1 of axis {a}, got {x.shape[a]}")
    return x.squeeze(axes)


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """Reverses the elements along the given axes, by default all."""
    return lamella.flip(x, axes_of(range(x.ndim) if axis is None else axis, x.ndim))


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Moves axes to other positions."""
    return lamella.moveaxis(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """The array with its axes in another order."""
    return x.permute(tuple(axes))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The array with its last two axes exchanged."""
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: expected at least 2 dimensions, got {x.ndim}")
    return x.transpose(-1, -2)


def repeat(x: Tensor, repeats: Any, /, *, axis: Any = None) -> Tensor:
    """Repeats each element along an axis; without an axis, of the flattened array."""
    if axis is None:
        x, axis = x.flatten(), 0
    if isinstance(repeats, Tensor):
        repeats = repeats.to(lamella.int64).expand((x.shape[axis],))
    return lamella.repeat_interleave(x, repeats, dim=axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: Any = None) -> Tensor:
    """The elements in another shape."""
    if copy is False:
        try:
            return x.view(tuple(shape))
        except RuntimeError as error:
            raise ValueError(str(error)) from None
    if copy:
        x = x.clone()
    return x.reshape(tuple(shape))


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Shifts the elements along axes; elements beyond the last position return at the first."""
    if axis is None:
        return x.flatten().roll(shift, 0).reshape(x.shape)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    return x.roll(shifts, axes)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeats the whole array along each axis."""
    return lamella.tile(x, tuple(repetitions))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of the array along an axis."""
    return tuple(x.unbind(axis))


def take(x: Tensor, indices: Tensor, /, *, axis: Any = None) -> Tensor:
    """The slices along an axis at the given indices, which have one dimension or none."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError("take: expected an axis for an array of more dimensions than one")
        axis = 0
    (axis,) = axes_of(axis, x.ndim)
    return x[(slice(None),) * axis + (indices,)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements of each line along an axis at the indices in the same line of `indices`."""
    (axis,) = axes_of(axis, x.ndim)
    shape = broadcast_shapes(
        x.shape[:axis] + x.shape[axis + 1 :], indices.shape[:axis] + indices.shape[axis + 1 :]
    )
    at = indices.to(lamella.int64)
    at = lamella.where(at < 0, at + x.shape[axis], at)
    at = at.expand(shape[:axis] + (at.shape[axis],) + shape[axis:])
    return lamella.gather(x.expand(shape[:axis] + (x.shape[axis],) + shape[axis:]), axis, at)
