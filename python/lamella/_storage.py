"""UntypedStorage, and copying and pickling of tensors: tensors that share memory still share it
afterwards."""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from lamella import _C, Tensor

if TYPE_CHECKING:
    from typing_extensions import TypeGuard

    import lamella

    # What __reduce__ returns: a function and its arguments.
    _Reduced = tuple[Callable[..., Any], tuple[Any, ...]]


# Address of the C++ storage -> its object. An entry lives as long as the object, which keeps the
# storage alive, so an address is not reused for another storage.
_storages: weakref.WeakValueDictionary[int, UntypedStorage] = weakref.WeakValueDictionary()


class UntypedStorage:
    """The memory that one or more tensors are views of, as bytes.

    UntypedStorage(size) has `size` undefined bytes, or the bytes of a sequence of ints.
    """

    _tensor: Tensor  # one of the tensors over the memory
    filename: str | None = None  # the file that the storage shares, where from_file() made it

    def __new__(
        cls, size: int | Sequence[int] = 0, *, device: lamella.device | str | None = None
    ) -> UntypedStorage:
        import lamella

        if isinstance(size, int):
            return storage_of(lamella.empty(size, dtype=lamella.uint8, device=device))
        return storage_of(lamella.tensor(list(size), dtype=lamella.uint8, device=device))

    @property
    def _bytes(self) -> Tensor:
        # Not cached, since resizing a tensor may enlarge the memory.
        made: Tensor = _C._storage_bytes(self._tensor)
        return made

    def _elements_of(self, dtype: lamella.dtype) -> Tensor:
        """The memory as elements of a dtype: tensor(storage, dtype=dtype)."""
        return rebuild_tensor(self, dtype, 0, (self.nbytes() // dtype.itemsize,), (1,))

    @property
    def device(self) -> lamella.device:
        return self._tensor.device

    def nbytes(self) -> int:
        """The size in bytes."""
        size: int = _C.Tensor._storage_info(self._tensor)[2]
        return size

    size = nbytes
    __len__ = nbytes

    def element_size(self) -> int:
        """1"""
        return 1

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._bytes.data_ptr()

    def tolist(self) -> list[int]:
        """The bytes as a list of ints."""
        return self._bytes.tolist()

    @staticmethod
    def from_file(
        filename: str | os.PathLike[str], shared: bool = False, nbytes: int = 0
    ) -> UntypedStorage:
        """The first bytes of a file, memory-mapped: pages are read from the disk on first use.

        shared: writes reach the file, which is created or extended to nbytes if it is shorter; if
        False, writes are private to this storage. nbytes: 0 stands for the whole file. RuntimeError
        if a file that is not shared has fewer bytes.
        """
        if nbytes < 0:
            raise RuntimeError(f"from_file: expected 'nbytes' to be at least 0, got {nbytes}")
        flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
        handle = os.open(filename, flags, 0o666)
        try:
            there = os.fstat(handle).st_size
            if there < nbytes and not shared:
                raise RuntimeError(
                    f"from_file: expected {nbytes} bytes, got {there}, in {os.fspath(filename)}"
                )
            if there < nbytes:
                os.ftruncate(handle, nbytes)
            count = nbytes or there
            if not count:
                return _storage_from_bytes(bytearray())
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            mapped = mmap.mmap(handle, count, access=access)
            made = storage_of(_C.frombuffer(mapped, dtype=_C.uint8))
            if shared:
                made.filename = os.fspath(filename)
            return made
        finally:
            os.close(handle)

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> UntypedStorage: ...

    def __getitem__(self, index: int | slice) -> int | UntypedStorage:
        """One byte, or a storage over a range of the same memory; RuntimeError for a step other
        than 1."""
        if self.device.type == "meta":
            raise NotImplementedError("UntypedStorage: Not available for 'meta' device type")
        if isinstance(index, int):
            return self._bytes[index].item()
        begin, end, step = index.indices(len(self))
        if step != 1:
            raise RuntimeError(f"UntypedStorage: expected slices of step 1, got {step}")
        if end <= begin:
            return _storage_from_bytes(bytearray())
        return storage_of(_C.frombuffer(memoryview(self._bytes)[begin:end], dtype=_C.uint8))

    def __setitem__(self, index: int | slice, value: int) -> None:
        self._bytes[index] = value

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def __dlpack__(self, **options: Any) -> Any:
        return self._bytes.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._bytes.__dlpack_device__()

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def fill_(self, value: int) -> UntypedStorage:
        """Sets all bytes to a value."""
        self._bytes.fill_(value)
        return self

    def copy_(self, source: UntypedStorage, non_blocking: bool = False) -> UntypedStorage:
        """Copies the bytes of another storage of the same size."""
        self._bytes.copy_(source._bytes)
        return self

    def clone(self) -> UntypedStorage:
        """A copy in new memory."""
        return storage_of(self._bytes.clone())

    def to(self, device: lamella.device | str, non_blocking: bool = False) -> UntypedStorage:
        """The storage itself if it is on the device, else a copy there."""
        moved = self._bytes.to(device)
        return self if moved.device == self.device else storage_of(moved)

    def cpu(self) -> UntypedStorage:
        """to("cpu")"""
        return self.to("cpu")

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]

    def __reduce__(self) -> _Reduced:
        return _storage_from_bytes, (bytearray(memoryview(self._bytes)),)

    def __repr__(self) -> str:
        return f"<lamella.UntypedStorage of {self.nbytes()} bytes on {self.device}>"


def is_storage(obj: Any) -> TypeGuard[UntypedStorage]:
    """Whether the object is a storage."""
    return isinstance(obj, UntypedStorage)


def _storage_from_bytes(data: bytearray) -> UntypedStorage:
    if not data:
        return storage_of(_C.tensor([], dtype=_C.uint8))
    return storage_of(_C.frombuffer(data, dtype=_C.uint8).clone())


def storage_of(tensor: Tensor) -> UntypedStorage:
    address: int = _C.Tensor._storage_info(tensor)[0]
    storage = _storages.get(address)
    if storage is None:
        storage = object.__new__(UntypedStorage)
        storage._tensor = _C._storage_bytes(tensor)
        _storages[address] = storage
    return storage


def _lazy(tensor: Tensor) -> int:
    return int(tensor.is_conj()) | int(tensor.is_neg()) << 1


def rebuild_tensor(
    storage: UntypedStorage,
    dtype: lamella.dtype,
    offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    lazy: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    tensor: Tensor = _C._view_storage(storage._tensor, dtype, offset, size, stride, lazy)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_meta_tensor(
    dtype: lamella.dtype, size: Sequence[int], stride: Sequence[int], requires_grad: bool = False
) -> Tensor:
    import lamella

    return lamella.empty_strided(
        size, stride, dtype=dtype, device="meta", requires_grad=requires_grad
    )


def rebuild_on_device(
    tensor: Tensor, device: lamella.device, requires_grad: bool = False
) -> Tensor:
    tensor = tensor.detach().to(device)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_subclass(
    cls: type[Tensor],
    function: Callable[..., Tensor],
    args: tuple[Any, ...],
    state: dict[str, Any] | None,
) -> Tensor:
    made = function(*args)
    tensor: Tensor = _C._make_subclass(cls, made, made.requires_grad)
    if state:
        tensor.__dict__.update(state)
    return tensor


def rebuild_wrapper(
    cls: type[Tensor],
    size: Sequence[int],
    stride: Sequence[int],
    options: dict[str, Any],
    state: dict[str, Any],
) -> Tensor:
    tensor: Tensor = _C.Tensor._make_wrapper_subclass(cls, size, strides=stride, **options)
    tensor.__dict__.update(state)
    return tensor


def reduce_tensor(tensor: Tensor) -> _Reduced:
    result: _Reduced
    if _C._is_wrapper(tensor):
        options = {
            "storage_offset": tensor.storage_offset(),
            "dtype": tensor.dtype,
            "device": tensor.device,
            "requires_grad": tensor.requires_grad,
        }
        shape = tuple(tensor.shape), tensor.stride()
        return rebuild_wrapper, (type(tensor), *shape, options, tensor.__dict__)
    if tensor.device.type == "meta":
        size, stride = tuple(tensor.shape), tensor.stride()
        result = (rebuild_meta_tensor, (tensor.dtype, size, stride, tensor.requires_grad))
    elif tensor.device.type != "cpu":
        result = (rebuild_on_device, (tensor.detach().cpu(), tensor.device, tensor.requires_grad))
    else:
        geometry = (tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), _lazy(tensor))
        result = (
            rebuild_tensor,
            (storage_of(tensor), tensor.dtype, *geometry, tensor.requires_grad),
        )
    state = tensor.__dict__
    if type(tensor) is not _C.Tensor or state:
        result = (rebuild_subclass, (type(tensor), *result, state))
    return result


def copy_tensor(tensor: Tensor) -> Tensor:
    function, args = reduce_tensor(tensor)
    made: Tensor = function(*args)
    return made


def deepcopy_tensor(tensor: Tensor, memo: dict[int, Any]) -> Any:
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise RuntimeError(
            "deepcopy: expected a leaf, got a computed tensor; copy it with detach().clone()"
        )
    import copy

    if _C._is_wrapper(tensor):
        result = tensor.detach().clone()
        if type(result) is not type(tensor):
            raise RuntimeError(
                f"deepcopy: expected clone() of {type(tensor).__name__} to return one, got "
                f"{type(result).__name__}; the class may define __deepcopy__"
            )
    elif tensor.device.type == "cpu":
        storage = copy.deepcopy(storage_of(tensor), memo)
        result = rebuild_tensor(
            storage,
            tensor.dtype,
            tensor.storage_offset(),
            tuple(tensor.shape),
            tensor.stride(),
            _lazy(tensor),
        )
    else:
        result = tensor.detach().clone()
    if type(tensor) is not type(result):
        result = _C._make_subclass(type(tensor), result)
    if tensor.requires_grad:
        result.requires_grad_()
    memo[id(tensor)] = result
    if tensor.grad is not None:
        result.grad = copy.deepcopy(tensor.grad, memo)
    if tensor.__dict__:
        result.__dict__.update(copy.deepcopy(tensor.__dict__, memo))
    return result
