"""Reads a model's weights from a safetensors file, without copying them."""

import json
import mmap
import struct

import lamella

DTYPES = {
    "F64": lamella.float64,
    "F32": lamella.float32,
    "F16": lamella.float16,
    "BF16": lamella.bfloat16,
    "I64": lamella.int64,
    "I32": lamella.int32,
    "I16": lamella.int16,
    "I8": lamella.int8,
    "U8": lamella.uint8,
    "BOOL": lamella.bool,
}


def load(path):
    """Every tensor of the file by name, as views of the mapped file.

    The file is 8 bytes with the length of the header, the header as JSON (name, dtype, shape and
    place of each tensor), and then the bytes of all tensors.
    """
    with open(path, "rb") as file:
        # A private mapping is writable; the file itself stays unchanged.
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    (length,) = struct.unpack_from("<Q", data, 0)
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        dtype = DTYPES[entry["dtype"]]
        count = 1
        for size in entry["shape"]:
            count *= size
        if count * dtype.itemsize != last - first:
            raise ValueError(
                f"{path}: expected {count * dtype.itemsize} bytes for '{name}', got {last - first}"
            )
        flat = lamella.frombuffer(data, dtype=dtype, count=count, offset=8 + length + first)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors
