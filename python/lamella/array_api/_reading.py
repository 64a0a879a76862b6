"""The array API's functions for searching, sets, sorting and statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import lamella
from lamella import Tensor
from lamella.array_api._dtypes import INTEGRAL, UNSIGNED, common
from lamella.array_api._manipulation import axes_of

if TYPE_CHECKING:
    from collections.abc import Callable

_INT64_MIN = -(2**63)


def _reduce(call: Callable[..., Tensor], x: Tensor, axis: Any, keepdims: Any) -> Tensor:
    """call(x, axes, keepdims), where axis=() reduces each element by itself, and None all axes."""
    if axis is None:
        return call(x, tuple(range(x.ndim)), keepdims)
    axes = axes_of(axis, x.ndim)
    return call(x, axes, keepdims) if axes else call(x.unsqueeze(-1), (x.ndim,), False)


# ---- Searching ----


def argmax(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """The index of the largest element."""
    return lamella.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """The index of the smallest element."""
    return lamella.argmin(x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """How many elements are not zero."""
    return sum(x != 0, axis=axis, keepdims=keepdims)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero: one array for each axis."""
    if x.ndim == 0:
        raise ValueError("nonzero: expected an array with dimensions, got one without")
    return tuple(lamella.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """The indices at which inserting the elements of x2 into the sorted x1 keeps it sorted."""
    if sorter is not None:
        x1 = x1[sorter]
    x1, x2 = common(x1, x2)
    if x1.dtype in UNSIGNED:
        # Flipping the top bit maps the order of uint64 to that of int64.
        wide = x1.dtype == lamella.uint64
        x1, x2 = (x.to(lamella.int64) ^ (_INT64_MIN if wide else 0) for x in (x1, x2))
    return lamella.searchsorted(x1.contiguous(), x2.contiguous(), right=side == "right")


# ---- Sets ----


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def _order(x: Tensor) -> Tensor:
    if not x.is_complex():
        return lamella.argsort(x, stable=True)
    by_imag = lamella.argsort(x.imag, stable=True)
    return by_imag[lamella.argsort(x.real[by_imag], stable=True)]


def unique_all(x: Tensor, /) -> UniqueAll:
    """The sorted distinct elements, the index of the first occurrence of each, the index among them
    for each element of x, and how often each occurs."""
    flat = x.flatten()
    order = _order(flat)
    ordered = flat[order]
    # Each NaN counts as distinct, since NaN != NaN.
    first = lamella.ones(flat.shape, dtype=lamella.bool, device=x.device)
    first[1:] = ordered[1:] != ordered[:-1]
    inverse = lamella.empty_like(order)
    inverse[order] = lamella.cumsum(first, 0) - 1
    starts = lamella.nonzero(first).flatten()
    ends = lamella.cat([starts[1:], starts.new_full((min1(flat),), flat.shape[0])])
    return UniqueAll(ordered[first], order[first], inverse.reshape(x.shape), ends - starts)


def min1(x: Tensor) -> int:
    """1 if there are elements, else 0."""
    return int(x.shape[0] > 0)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The sorted distinct elements, and how often each occurs."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The sorted distinct elements, and the index among them for each element of x."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The sorted distinct elements."""
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: Any = False) -> Tensor:
    """Whether each element of x1 is among those of x2; with invert, whether it is not."""
    x1, x2 = common(x1, x2)
    return lamella.isin(x1, x2, invert=invert)


# ---- Sorting ----


def sort(x: Tensor, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Tensor:
    """The elements, sorted along an axis."""
    return lamella.sort(x, dim=axis, descending=descending, stable=stable)[0]


def argsort(x: Tensor, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Tensor:
    """The indices that sort the array along an axis."""
    return lamella.argsort(x, dim=axis, descending=descending, stable=stable)


# ---- Statistics ----


def sum_dtype(x: Tensor, dtype: Any) -> lamella.dtype:
    """The dtype of a sum: integers are summed in 64 bits."""
    if dtype is not None:
        found: lamella.dtype = dtype
        return found
    if x.dtype in UNSIGNED:
        return lamella.uint64
    return lamella.int64 if x.dtype in INTEGRAL or x.dtype == lamella.bool else x.dtype


def _summed(call: Callable[[Tensor, Any], Tensor], x: Tensor, dtype: Any) -> Tensor:
    """call(x, dtype); unsigned integers are computed as int64, which gives the same bits."""
    kind = sum_dtype(x, dtype)
    if kind in UNSIGNED:
        return call(x.to(kind).to(lamella.int64), lamella.int64).to(kind)
    return call(x, kind)


def sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Tensor:
    """The sum of elements."""

    def over(y: Tensor, kind: Any) -> Tensor:
        return _reduce(
            lambda z, axes, keep: (
                lamella.sum(z, axes, keep, dtype=kind) if axes else z.to(kind, copy=True)
            ),
            y,
            axis,
            keepdims,
        )

    return _summed(over, x, dtype)


def prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Tensor:
    """The product of elements."""

    def over(y: Tensor, axes: Any, keep: Any, kind: Any) -> Tensor:
        y = y.to(kind, copy=True)
        for a in sorted(axes, reverse=True):
            y = lamella.prod(y, a, keep)
        return y

    return _summed(
        lambda y, kind: _reduce(lambda z, axes, keep: over(z, axes, keep, kind), y, axis, keepdims),
        x,
        dtype,
    )


def mean(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """The mean of elements."""
    return _reduce(lambda y, axes, keep: lamella.mean(y, axes, keep), x, axis, keepdims)


def var(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False
) -> Tensor:
    """The variance of elements; the divisor is their number minus `correction`."""
    return _reduce(
        lambda y, axes, keep: lamella.var(y, axes, correction=correction, keepdim=keep),
        x,
        axis,
        keepdims,
    )


def std(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False
) -> Tensor:
    """The standard deviation of elements."""
    return lamella.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def max(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """The largest element."""
    return _reduce(lamella.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """The smallest element."""
    return _reduce(lamella.amin, x, axis, keepdims)


def _truth(call: Callable[..., Tensor], x: Tensor, axis: Any, keepdims: Any) -> Tensor:
    x = x if x.dtype == lamella.bool else x != 0
    return _reduce(
        lambda y, axes, keep: call(y, axes, keep) if axes else y.clone(), x, axis, keepdims
    )


def all(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """Whether no element is zero."""
    return _truth(lamella.all, x, axis, keepdims)


def any(x: Tensor, /, *, axis: Any = None, keepdims: Any = False) -> Tensor:
    """Whether an element is not zero."""
    return _truth(lamella.any, x, axis, keepdims)


def _cumulative(
    call: Callable[..., Tensor], start: int, x: Tensor, axis: Any, dtype: Any, include_initial: Any
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError("expected an axis for an array of more dimensions than one")
        axis = 0
    (axis,) = axes_of(axis, x.ndim)
    found = _summed(lambda y, kind: call(y, axis, dtype=kind), x, dtype)
    if not include_initial:
        return found
    shape = found.shape[:axis] + (1,) + found.shape[axis + 1 :]
    first = lamella.tensor(start, dtype=found.dtype, device=x.device).expand(shape)
    return lamella.cat([first, found], axis)


def cumulative_sum(
    x: Tensor, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False
) -> Tensor:
    """The sums of the elements up to each one; include_initial puts 0 before them."""
    return _cumulative(lamella.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Tensor, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False
) -> Tensor:
    """The products of the elements up to each one; include_initial puts 1 before them."""
    return _cumulative(lamella.cumprod, 1, x, axis, dtype, include_initial)


def diff(
    x: Tensor, /, n: int = 1, axis: int = -1, *, prepend: Any = None, append: Any = None
) -> Tensor:
    """The n-th differences of neighboring elements along an axis; n and axis also by position."""
    return lamella.diff(x, n, axis, prepend, append)
