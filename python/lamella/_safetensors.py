"""Reads and writes tensors in the safetensors format, which other libraries share.

A file is the header's length (8 bytes, little endian), the header (JSON: each tensor's dtype, shape
and byte offsets, and "__metadata__"), and the bytes of the tensors, without gaps. A file cannot
contain code.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
from collections.abc import Iterator
from typing import Any

import lamella
from lamella import _C, Tensor

__all__ = ["load", "load_file", "save", "save_file"]

_DTYPES = {name: dtype for dtype, _, name, _ in _C._scalar_types() if name}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_LONGEST_HEADER = 100_000_000
# How archives and pickles of PyTorch begin.
_ARCHIVES = (b"PK\x03\x04", b"\x80\x02")


def save_file(
    tensors: dict[str, Tensor],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes tensors by name, to a temporary file that replaces `filename` when it is complete.

    metadata: further text by key. Tensors that share memory are each written in full.
    """
    rows = []
    for name, tensor in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise ValueError(f"save_file: expected names of tensors to be text, got {name!r}")
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"save_file: expected '{name}' to be a Tensor, got {type(tensor).__name__}"
            )
        if tensor.dtype not in _NAMES:
            raise TypeError(
                f"save_file: expected '{name}' to have a dtype of the format, got {tensor.dtype}"
            )
        rows.append((name, tensor.detach()))
    # Tensors with wide elements come first, so that each tensor is aligned to its element size.
    rows.sort(key=lambda row: (-row[1].dtype.itemsize, row[0]))
    header: dict[str, Any] = {}
    if metadata is not None:
        for key, value in metadata.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError(f"save_file: expected 'metadata' to be text by text, got {key!r}")
        header["__metadata__"] = metadata
    place = 0
    for name, tensor in rows:
        end = place + tensor.numel() * tensor.dtype.itemsize
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, end],
        }
        place = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with whole_file(filename) as partial, open(partial, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in rows:
            if tensor.numel():
                file.write(_bytes(tensor))


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[str]:
    """A file to be written, which takes the place of `path` at the end; an error leaves neither."""
    partial = f"{os.fspath(path)}.{os.getpid()}.partial"
    try:
        yield partial
        os.replace(partial, path)
    except BaseException as error:
        if os.path.exists(partial):
            os.remove(partial)
        if isinstance(error, OSError) and error.filename == partial:
            error.filename = os.fspath(path)
        raise


def _bytes(tensor: Tensor) -> memoryview:
    flat = tensor.cpu().contiguous()
    if flat.is_conj() or flat.is_neg():
        flat = flat.clone()
    return memoryview(flat.reshape(-1).view(lamella.uint8))


def load_file(filename: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of a file by name.

    They are read into new memory rather than mapped, since truncating a mapped file later would
    crash the process.
    """
    return _read(filename, device)[0]


def _read(filename: Any, device: Any) -> tuple[dict[str, Tensor], dict[str, str]]:
    with open(filename, "rb", buffering=0) as file:
        return _read_from(file, filename, device)


def _fill(file: Any, filename: Any, memory: memoryview) -> None:
    """Reads bytes until `memory` is full."""
    filled = 0
    while filled < len(memory):
        count = file.readinto(memory[filled:])
        _expect(count > 0, filename, f"{len(memory)} bytes at byte {file.tell()}", f"{filled}")
        filled += count


def _read_from(file: Any, filename: Any, device: Any) -> tuple[dict[str, Tensor], dict[str, str]]:
    size = os.fstat(file.fileno()).st_size
    _expect(size >= 8, filename, "a header", f"{size} bytes")
    word = bytearray(8)
    _fill(file, filename, memoryview(word))
    (length,) = struct.unpack("<Q", word)
    fits = length <= min(_LONGEST_HEADER, size - 8)
    # A header may be as long as these bytes say, but an archive is shorter than they say.
    if not fits and word.startswith(_ARCHIVES):
        raise ValueError(
            "load_file: expected a file of the safetensors format, got an archive as torch.save() "
            f"writes it, which lamella.compat.serialization.load() reads, in {os.fspath(filename)}"
        )
    begin = 8 + length
    _expect(fits, filename, f"a header within {size} bytes", f"one of {length} bytes")
    text = bytearray(length)
    _fill(file, filename, memoryview(text))
    header, metadata = _header(filename, bytes(text))
    tensors = {}
    reached = 0
    for name, entry in sorted(header.items(), key=lambda item: _offsets(filename, *item)):
        first, last = _offsets(filename, name, entry)
        _expect(first == reached, filename, f"'{name}' at byte {reached}", str(first))
        reached = last
        dtype, shape, count = _geometry(filename, name, entry)
        _expect(
            last - first == count * dtype.itemsize,
            filename,
            f"{count * dtype.itemsize} bytes for '{name}'",
            str(last - first),
        )
        _expect(begin + last <= size, filename, f"a file of {begin + last} bytes", str(size))
        tensor = lamella.empty(shape, dtype=dtype)
        if count:
            _fill(file, filename, _bytes(tensor))
        tensors[name] = tensor.to(device)
    _expect(begin + reached == size, filename, f"a file of {begin + reached} bytes", str(size))
    return {name: tensors[name] for name in header}, metadata


def _expect(right: bool, filename: Any, expected: str, got: str) -> None:
    if not right:
        raise ValueError(f"load_file: expected {expected}, got {got}, in {os.fspath(filename)}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _header(filename: Any, text: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        header = json.loads(text.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"load_file: expected a header of JSON, got {error}, in {os.fspath(filename)}"
        ) from None
    _expect(
        isinstance(header, dict), filename, "a header of JSON with names", type(header).__name__
    )
    metadata = header.pop("__metadata__", {})
    _expect(
        isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values()),
        filename,
        "'__metadata__' to be text by text",
        type(metadata).__name__,
    )
    return header, metadata


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _offsets(filename: Any, name: str, entry: Any) -> tuple[int, int]:
    found = entry.get("data_offsets") if isinstance(entry, dict) else None
    right = isinstance(found, list) and len(found) == 2 and all(map(_is_count, found))
    _expect(right, filename, f"two numbers as the place of '{name}'", repr(found))
    assert found is not None
    return found[0], found[1]


def _geometry(filename: Any, name: str, entry: Any) -> tuple[Any, list[int], int]:
    dtype = _DTYPES.get(entry.get("dtype")) if isinstance(entry.get("dtype"), str) else None
    _expect(dtype is not None, filename, f"a known dtype of '{name}'", repr(entry.get("dtype")))
    shape = entry.get("shape")
    right = isinstance(shape, list) and all(map(_is_count, shape))
    _expect(right, filename, f"a shape of '{name}'", repr(shape))
    count = math.prod(shape)
    # Without elements no byte count tells that a size is beyond any tensor's.
    reach = math.prod(max(size, 1) for size in shape) * dtype.itemsize if dtype and not count else 0
    _expect(reach < 1 << 63, filename, f"a shape of '{name}' whose bytes fit int64", repr(shape))
    return dtype, shape, count


# ---- Nests of tensors: state dicts of modules and optimizers

_KEY = "lamella.nest"


def save(obj: Any, f: str | os.PathLike[str]) -> None:
    """Writes nested tensors, numbers and text, such as a state_dict(), to a safetensors file.

    Supports dictionaries (keys: text, numbers), lists and tuples. A tensor's name in the file is
    its key; for nested containers the keys joined by "/".
    """
    tensors: dict[str, Tensor] = {}
    nest = _packed(obj, "", tensors)
    try:
        save_file(tensors, f, {_KEY: json.dumps(nest, separators=(",", ":"))})
    except TypeError as error:
        raise TypeError(str(error).replace("save_file", "save", 1)) from None


def load(f: str | os.PathLike[str], map_location: Any = "cpu") -> Any:
    """Reads a file that save() wrote; for other safetensors files returns the tensors by name.

    An archive, as torch.save() and save() in C++ write it, is read by
    lamella.compat.serialization.load(); one of C++ gives the tensors by name.
    """
    with open(f, "rb") as file:
        begin = file.read(9)
    if begin.startswith(_ARCHIVES) and begin[8:] != b"{":
        return lamella._load_archive(f, map_location)  # type: ignore[attr-defined]
    try:
        tensors, metadata = _read(f, map_location)
    except ValueError as error:
        raise ValueError(str(error).replace("load_file", "load", 1)) from None
    if _KEY not in metadata:
        return tensors
    try:
        return _unpacked(json.loads(metadata[_KEY]), tensors)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise ValueError(
            f"load: expected '{_KEY}' to describe the tensors, got {error!r}, in {os.fspath(f)}"
        ) from None


def _packed(value: Any, place: str, tensors: dict[str, Tensor]) -> Any:
    """The JSON of a value: ["kind", content], or a plain number, text, true, false or null."""
    if isinstance(value, Tensor):
        name = place
        while name in tensors:
            name += "'"
        tensors[name] = value
        return ["tensor", name]
    if isinstance(value, dict):
        rows = []
        for key, entry in value.items():
            if not isinstance(key, (str, int, float, bool, type(None))):
                raise TypeError(
                    f"save: expected keys to be text or numbers, got {type(key).__name__}"
                )
            below = f"{place}/{key}" if place else str(key)
            rows.append([key, _packed(entry, below, tensors)])
        return ["dict", rows]
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return [
            kind,
            [
                _packed(entry, f"{place}/{i}" if place else str(i), tensors)
                for i, entry in enumerate(value)
            ],
        ]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(
        f"save: expected tensors, numbers, text, lists, tuples and dicts, got "
        f"{type(value).__name__}" + (f" at '{place}'" if place else "")
    )


def _unpacked(nest: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(nest, list):
        return nest
    kind, content = nest
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {key: _unpacked(entry, tensors) for key, entry in content}
    if kind == "list":
        return [_unpacked(entry, tensors) for entry in content]
    if kind == "tuple":
        return tuple(_unpacked(entry, tensors) for entry in content)
    raise ValueError(f"the kind '{kind}'")
