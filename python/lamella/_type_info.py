"""finfo and iinfo: the limits of dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamella import _C

if TYPE_CHECKING:
    import lamella

# Mantissa bits, exponent of the smallest normal number, largest number, decimal digits.
_FLOATS = {dtype: limits for dtype, _, _, limits in _C._scalar_types() if limits}


def _name(dtype: lamella.dtype) -> str:
    return repr(dtype).partition(".")[2]


class finfo:
    """The limits of a floating-point dtype; for a complex dtype, of its real and imaginary part."""

    def __init__(self, type: lamella._DType | None = None) -> None:
        dtype = _C.get_default_dtype() if type is None else _C._dtype(type)
        part = dtype.to_real()
        if part not in _FLOATS:
            raise TypeError(f"finfo: expected a floating-point dtype, got {dtype}; use iinfo")
        mantissa, exponent, self.max, digits = _FLOATS[part]
        self.bits = part.itemsize * 8
        self.min = -self.max
        self.eps = 2.0**-mantissa
        self.tiny = self.smallest_normal = 2.0**exponent
        self.resolution = 10.0**-digits
        self.dtype = _name(part)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype."""

    def __init__(self, type: lamella._DType) -> None:
        dtype = _C._dtype(type)
        name = _name(dtype)
        if not name.startswith(("int", "uint")):
            raise TypeError(f"iinfo: expected an integer dtype, got {dtype}; use finfo")
        self.bits = dtype.itemsize * 8
        self.min = -(1 << (self.bits - 1)) if dtype.is_signed else 0
        self.max = (1 << (self.bits - int(dtype.is_signed))) - 1
        self.dtype = name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
