"""finfo and iinfo: the limits of dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lamella import _C

if TYPE_CHECKING:
    import lamella

# bits, mantissa bits, smallest normal exponent, largest finite number, decimal digits
_FLOATS = {
    "float64": (64, 52, -1022, 1.7976931348623157e308, 15),
    "float32": (32, 23, -126, 3.4028234663852886e38, 6),
    "float16": (16, 10, -14, 65504.0, 3),
    "bfloat16": (16, 7, -126, 3.3895313892515355e38, 2),
    "float8_e4m3fn": (8, 3, -6, 448.0, 1),
    "float8_e5m2": (8, 2, -14, 57344.0, 1),
}
_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def _name(dtype: lamella.dtype) -> str:
    return repr(dtype).partition(".")[2]


class finfo:
    """The limits of a floating-point dtype; for a complex dtype, of its real and imaginary part."""

    def __init__(self, type: lamella._DType | None = None) -> None:
        dtype = _C.get_default_dtype() if type is None else _C._dtype(type)
        name = _name(dtype)
        name = _PARTS.get(name, name)
        if name not in _FLOATS:
            raise TypeError(f"finfo: expected a floating-point dtype, got {dtype}; use iinfo")
        self.bits, mantissa, exponent, self.max, digits = _FLOATS[name]
        self.min = -self.max
        self.eps = 2.0**-mantissa
        self.tiny = self.smallest_normal = 2.0**exponent
        self.resolution = 10.0**-digits
        self.dtype = name

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
