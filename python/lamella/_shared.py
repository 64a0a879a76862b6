"""Tensors in memory that is shared between processes, as memory-mapped files in /dev/shm."""

from __future__ import annotations

import functools
import mmap
import os
import tempfile
import weakref
from typing import TYPE_CHECKING, Any

from lamella import _C, Tensor, _storage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class _Mapping(mmap.mmap):
    """A memory-mapped file. The tensors over it keep it alive."""

    path: str


# Mappings by the address of the first byte.
_mappings: weakref.WeakValueDictionary[int, _Mapping] = weakref.WeakValueDictionary()


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner and os.path.exists(path):
        os.remove(path)


def map_file(path: str, size: int) -> Tensor:
    """The first `size` bytes of a file, at least one, as a uint8 tensor; writes reach the file."""
    with open(path, "r+b") as file:
        mapping = _Mapping(file.fileno(), size)
    mapping.path = path
    made: Tensor = _C.frombuffer(mapping, dtype=_C.uint8)
    _mappings[made.data_ptr()] = mapping
    return made


def _new_mapping(size: int) -> Tensor:
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else None
    number, path = tempfile.mkstemp(prefix="lamella_", dir=folder)
    try:
        os.ftruncate(number, size)
        made = map_file(path, size)
    except BaseException:
        os.remove(path)
        raise
    finally:
        os.close(number)
    # The file is removed when the creating process drops its last tensor over it.
    weakref.finalize(_mappings[made.data_ptr()], _remove, path, os.getpid())
    return made


def _mapping_of(tensor: Tensor) -> _Mapping | None:
    return _mappings.get(_storage.storage_of(tensor).data_ptr())


def is_shared(tensor: Tensor) -> bool:
    """Whether the tensor's memory is shared with other processes."""
    return tensor.device.type == "cpu" and _mapping_of(tensor) is not None


def share_memory(tensor: Tensor) -> Tensor:
    """Moves the tensor's elements to memory shared between processes; returns the tensor itself.

    Other tensors over its former memory keep that memory.
    """
    if tensor.device.type != "cpu" or is_shared(tensor):
        return tensor
    _pass_to_processes()
    before = _storage.storage_of(tensor)
    if before.nbytes() == 0:
        return tensor
    made = _new_mapping(before.nbytes()).copy_(before._bytes)
    place = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
    tensor.data = _storage.rebuild_tensor(_storage.storage_of(made), tensor.dtype, *place)
    return tensor


def _rebuild(
    cls: type[Tensor],
    path: str,
    size: int,
    dtype: Any,
    place: tuple[int, Sequence[int], Sequence[int]],
    requires_grad: bool,
) -> Tensor:
    known = [mapping for mapping in _mappings.values() if mapping.path == path]
    if known:
        made: Tensor = _C.frombuffer(known[0], dtype=_C.uint8)
    else:
        made = map_file(path, size)
    made = _storage.rebuild_tensor(_storage.storage_of(made), dtype, *place)
    if cls is not _C.Tensor:
        return _C._make_subclass(cls, made, requires_grad)
    return made.requires_grad_() if requires_grad else made


def _reduced(tensor: Tensor) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The pickle of a tensor that is sent to another process: the path of its shared memory with
    its geometry, or a copy of a tensor that is not shared."""
    mapping = _mapping_of(tensor) if is_shared(tensor) else None
    if mapping is None or not tensor.is_leaf:
        made = tensor.__reduce_ex__(4)
        return made  # type: ignore[return-value]
    place = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
    arguments = mapping.path, len(mapping), tensor.dtype, place, tensor.requires_grad
    return _rebuild, (type(tensor), *arguments)


@functools.cache
def _pass_to_processes() -> None:
    from multiprocessing.reduction import ForkingPickler

    from lamella.nn import Parameter

    for kind in (_C.Tensor, Parameter):
        ForkingPickler.register(kind, _reduced)
