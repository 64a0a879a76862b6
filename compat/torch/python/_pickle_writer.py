"""The pickle writer for .pt files: Lamella's objects by PyTorch's names, storages as keys."""

from __future__ import annotations

import copyreg
import pickle
from collections import OrderedDict
from typing import Any

import lamella
from lamella import _C, Tensor, _storage
from lamella.compat._pickle_names import STORAGES
from lamella.compat.storage import TypedStorage, UntypedStorage
from lamella.nn.parameter import Parameter

_STORAGE_NAMES = {dtype: name for name, dtype in STORAGES.items()}


class _Global:
    """A function or class, written by its name in the file."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> Any:  # pickle requires a callable
        raise AssertionError("a name of a file is not called")


_V2 = _Global("torch._utils", "_rebuild_tensor_v2")
_V3 = _Global("torch._utils", "_rebuild_tensor_v3")
_META = _Global("torch._utils", "_rebuild_meta_tensor_no_storage")
_PARAMETER = _Global("torch._utils", "_rebuild_parameter")
_PARAMETER_WITH_STATE = _Global("torch._utils", "_rebuild_parameter_with_state")
_SUBCLASS = _Global("torch._tensor", "_rebuild_from_type_v2")
_WRAPPER = _Global("torch._utils", "_rebuild_wrapper_subclass")
_SPARSE = _Global("torch._utils", "_rebuild_sparse_tensor")
_LAYOUT = _Global("torch.serialization", "_get_layout")
_SIZE = _Global("torch", "Size")
_DEVICE = _Global("torch", "device")
_TYPES = {name: _Global("torch", name) for name in STORAGES}
_BYTES = _Global("torch.storage", "UntypedStorage")


class _Kept:
    """A storage that is being written."""

    def __init__(self, key: str, dtype: Any, location: str, count: int) -> None:
        kind = _TYPES[_STORAGE_NAMES[dtype]] if dtype in _STORAGE_NAMES else _BYTES
        self.saved = ("storage", kind, key, location, count)


def _distributions_home(name: str) -> str:
    """PyTorch's module for a class of distributions, constraints or transforms."""
    from lamella.compat import distributions

    if hasattr(distributions, name):
        return "torch.distributions"
    has = hasattr(distributions.constraints, name)
    return f"torch.distributions.{'constraints' if has else 'transforms'}"


class Writer(pickle._Pickler):
    """A pickler that collects storages under the keys that it wrote for them."""

    def __init__(self, file: Any, protocol: int, legacy: bool = False) -> None:
        super().__init__(file, protocol)
        self.legacy = legacy  # whether view information may follow a storage's name
        self.storages: dict[str, Any] = {}
        self.itemsizes: dict[str, int] = {}
        self._keys: dict[int, tuple[str, Any]] = {}

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, TypedStorage):
            obj = self._keep(obj.untyped(), obj.dtype, str(obj.device))
        elif isinstance(obj, UntypedStorage):
            obj = self._keep(obj, lamella.uint8, str(obj.device))
        if not isinstance(obj, _Kept):
            return None
        if not self.legacy:
            return obj.saved
        name, kind, *rest = obj.saved
        # PyTorch cannot read storages without a dtype here.
        return (name, _TYPES["ByteStorage"] if kind is _BYTES else kind, *rest, None)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if isinstance(obj, (lamella.dtype, lamella.layout, lamella.memory_format)):
            obj = _Global("torch", str(obj).rpartition(".")[2])
        elif obj is Tensor:
            obj = _Global("torch", "Tensor")
        elif obj is Parameter:
            obj = _Global("torch.nn.parameter", "Parameter")
        elif isinstance(obj, type) and obj.__module__.startswith("lamella.compat.distributions."):
            obj = _Global(_distributions_home(obj.__name__), obj.__name__)
        elif not isinstance(obj, _Global):
            super().save_global(obj, name)  # type: ignore[misc]
            return
        self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())  # type: ignore[attr-defined]

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, _Global):
            return obj.name
        if isinstance(obj, Tensor):
            return self._reduced(obj)
        if isinstance(obj, lamella.layout):
            return _LAYOUT, (f"torch.{str(obj).rpartition('.')[2]}",)
        if isinstance(obj, (lamella.dtype, lamella.memory_format)):
            return str(obj)
        if isinstance(obj, lamella.Size):
            return _SIZE, (tuple(obj),)
        if isinstance(obj, lamella.device):
            index = () if obj.index is None else (obj.index,)
            return _DEVICE, (obj.type, *index)
        return NotImplemented

    def _reduced(self, tensor: Tensor) -> Any:
        state = getattr(tensor, "__dict__", None)
        if isinstance(tensor, Parameter) and Parameter in type(tensor).__mro__:
            plain = tensor.detach().as_subclass(Tensor)
            arguments: tuple[Any, ...] = (plain, tensor.requires_grad, OrderedDict())
            if state and type(tensor) is Parameter:
                return _PARAMETER_WITH_STATE, (*arguments, state)
            return _PARAMETER, arguments
        if tensor.layout != lamella.strided:
            return _SPARSE, tensor.__reduce_ex__(2)[1]
        function, arguments = self._plain(tensor)
        if type(tensor) is not Tensor:
            names = copyreg._slotnames(type(tensor))  # type: ignore[attr-defined]
            slots = {name: getattr(tensor, name) for name in names if hasattr(tensor, name)}
            if slots:
                state = (state, slots)
            return _SUBCLASS, (function, type(tensor), arguments, state)
        return function, arguments

    def _plain(self, tensor: Tensor) -> Any:
        size, stride = tuple(tensor.shape), tensor.stride()
        if _C._is_wrapper(tensor):
            shape = (size, stride, tensor.storage_offset(), tensor.layout, tensor.device)
            return _WRAPPER, (type(tensor), tensor.dtype, *shape, tensor.requires_grad)
        if tensor.device.type == "meta":
            return _META, (tensor.dtype, size, stride, tensor.requires_grad)
        lazy = {}
        if tensor.is_conj():
            lazy["conj"] = True
        if tensor.is_neg():
            lazy["neg"] = True
        location = str(tensor.device)
        here = tensor if location == "cpu" else tensor.detach().cpu()
        kept = self._keep(_storage.storage_of(here), tensor.dtype, location)
        place = (kept, here.storage_offset(), size, here.stride(), tensor.requires_grad)
        if tensor.dtype in _STORAGE_NAMES:
            return _V2, (*place, OrderedDict(), *([lazy] if lazy else []))
        return _V3, (*place, OrderedDict(), tensor.dtype, *([lazy] if lazy else []))

    def _keep(self, storage: Any, dtype: Any, location: str) -> _Kept:
        known = self._keys.get(id(storage))
        if known is None:
            known = self._keys[id(storage)] = (str(len(self.storages)), dtype)
            self.storages[known[0]] = storage
        if known[1] != dtype:
            raise RuntimeError(
                f"save: expected tensors over one memory to have one dtype, got {known[1]} and "
                f"{dtype}; clone() one of them"
            )
        itemsize = dtype.itemsize if dtype in _STORAGE_NAMES else 1
        self.itemsizes[known[0]] = itemsize
        return _Kept(known[0], dtype, location, storage.nbytes() // itemsize)
