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

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10000  # the same limit as NumPy's
_FORMATS = {
    "|b1": "bool",
    "|i1": "int8",
    "<i2": "int16",
    "<i4": "int32",
    "<i8": "int64",
    "|u1": "uint8",
    "<u2": "uint16",
    "<u4": "uint32",
    "<u8": "uint64",
    "<f2": "float16",
    "<f4": "float32",
    "<f8": "float64",
    "<c8": "complex64",
    "<c16": "complex128",
}
_OF_DTYPE = {getattr(lamella, name): text for text, name in _FORMATS.items()}
_OF_DTYPE[lamella.bfloat16] = "<V2"
# The dtypes of tensors for opaque bytes, by the requested element type. Other types of one byte or
# less are held in int8 or uint8.
_OPAQUE = {"bf16": "bfloat16", "f8e5m2": "float8_e5m2", "f8e4m3fn": "float8_e4m3fn"}


def save(path: str, tensor: lamella.Tensor) -> None:
    """Writes a contiguous tensor."""
    text = repr(
        {
            "descr": _OF_DTYPE.get(tensor.dtype, "|V1"),
            "fortran_order": False,
            "shape": tuple(tensor.shape),
        }
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
        return getattr(lamella, _FORMATS[descr])
    if descr[1:] == "V2" and element == "bf16":
        return lamella.bfloat16
    if (
        descr[1:] == "V1"
        and element[:1] in ("f", "s", "u")
        and element not in ("f16", "f32", "f64")
    ):
        return getattr(lamella, _OPAQUE.get(element, "int8" if element[0] == "s" else "uint8"))
    raise ValueError(f"{path}: expected elements that tensors have, got '{descr}' for {element}")
