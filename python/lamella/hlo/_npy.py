"""Reads and writes .npy files of one array, without NumPy.

Element types that NumPy lacks are stored as opaque bytes of their size, as NumPy stores those of
ml_dtypes.
"""

from __future__ import annotations

import ast
import os
import struct
from typing import Any

import lamella
from lamella import _C
from lamella.hlo import _arrays

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10000  # NumPy reads no longer ones either


def _kind(dtype: lamella.dtype) -> str:
    if dtype == lamella.bool:
        return "b"
    if dtype.is_floating_point or dtype.is_complex:
        return "f" if dtype.is_floating_point else "c"
    return "i" if dtype.is_signed else "u"


def _descr(dtype: lamella.dtype, kind: str) -> str:
    return f"{'|' if dtype.itemsize == 1 else '<'}{kind}{dtype.itemsize}"


_OF_DTYPE = {
    dtype: _descr(dtype, _kind(dtype) if format else "V")
    for dtype, format, _, _ in _C._scalar_types()
}
_FORMATS = {text: dtype for dtype, text in _OF_DTYPE.items() if "V" not in text}


def save(path: str, tensor: lamella.Tensor) -> None:
    """Writes a contiguous tensor."""
    text = repr(
        {"descr": _OF_DTYPE[tensor.dtype], "fortran_order": False, "shape": tuple(tensor.shape)}
    )
    # The format aligns the elements to 64 bytes.
    header = (text + " " * (-(len(_MAGIC) + 4 + len(text) + 1) % 64) + "\n").encode("latin-1")
    with open(path, "wb") as file:
        file.write(_MAGIC + b"\x01\x00" + struct.pack("<H", len(header)) + header)
        if tensor.numel():
            file.write(memoryview(tensor.detach().reshape(-1).view(lamella.uint8)))


def load(path: str, element: str) -> lamella.Tensor:
    """Reads a tensor. element: the element type of opaque bytes, such as 'bf16'."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    header, begin = _header(path, data)
    dtype = _dtype_of(path, header["descr"], element)
    shape = header["shape"]
    count = 1
    for size in shape:
        count *= size
    bytes_ = count * dtype.itemsize
    if len(data) - begin < bytes_:
        raise ValueError(f"{path}: expected {bytes_} bytes of elements, got {len(data) - begin}")
    if not count:
        return lamella.empty(shape, dtype=dtype)
    flat = lamella.frombuffer(data, dtype=lamella.uint8, offset=begin, count=bytes_).clone()
    flat = flat.view(dtype)
    if header["fortran_order"]:
        turned = flat.reshape(tuple(reversed(shape)))
        return turned.permute(*reversed(range(len(shape)))).contiguous()
    return flat.reshape(shape)


def _header(path: str, data: bytearray) -> tuple[dict[str, Any], int]:
    wrong = ValueError(f"{os.fspath(path)}: expected an .npy file of numbers")
    if len(data) < 10 or not data.startswith(_MAGIC) or data[6] not in (1, 2, 3):
        raise wrong
    begin = 10 if data[6] == 1 else 12
    if len(data) < begin:
        raise wrong
    (length,) = struct.unpack_from("<H" if data[6] == 1 else "<I", data, 8)
    if length > _LONGEST_HEADER:
        raise wrong
    try:
        header = ast.literal_eval(data[begin : begin + length].decode("utf-8"))
        shape = header["shape"]
        right = (
            isinstance(shape, tuple)
            and all(type(size) is int and size >= 0 for size in shape)
            and isinstance(header["descr"], str)
            and isinstance(header["fortran_order"], bool)
        )
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
        raise wrong from None
    if not right:
        raise wrong
    return header, begin + length


def _dtype_of(path: str, descr: str, element: str) -> Any:
    if descr in _FORMATS:
        return _FORMATS[descr]
    if descr[1:] == "V2" and element == "bf16":
        return lamella.bfloat16
    if descr[1:] == "V1" and element[:1] in ("f", "s", "u"):
        # Tensors keep other types below a byte in one.
        dtype = getattr(lamella, _arrays.carrier(element))
        if dtype.itemsize == 1:
            return dtype
    raise ValueError(f"{path}: expected elements that tensors have, got '{descr}' for {element}")
