"""torch.LongTensor and similar types: dtypes that act like classes of tensors."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor, _storage
from lamella.compat.storage import STORAGE_DTYPES, STORAGE_TYPES

DTYPES = {name.removesuffix("Storage"): dtype for name, dtype in STORAGE_DTYPES.items()}


class _TensorType(type):
    """The metaclass of torch.LongTensor: tensors of one dtype are instances of the class."""

    dtype: Any
    device: str

    def __instancecheck__(cls, value: Any) -> bool:
        return (
            isinstance(value, Tensor)
            and value.dtype == cls.dtype
            and ("sparse" if value.is_sparse else value.device.type) == cls.device
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Creates a tensor from values, an uninitialized one from sizes, or an empty one."""
        if cls.device == "sparse":
            from lamella._sparse_making import sparse_coo_tensor

            return sparse_coo_tensor(*_sparse_parts(args), dtype=cls.dtype)
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
        data = getattr(data, "_untyped_storage", data)
        if isinstance(data, _storage.UntypedStorage):
            return _storage.rebuild_tensor(
                data, cls.dtype, 0, (data.nbytes() // cls.dtype.itemsize,), (1,)
            )
        if isinstance(data, Tensor) and data.dtype != cls.dtype:
            raise TypeError(f"{cls.__name__}: expected a tensor of {cls.dtype}, got {data.dtype}")
        if isinstance(data, Tensor):
            return data.detach()
        return lamella.tensor(data, dtype=cls.dtype)


def _sparse_parts(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Translates parts or sizes to the arguments of sparse_coo_tensor()."""
    return (None, None, args) if all(type(arg) is int for arg in args) else args


def _tensor_type(name: str, device: str) -> _TensorType:
    module = "torch" if device == "cpu" else f"torch.{device}"
    made = _TensorType(f"{name}Tensor", (), {"__module__": module})
    made.dtype, made.device = DTYPES[name], device
    return made


_MADE: dict[str, Any] = dict(STORAGE_TYPES)
# The tensor types by the text that Tensor.type() takes and returns.
TENSOR_TYPES: dict[str, _TensorType] = {}
for _name in DTYPES:
    for _device in ("cpu", "cuda", "sparse"):
        _type = _tensor_type(_name, _device)
        TENSOR_TYPES[f"{_type.__module__}.{_type.__name__}"] = _type
        if _device != "cuda":
            _MADE[_type.__name__ if _device == "cpu" else f"Sparse{_type.__name__}"] = _type
globals().update(_MADE)


class _NamedDtype:
    """The name of a dtype that Lamella lacks."""

    is_complex = False

    def __init__(self, name: str, itemsize: int) -> None:
        self.name, self.itemsize = name, itemsize
        self.is_floating_point = name.startswith("float")
        self.is_signed = self.is_floating_point or name.startswith("int")

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> Any:
        return self.name


qint8, quint8 = _NamedDtype("qint8", 1), _NamedDtype("quint8", 1)
qint32 = _NamedDtype("qint32", 4)
quint4x2, quint2x4 = _NamedDtype("quint4x2", 1), _NamedDtype("quint2x4", 1)
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (_NamedDtype(f"uint{i}", 1) for i in range(1, 8))
int1, int2, int3, int4, int5, int6, int7 = (_NamedDtype(f"int{i}", 1) for i in range(1, 8))
float8_e4m3fnuz, float8_e5m2fnuz = (
    _NamedDtype("float8_e4m3fnuz", 1),
    _NamedDtype("float8_e5m2fnuz", 1),
)
float8_e8m0fnu = _NamedDtype("float8_e8m0fnu", 1)
float4_e2m1fn_x2 = _NamedDtype("float4_e2m1fn_x2", 1)


def set_default_tensor_type(t: Any) -> None:
    """Makes a tensor type's dtype the default: "torch.DoubleTensor", or the type itself."""
    kind = TENSOR_TYPES.get(t) if isinstance(t, str) else t
    if not isinstance(kind, _TensorType) or kind.device != "cpu":
        raise TypeError(f"set_default_tensor_type: expected a type of the CPU's tensors, got {t!r}")
    lamella.set_default_dtype(kind.dtype)
