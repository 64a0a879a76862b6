"""torch.storage: storages with a dtype."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella import UntypedStorage as UntypedStorage
from lamella._storage import rebuild_tensor
from lamella.compat._functions import from_file
from lamella.compat._wrapper_policy import _WrapperStorage

# The dtypes that have a storage class.
STORAGE_DTYPES: dict[str, Any] = {
    "DoubleStorage": lamella.float64,
    "FloatStorage": lamella.float32,
    "HalfStorage": lamella.float16,
    "BFloat16Storage": lamella.bfloat16,
    "LongStorage": lamella.int64,
    "IntStorage": lamella.int32,
    "ShortStorage": lamella.int16,
    "CharStorage": lamella.int8,
    "ByteStorage": lamella.uint8,
    "BoolStorage": lamella.bool,
    "ComplexDoubleStorage": lamella.complex128,
    "ComplexFloatStorage": lamella.complex64,
}


def _dtype_to_storage_type_map() -> dict[Any, str]:
    """The names of the storage classes, by dtype."""
    return {dtype: name for name, dtype in STORAGE_DTYPES.items()}


def _storage_type_to_dtype_map() -> dict[str, Any]:
    """The dtypes of the storage classes, by name."""
    return dict(STORAGE_DTYPES)


class TypedStorage:
    """The memory of a tensor, as elements of its dtype.

    It is created with a number of uninitialized elements, from a sequence of values, or over an
    UntypedStorage. dtype: None is the default dtype.
    """

    dtype: Any = None

    def __init__(
        self,
        *values: Any,
        wrap_storage: Any = None,
        dtype: Any = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        dtype = dtype or type(self).dtype or lamella.get_default_dtype()
        if len(values) > 1:
            raise RuntimeError(
                f"{type(self).__name__}: expected one argument at most, got {len(values)}"
            )
        if wrap_storage is None and values and isinstance(values[0], UntypedStorage):
            wrap_storage = values[0]
        if wrap_storage is None:
            given = values[0] if values else 0
            if isinstance(given, TypedStorage):
                given = given._elements().to(dtype)
            elif isinstance(given, int):
                given = lamella.empty(given, dtype=dtype, device=device)
            else:
                given = lamella.tensor(given, dtype=dtype, device=device)
            wrap_storage = given.untyped_storage()
        elif not isinstance(wrap_storage, (UntypedStorage, _WrapperStorage)):
            raise TypeError(
                f"{type(self).__name__}: expected 'wrap_storage' to be an UntypedStorage, got "
                + type(wrap_storage).__name__
            )
        self._untyped_storage, self.dtype = wrap_storage, dtype

    @classmethod
    def _over(cls, memory: Any, dtype: Any) -> TypedStorage:
        return TypedStorage(wrap_storage=memory, dtype=dtype)

    @classmethod
    def from_buffer(
        cls, data: Any, byte_order: str = "native", count: int = -1, offset: int = 0
    ) -> TypedStorage:
        """A storage with a copy of a buffer's elements. byte_order: native, little or big."""
        dtype = cls.dtype or lamella.uint8
        if byte_order not in ("native", "little", "big"):
            raise ValueError(
                f"from_buffer: expected 'byte_order' to be native, little or big, got {byte_order}"
            )
        words = bytearray(memoryview(data).cast("B"))[offset:]
        size = dtype.itemsize
        whole = len(words) // size
        if (count < 0 and len(words) % size) or count > whole:
            raise ValueError(
                f"from_buffer: expected {'a multiple of' if count < 0 else count * size} "
                f"{size if count < 0 else 'bytes'}, got {len(words)}"
            )
        words = words[: (whole if count < 0 else count) * size]
        if byte_order == "big" and size > 1:
            for at in range(0, len(words), size):
                words[at : at + size] = words[at : at + size][::-1]
        if not words:
            return cls(0, dtype=dtype)
        return cls(wrap_storage=lamella.frombuffer(words, dtype=dtype).clone().untyped_storage())

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first `size` elements of a file; with `shared` it shares the file's memory."""
        made = from_file(os.fspath(filename), shared, size, dtype=cls.dtype)
        return cls(wrap_storage=made.untyped_storage())

    def _elements(self) -> Tensor:
        return rebuild_tensor(self._untyped_storage, self.dtype, 0, (len(self),), (1,))

    def _elements_of(self, dtype: Any) -> Tensor:
        """The elements for tensor(storage, dtype=dtype)."""
        if dtype != self.dtype:
            raise RuntimeError(f"tensor: expected a storage of {dtype}, got one of {self.dtype}")
        return self._elements()

    @property
    def device(self) -> Any:
        """The device of the memory."""
        return self._untyped_storage.device

    @property
    def _cdata(self) -> int:
        return int(_C._storage_address(self._untyped_storage._tensor))

    def __len__(self) -> int:
        return int(self._untyped_storage.nbytes()) // int(self.dtype.itemsize)

    size = _size = __len__

    def nbytes(self) -> int:
        """The size in bytes."""
        return int(self._untyped_storage.nbytes())

    def element_size(self) -> int:
        """The size of one element, in bytes."""
        return int(self.dtype.itemsize)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def data_ptr(self) -> int:
        """The address of the memory."""
        return int(self._untyped_storage.data_ptr())

    def untyped(self) -> Any:
        """The same memory as bytes."""
        return self._untyped_storage

    def tolist(self) -> list[Any]:
        """The elements as a list."""
        return list(self._elements().tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("TypedStorage: expected an int as the index to read, got a slice")
        if self.device.type == "meta":
            raise NotImplementedError("TypedStorage: Not available for 'meta' device type")
        return self._elements()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        value = value._elements() if isinstance(value, TypedStorage) else value
        self._elements()[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def fill_(self, value: Any) -> TypedStorage:
        """Sets all elements to a number."""
        self._elements().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Copies the elements of another storage, converted to this dtype."""
        self._elements().copy_(source._elements())
        return self

    def clone(self) -> TypedStorage:
        """A copy with its own memory."""
        return TypedStorage._over(self._untyped_storage.clone(), self.dtype)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """The storage itself if it is on the device, else a copy there."""
        return TypedStorage._over(self._untyped_storage.to(device), self.dtype)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The class name for the dtype; given a dtype, a storage with converted elements."""
        if dtype is None:
            return f"torch.{self.pickle_storage_type()}"
        kind = STORAGE_DTYPES.get(str(dtype).rpartition(".")[2], dtype)
        return TypedStorage._over(self._elements().to(kind).untyped_storage(), kind)

    def pickle_storage_type(self) -> str:
        """The class name for the dtype."""
        name = _dtype_to_storage_type_map().get(self.dtype)
        if name is None:
            raise KeyError(f"TypedStorage: expected a dtype with a storage type, got {self.dtype}")
        return name

    _pickle_storage_type = pickle_storage_type

    def _new_shared(self, size: int, *, device: Any = None) -> TypedStorage:
        return TypedStorage(size, dtype=self.dtype, device=device)

    def resizable(self) -> bool:
        """True: a tensor over the memory may grow it."""
        return True

    def is_shared(self) -> bool:
        """True if the memory is shared with other processes."""
        return bool(self._elements().is_shared())

    def share_memory_(self) -> TypedStorage:
        """Moves the elements to shared memory."""
        self._elements().share_memory_()
        return self

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """The storage itself: there is no device to copy to."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return TypedStorage._over(self._untyped_storage.__deepcopy__(memo), self.dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypedStorage):
            return NotImplemented
        return self.data_ptr() == other.data_ptr() and self.nbytes() == other.nbytes()

    __hash__ = object.__hash__

    def __str__(self) -> str:
        values = "".join(f" {value}\n" for value in self)
        kind = f"dtype={self.dtype}, device={self.device}"
        return f"{values}[torch.storage.TypedStorage({kind}) of size {len(self)}]"

    __repr__ = __str__

    def cpu(self) -> TypedStorage:
        """The storage itself if it is on the CPU, else a copy there."""
        return self.to(device="cpu")


def _conversion(dtype: Any) -> Any:
    def convert(self: TypedStorage) -> Any:
        return self.type(dtype)

    convert.__doc__ = f"type({dtype})"
    return convert


for _name, _dtype in STORAGE_DTYPES.items():
    _short = _name.removesuffix("Storage")
    _method = {"ComplexDouble": "complex_double", "ComplexFloat": "complex_float"}
    setattr(TypedStorage, _method.get(_short, _short.lower()), _conversion(_dtype))


class _StorageType(type):
    """The metaclass of torch.FloatStorage: storages of one dtype are instances of the class."""

    dtype: Any

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, TypedStorage) and value.dtype == cls.dtype


# torch.FloatStorage and the other classes.
STORAGE_TYPES: dict[str, Any] = {
    name: _StorageType(name, (TypedStorage,), {"__module__": "torch", "dtype": dtype})
    for name, dtype in STORAGE_DTYPES.items()
}


_TypedStorage = TypedStorage
Storage = STORAGE_TYPES["FloatStorage"]


def is_storage(obj: Any) -> bool:
    """Whether the object is a storage."""
    return isinstance(obj, (UntypedStorage, TypedStorage))
