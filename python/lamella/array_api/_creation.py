"""The array API's functions that create arrays."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor
from lamella.array_api._dtypes import COMPLEX, INTEGRAL, UNSIGNED


def _shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if hasattr(shape, "__index__") else tuple(shape)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Tensor:
    """An array made from another array, a number, nested lists of numbers, or a buffer."""
    if isinstance(obj, Tensor):
        moves = dtype not in (None, obj.dtype) or device not in (None, obj.device, str(obj.device))
        if moves and copy is False:
            raise ValueError("asarray: expected copy to be allowed, as the dtype or device changes")
        return obj.to(device=device or obj.device, dtype=dtype or obj.dtype, copy=bool(copy))
    if hasattr(obj, "__array_interface__"):
        wide = min(getattr(obj, "strides", None) or (0,)) < 0
        if copy is False and (wide or not obj.flags.writeable):
            raise ValueError("asarray: expected copy to be allowed for this array")
        if wide or copy or not obj.flags.writeable:
            obj = obj.copy()
        return asarray(lamella.from_numpy(obj), dtype=dtype, device=device, copy=copy and None)
    if hasattr(obj, "__dlpack__"):
        return asarray(from_dlpack(obj, copy=copy), dtype=dtype, device=device)
    is_buffer = not isinstance(obj, (int, float, complex, list, tuple))
    if is_buffer and copy is not True:
        return asarray(lamella.as_tensor(obj), dtype=dtype, device=device, copy=copy)
    if copy is False:
        raise ValueError("asarray: expected copy to be allowed for numbers and lists")
    return lamella.tensor(obj, dtype=dtype, device=device)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Numbers from start up to, but without, stop, in steps of `step`."""
    if stop is None:
        start, stop = 0, start
    if (stop - start) * (1 if step > 0 else -1) <= 0:
        whole = all(isinstance(number, int) for number in (start, stop, step))
        kind = lamella.int64 if whole else lamella.get_default_dtype()
        return lamella.empty((0,), dtype=dtype or kind, device=device)
    if dtype in UNSIGNED:
        wide = lamella.arange(start, stop, step, dtype=lamella.int64, device=device)
        return wide.to(dtype)
    return lamella.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: Any = True,
) -> Tensor:
    """num evenly spaced numbers from start to stop; without endpoint, stop is excluded."""
    kind = dtype
    if kind is None:
        kind = lamella.get_default_dtype()
        if isinstance(start, complex) or isinstance(stop, complex):
            kind = lamella.promote_types(kind, lamella.complex64)
    wide = lamella.float64 if kind in INTEGRAL else kind
    parts = num if endpoint else num + 1
    if kind in COMPLEX:
        part = lamella.float64 if kind == lamella.complex128 else lamella.float32
        first, last = complex(start), complex(stop)
        found = lamella.complex(
            lamella.linspace(first.real, last.real, parts, dtype=part, device=device),
            lamella.linspace(first.imag, last.imag, parts, dtype=part, device=device),
        )
    else:
        found = lamella.linspace(start, stop, parts, dtype=wide, device=device)
    return found[:num].to(kind)


def eye(
    n_rows: int, n_cols: Any = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """A matrix with ones on its k-th diagonal and zeros elsewhere."""
    rows = lamella.arange(n_rows, device=device)[:, None]
    columns = lamella.arange(n_rows if n_cols is None else n_cols, device=device)
    return (columns - rows == k).to(dtype or lamella.get_default_dtype())


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of equal elements."""
    value = lamella.tensor(fill_value, dtype=dtype, device=device)
    return value.expand(_shape(shape)).contiguous()


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of x's shape with equal elements."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array with undefined elements."""
    return lamella.empty(_shape(shape), dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of zeros."""
    return lamella.zeros(_shape(shape), dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of ones."""
    return lamella.ones(_shape(shape), dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of x's shape with undefined elements."""
    return empty(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of x's shape with zeros."""
    return zeros(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of x's shape with ones."""
    return ones(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Tensor:
    """An array over the memory of another library's array."""
    return lamella.from_dlpack(x, device=device, copy=copy)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Grids of coordinates from arrays of one dimension."""
    if not arrays:
        return ()
    return tuple(lamella.meshgrid(list(arrays), indexing=indexing))


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices with zeros above the k-th diagonal."""
    return lamella.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices with zeros below the k-th diagonal."""
    return lamella.triu(x, k)
