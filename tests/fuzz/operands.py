"""Descriptions of tensors, from which the fuzzer makes equal tensors of Lamella and PyTorch."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import struct
from collections.abc import Sequence
from typing import Any

# Bytes of an element, and the letter of `struct` for (a half of) it.
DTYPES = {
    "bool": (1, "B"),
    "uint8": (1, "B"),
    "int8": (1, "b"),
    "int16": (2, "h"),
    "int32": (4, "i"),
    "int64": (8, "q"),
    "float16": (2, "e"),
    "bfloat16": (2, "H"),
    "float32": (4, "f"),
    "float64": (8, "d"),
    "complex64": (8, "f"),
    "complex128": (16, "d"),
    "uint16": (2, "H"),
    "uint32": (4, "I"),
    "uint64": (8, "Q"),
    "complex32": (4, "e"),
    "float8_e4m3fn": (1, "B"),
    "float8_e5m2": (1, "B"),
}
FLOATS = ("float32", "float64", "float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
WHOLE = ("int64", "int32", "uint8", "int16", "int8")
COMMON = ("bool", *WHOLE, *FLOATS, *COMPLEX)

_SPECIAL = (
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e-45,
    1e-310,
    5e-324,
    1e-8,
    3.4e38,
    1.7e308,
    65504.0,
    2.0**31,
    -(2.0**63),
    2.0**63,
)
_LIMITS = (0, 1, -1, 2**7 - 1, -(2**7), 2**15 - 1, -(2**15), 2**31 - 1, -(2**31), 2**63 - 1)
_LIMITS += (-(2**63), 2**62, 2**32, 255, 100)
# Numbers of which squares and powers overflow, or which long loops could count up to.
_EXTREMES = (1e30, -1e30, 1e300, 1e-30, 1e15)
# What fills memory that is allocated, by default and in a call's second run: a result that depends
# on it was read before it was written.
FILL, OTHER_FILL = 0xA5, 0x3C
fill = [FILL]


def contiguous_strides(shape: Sequence[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def extent(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first of a tensor to behind its last."""
    if any(size == 0 for size in shape):
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))


class Memory:
    """The bytes of a storage. `live` is the storage while a call runs."""

    def __init__(self, contents: bytes) -> None:
        self.contents = contents
        self.live: Any = None


@dataclasses.dataclass
class Operand:
    """A tensor. values: the kind of its elements; bound: the upper bound of an index's elements."""

    dtype: str
    shape: list[int]
    strides: list[int] | None = None
    offset: int = 0
    values: str = "plain"
    bound: int = 1
    device: str = "cpu"
    seed: int = 0
    after: int = 0  # elements of the storage behind the last one
    conj: bool = False
    neg: bool = False
    requires_grad: bool = False
    shares: Operand | None = None  # whose memory it is in
    placement: int = 0  # of its memory between the guarding pages
    memory: Memory | None = None

    def laid_out(self) -> list[int]:
        return contiguous_strides(self.shape) if self.strides is None else self.strides

    def __str__(self) -> str:
        text = f"{self.dtype}{self.shape}"
        if self.strides is not None:
            text += f" strides {self.strides}"
        if self.offset:
            text += f" offset {self.offset}"
        if self.values != "plain":
            text += f" {self.values}" + (f"<{self.bound}" if self.values == "index" else "")
        for name in ("conj", "neg", "requires_grad"):
            text += f" {name}" if getattr(self, name) else ""
        if self.device != "cpu":
            text += f" on {self.device}"
        return text + (" in the memory of another" if self.shares is not None else "")

    __repr__ = __str__

    def root(self) -> Operand:
        return self if self.shares is None else self.shares.root()

    # ---- Bytes ----

    def storage_elements(self) -> int:
        return self.offset + extent(self.shape, self.laid_out()) + self.after

    def bytes(self, rng: Any) -> bytes:
        """The contents of its storage."""
        count = self.storage_elements()
        size, letter = DTYPES[self.dtype]
        if letter == "B" and self.dtype.startswith("float8"):
            return bytes(rng.randrange(256) for _ in range(count))
        numbers = [self._number(rng) for _ in range(count)]
        if self.dtype in ("complex64", "complex128", "complex32"):
            numbers = [x for n in numbers for x in (n, self._number(rng))]
        if self.dtype == "bfloat16":
            return b"".join(_packed("f", n)[2:] for n in numbers)
        if letter in "efd":
            return b"".join(_packed(letter, n) for n in numbers)
        low = -(1 << (8 * size - 1)) if letter.islower() else 0
        span = 1 << (8 * size)
        wrapped = [(int(n) - low) % span + low for n in numbers]
        return struct.pack(f"={len(wrapped)}{letter}", *wrapped)

    def _number(self, rng: Any) -> float:
        """One value, before it is cast to the dtype."""
        kind = self.values
        if kind == "index":
            return rng.randrange(max(self.bound, 1))
        if self.dtype == "bool":
            return rng.randrange(256) if kind == "special" else rng.randrange(2)
        whole = DTYPES[self.dtype][1] not in "efd" and self.dtype != "bfloat16"
        if kind == "special" and not (whole and rng.random() < 0.5):
            value = rng.choice(_LIMITS if whole else _SPECIAL)
            return value if rng.random() < 0.7 else rng.randrange(-3, 4)
        if kind == "extreme":
            return rng.choice(_LIMITS + (2**63, 2**64 - 1) if whole else _SPECIAL + _EXTREMES)
        if kind == "index out of range":
            near = (self.bound, self.bound + 1, -1, -self.bound - 1, self.bound * 1000)
            return rng.choice(near if rng.random() < 0.5 else _LIMITS)
        if kind == "zero":
            return 0
        if kind == "one":
            return 1
        if kind == "positive":
            return rng.randrange(1, 4) if whole else rng.uniform(0.05, 0.95)
        if kind == "ascending":
            self._last = getattr(self, "_last", 0) + rng.randrange(0, 3)
            return self._last
        if whole:
            return rng.randrange(0 if self.dtype.startswith("u") else -4, 5)
        return rng.randrange(-3, 4) if rng.random() < 0.15 else rng.uniform(-3, 3)


