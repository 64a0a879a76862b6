"""torch._utils, as far as programs use it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import lamella
from lamella import Tensor
from lamella._storage import rebuild_tensor


def _element_size(dtype: Any) -> int:
    """The size of an element, in bytes."""
    return int(dtype.itemsize)


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements as one vector."""
    return lamella.cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Views of a vector in the shapes of tensors."""
    views, begin = [], 0
    for tensor in tensors:
        views.append(flat[begin : begin + tensor.numel()].view_as(tensor))
        begin += tensor.numel()
    return tuple(views)


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device; -1 for the CPU if that is allowed."""
    if isinstance(device, int):
        return device
    index: int | None = None if device is None else lamella.device(device).index
    return -1 if index is None else index


class ExceptionWrapper:
    """An exception of another process or thread."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        self.exc_type, self.where = exc_info[0], where
        self.exc_msg = str(exc_info[1])

    def reraise(self) -> None:
        """Raises the exception again, with its type."""
        raise self.exc_type(f"{self.where}: {self.exc_msg}")


_get_device_module = lamella.get_device_module


def _get_available_device_type() -> None:
    """None: the only device is the CPU."""


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Yields lists of tensors of one dtype with at least size_limit bytes each, except the last
    ones."""
    waiting: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        held = waiting.setdefault(tensor.type(), [])
        held.append(tensor)
        if sum(t.numel() * t.element_size() for t in held) >= size_limit:
            yield waiting.pop(tensor.type())
    yield from waiting.values()


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Tensor:
    """A parameter over the memory of a tensor."""
    return lamella.nn.Parameter(data, requires_grad)


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor over a storage, with the given offset, size and strides."""
    return _rebuild_tensor_v2(storage, storage_offset, size, stride, False, None)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """_rebuild_tensor() with the arguments that pickles of tensors have."""
    kept = metadata or {}
    lazy = int(bool(kept.get("conj"))) | int(bool(kept.get("neg"))) << 1
    memory, dtype = storage.untyped(), storage.dtype
    return rebuild_tensor(memory, dtype, storage_offset, size, stride, lazy, requires_grad)
