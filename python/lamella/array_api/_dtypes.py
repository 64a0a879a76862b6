"""The dtypes of the array API: promotion, kinds, limits."""

from __future__ import annotations

import builtins
from typing import Any

import lamella
from lamella import Tensor, _type_info

bool = lamella.bool
SIGNED = (lamella.int8, lamella.int16, lamella.int32, lamella.int64)
UNSIGNED = (lamella.uint8, lamella.uint16, lamella.uint32, lamella.uint64)
INTEGRAL = SIGNED + UNSIGNED
REAL = (lamella.float32, lamella.float64)
COMPLEX = (lamella.complex64, lamella.complex128)
KINDS = {
    "bool": (bool,),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGRAL,
    "real floating": REAL,
    "complex floating": COMPLEX,
    "numeric": INTEGRAL + REAL + COMPLEX,
}
# Dtypes of Lamella that the standard lacks, by their kinds.
_MORE = {
    "real floating": (lamella.float16, lamella.bfloat16),
    "numeric": (lamella.float16, lamella.bfloat16),
}


def promote(a: lamella.dtype, b: lamella.dtype) -> lamella.dtype:
    """The smallest dtype that holds both; TypeError if there is none, as for int64 and uint64."""
    if a == b:
        return a
    if a in INTEGRAL and b in INTEGRAL:
        if (a in SIGNED) == (b in SIGNED):
            return a if a.itemsize > b.itemsize else b
        signed, unsigned = (a, b) if a in SIGNED else (b, a)
        bits = max(signed.itemsize, 2 * unsigned.itemsize) * 8
        if bits > 64:
            raise TypeError(f"result_type: expected types with a common type, got {a} and {b}")
        found: lamella.dtype = getattr(lamella, f"int{bits}")
        return found
    return lamella.promote_types(a, b)


# Python's number types from the narrowest to the widest, and the dtypes that hold their values.
_NUMBERS = ((int, INTEGRAL), (float, REAL + _MORE["real floating"]), (complex, COMPLEX))


def _of_number(number: complex, found: lamella.dtype | None) -> lamella.dtype:
    """The dtype of a Python number in an operation with arrays of dtype `found`."""
    if isinstance(number, builtins.bool):
        return bool if found is None else found
    for kind, dtypes in reversed(_NUMBERS):
        if found is not None and found in dtypes:
            return found
        if isinstance(number, kind):
            break
    if kind is int:
        return lamella.int64
    if kind is float:
        return lamella.get_default_dtype()
    wide = (found or lamella.get_default_dtype()) == lamella.float64
    return lamella.complex128 if wide else lamella.complex64


def result_type(*arrays_and_dtypes: Any) -> lamella.dtype:
    """The promoted dtype of arrays, dtypes and numbers; 0-d arrays promote like all arrays."""
    found: lamella.dtype | None = None
    numbers = []
    for x in arrays_and_dtypes:
        if isinstance(x, (int, float, complex)):
            numbers.append(x)
            continue
        dtype = x.dtype if isinstance(x, Tensor) else x
        if not isinstance(dtype, lamella.dtype):
            raise TypeError(
                f"result_type: expected arrays, dtypes or numbers, got {type(x).__name__}"
            )
        found = dtype if found is None else promote(found, dtype)
    for number in numbers:
        found = _of_number(number, found)
    if found is None:
        raise ValueError("result_type: expected at least one array or dtype, got none")
    return found


def can_cast(from_: Any, to: lamella.dtype, /) -> Any:
    """Whether a dtype, or the dtype of an array, can be promoted to another."""
    dtype = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return promote(dtype, to) == to
    except (TypeError, RuntimeError):
        return False


def isdtype(dtype: lamella.dtype, kind: Any) -> Any:
    """Whether a dtype equals `kind` or is of the kind `kind`, or of one of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: expected a kind of dtypes, got '{kind}'")
        return dtype in KINDS[kind] or dtype in _MORE.get(kind, ())
    if not isinstance(kind, lamella.dtype):
        raise TypeError(f"isdtype: expected a dtype or a kind, got {type(kind).__name__}")
    return dtype == kind


def astype(x: Tensor, dtype: lamella.dtype, /, *, copy: Any = True, device: Any = None) -> Tensor:
    """The array converted to a dtype."""
    if x.is_complex() and not dtype.is_complex and dtype != bool:
        x = x.real
    return x.to(device=device or x.device, dtype=dtype, copy=copy)


class finfo(_type_info.finfo):
    """The limits of a floating-point dtype, or of the dtype of an array."""

    def __init__(self, type: Any, /) -> None:
        dtype = type.dtype if isinstance(type, Tensor) else type
        super().__init__(dtype)
        self.dtype: Any = {64: lamella.float64, 32: lamella.float32}.get(self.bits, dtype)


class iinfo(_type_info.iinfo):
    """The limits of an integer dtype, or of the dtype of an array."""

    def __init__(self, type: Any, /) -> None:
        dtype = type.dtype if isinstance(type, Tensor) else type
        super().__init__(dtype)
        self.dtype: Any = dtype


def common(*arrays: Any) -> list[Tensor]:
    """Converts arrays and numbers, of which one must be an array, to arrays of a common dtype."""
    first = next(x for x in arrays if isinstance(x, Tensor))
    if all(isinstance(x, Tensor) and x.dtype == first.dtype for x in arrays):
        return list(arrays)
    dtype = result_type(*arrays)
    return [
        x.to(dtype) if isinstance(x, Tensor) else lamella.tensor(x, dtype=dtype, device=x_device)
        for x in arrays
        for x_device in (first.device,)
    ]
