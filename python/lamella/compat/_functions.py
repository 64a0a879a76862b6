"""Functions of the module torch that are methods in Lamella, or small compositions."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor


def typename(obj: Any) -> str:
    """The full name of an object's type."""
    return lamella.typename(obj).replace("lamella.", "torch.", 1)


def is_conj(input: Tensor) -> bool:
    """Whether the tensor is a lazy conjugate."""
    return input.is_conj()


def is_neg(input: Tensor) -> bool:
    """Whether the tensor is a lazy negative."""
    return input.is_neg()


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


def is_distributed(input: Tensor) -> bool:
    """False."""
    return False


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero."""
    if input.numel() != 1:
        raise RuntimeError(f"is_nonzero: expected one element, got {input.numel()}")
    return bool(input.item())


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether the shapes are the same."""
    return input.shape == other.shape


def get_device(input: Tensor) -> int:
    """The index of the tensor's device; -1 on the CPU."""
    return input.get_device()


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector's elements as columns, the highest first unless `increasing`."""
    powers = lamella.linalg.vander(x, N=x.numel() if N is None else N)
    return powers if increasing else powers.flip(-1)


def to_dlpack(tensor: Tensor) -> Any:
    """The tensor as a DLPack capsule."""
    return tensor.__dlpack__()


def from_file(
    filename: str, shared: bool = False, size: int = 0, *, dtype: Any = None, **options: Any
) -> Tensor:
    """The first `size` elements of a file, read into memory of their own; not shared with it."""
    if shared:
        raise ValueError("from_file: expected shared=False; Lamella reads the file's elements")
    dtype = lamella.get_default_dtype() if dtype is None else dtype
    made = lamella.empty(size, dtype=dtype, **options)
    with open(filename, "rb") as file:
        data = file.read(size * dtype.itemsize)
    if len(data) != size * dtype.itemsize:
        raise RuntimeError(
            f"from_file: expected {size * dtype.itemsize} bytes, got {len(data)}, in {filename}"
        )
    if size:
        made.copy_(lamella.frombuffer(bytearray(data), dtype=dtype))
    return made


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms over all dimensions but one."""
    if dim == -1:
        return lamella.norm(v, pow)
    rest = [i for i in range(v.dim()) if i != dim % v.dim()]
    return lamella.linalg.vector_norm(v, pow, dim=rest, keepdim=True)