def _packed(letter: str, value: float) -> bytes:
    try:
        return struct.pack("=" + letter, float(value))
    except OverflowError:
        return struct.pack("=" + letter, math.copysign(math.inf, value))


# ---- Lamella's tensors ---------------------------------------------------------------------------


def make_lamella(operand: Operand, rng: Any) -> Any:
    """The tensor. Its memory is kept in `operand.root().memory`."""
    import lamella
    from lamella import _C

    dtype = getattr(lamella, operand.dtype)
    if operand.device == "meta":
        made = lamella.empty(operand.storage_elements(), dtype=dtype, device="meta")
        return made.as_strided(operand.shape, operand.laid_out(), operand.offset)
    root = operand.root()
    if root.memory is None or root.memory.live is None:
        if root.memory is None:
            root.memory = Memory(root.bytes(rng))
        _C._set_guarded_memory(True, fill[0], 0x5A, root.placement)
        contents = root.memory.contents
        live = lamella.empty(root.storage_elements(), dtype=getattr(lamella, root.dtype))
        _C._set_guarded_memory(True, fill[0], 0x5A, 0)
        if contents:
            ctypes.memmove(live.data_ptr(), contents, len(contents))
        root.memory.live = live
    made = root.memory.live
    if operand.dtype != root.dtype:
        made = _C._storage_bytes(made).view(dtype)
    if operand.strides is None and list(made.shape) == operand.shape:
        made = made.detach()
    else:
        made = made.as_strided(operand.shape, operand.laid_out(), operand.offset).detach()
    if operand.conj:
        made = made.conj()
    if operand.neg:
        made = lamella.ops.aten._neg_view(made)
    if operand.requires_grad:
        made.requires_grad_()
    return made


# ---- PyTorch's tensors ---------------------------------------------------------------------------


def make_torch(operand: Operand, rng: Any) -> Any:
    import torch

    dtype = getattr(torch, operand.dtype)
    if operand.device == "meta":
        made = torch.empty(operand.storage_elements(), dtype=dtype, device="meta")
        return made.as_strided(operand.shape, operand.laid_out(), operand.offset)
    root = operand.root()
    if root.memory is None:
        root.memory = Memory(root.bytes(rng))
    if root.memory.live is None:
        live = torch.empty(len(root.memory.contents), dtype=torch.uint8)
        if root.memory.contents:
            ctypes.memmove(live.data_ptr(), root.memory.contents, len(root.memory.contents))
        root.memory.live = live
    made = root.memory.live.view(dtype)
    made = made.as_strided(operand.shape, operand.laid_out(), operand.offset).detach()
    if operand.conj:
        made = made.conj()
    if operand.neg:
        made = torch._neg_view(made)
    if operand.requires_grad:
        made.requires_grad_()
    return made
