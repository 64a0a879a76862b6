"""torch.LongTensor and its like: dtypes that are called and asked as if they were classes."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor, _storage
from lamella._sparse_making import sparse_coo_tensor

DTYPES = {
    "Double": lamella.float64,
    "Float": lamella.float32,
    "Half": lamella.float16,
    "BFloat16": lamella.bfloat16,
    "Long": lamella.int64,
    "Int": lamella.int32,
    "Short": lamella.int16,
    "Char": lamella.int8,
    "Byte": lamella.uint8,
    "Bool": lamella.bool,
    "ComplexDouble": lamella.complex128,
    "ComplexFloat": lamella.complex64,
}


class _TensorType(type):
    """The type of torch.LongTensor: a class that has tensors of one dtype as its instances."""

    dtype: Any
    device: str

    def __instancecheck__(cls, value: Any) -> bool:
        return (
            isinstance(value, Tensor)
            and value.dtype == cls.dtype
            and value.device.type == cls.device
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """A tensor of values, or of sizes with undefined elements, or an empty one."""
        if cls.device != "cpu":
            raise TypeError(f"{cls.__name__}: expected a device of type {cls.device}, found none")
        kwargs.pop("device", None)
        if kwargs:
            raise TypeError(f"{cls.__name__}: got an unexpected argument '{next(iter(kwargs))}'")
        if len(args) == 1 and isinstance(args[0], lamella.Size):
            args = tuple(args[0])
        if all(type(arg) is int for arg in args):
            return lamella.empty(args or 0, dtype=cls.dtype)
        if len(args) != 1:
            raise TypeError(
                f"{cls.__name__}: expected sizes or one sequence, got {len(args)} values"
            )
        data = args[0]
        data = getattr(data, "_memory", data)
        if isinstance(data, _storage.UntypedStorage):
            return _storage.rebuild_tensor(
                data, cls.dtype, 0, (data.nbytes() // cls.dtype.itemsize,), (1,)
            )
        if isinstance(data, Tensor) and data.dtype != cls.dtype:
            raise TypeError(f"{cls.__name__}: expected a tensor of {cls.dtype}, got {data.dtype}")
        if isinstance(data, Tensor):
            return data.detach()
        return lamella.tensor(data, dtype=cls.dtype)


class _SparseType(_TensorType):
    """The type of torch.sparse.FloatTensor."""

    def __instancecheck__(cls, value: Any) -> bool:
        sparse = getattr(value, "layout", None) == lamella.sparse_coo
        return bool(sparse and value.dtype == cls.dtype)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """A sparse tensor of (indices, values[, size]), or one of a size without elements."""
        if len(args) > 1 and isinstance(args[0], Tensor):
            return sparse_coo_tensor(*args, dtype=cls.dtype, **kwargs)
        size = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
        empty = lamella.empty((len(size), 0), dtype=lamella.int64)
        return sparse_coo_tensor(empty, lamella.empty(0, dtype=cls.dtype), tuple(size))


def _tensor_type(name: str, device: str) -> _TensorType:
    module = "torch" if device == "cpu" else f"torch.{device}"
    made = _TensorType(f"{name}Tensor", (), {"__module__": module})
    made.dtype, made.device = DTYPES[name], device
    return made


class _StorageType(type):
    """The type of torch.FloatStorage: storages have no dtype here."""

    dtype: Any

    def __instancecheck__(cls, value: Any) -> bool:
        return False

    def __call__(cls, *args: Any) -> Any:
        """A storage of so many elements, or of the values of a sequence."""
        data = args[0] if args else 0
        made = (
            lamella.empty(data, dtype=cls.dtype)
            if isinstance(data, int)
            else lamella.tensor(data, dtype=cls.dtype)
        )
        return made.untyped_storage()

    def from_buffer(cls, buffer: Any, *args: Any, **kwargs: Any) -> Any:
        """A storage of the elements of a buffer, copied."""
        return lamella.frombuffer(bytearray(buffer), dtype=cls.dtype).untyped_storage()


def _storage_type(name: str) -> _StorageType:
    made = _StorageType(f"{name}Storage", (), {"__module__": "torch"})
    made.dtype = DTYPES[name]
    return made


_MADE: dict[str, Any] = {f"{name}Storage": _storage_type(name) for name in DTYPES}
# By the text that Tensor.type() takes and gives.
TENSOR_TYPES: dict[str, _TensorType] = {}
for _name in DTYPES:
    for _device in ("cpu", "cuda"):
        _type = _tensor_type(_name, _device)
        TENSOR_TYPES[f"{_type.__module__}.{_type.__name__}"] = _type
        if _device == "cpu":
            _MADE[_type.__name__] = _type
for _name, _dtype in DTYPES.items():
    _type = _SparseType(f"{_name}Tensor", (), {"__module__": "torch.sparse"})
    _type.dtype, _type.device = _dtype, "cpu"
    _MADE[f"{_name}SparseTensor"] = _type
globals().update(_MADE)


class _QuantizedDtype:
    """The name of a dtype that no tensor has here."""

    def __init__(self, name: str, itemsize: int) -> None:
        self.name, self.itemsize = name, itemsize

    is_floating_point = is_complex = is_signed = False

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> Any:
        return self.name


qint8, quint8 = _QuantizedDtype("qint8", 1), _QuantizedDtype("quint8", 1)
qint32 = _QuantizedDtype("qint32", 4)
quint4x2, quint2x4 = _QuantizedDtype("quint4x2", 1), _QuantizedDtype("quint2x4", 1)


def set_default_tensor_type(t: Any) -> None:
    """Makes the dtype of a tensor type the default: "torch.DoubleTensor", or the type itself."""
    kind = TENSOR_TYPES.get(t) if isinstance(t, str) else t
    if not isinstance(kind, _TensorType) or kind.device != "cpu":
        raise TypeError(f"set_default_tensor_type: expected a type of the CPU's tensors, got {t!r}")
    lamella.set_default_dtype(kind.dtype)
