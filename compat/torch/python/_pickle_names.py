"""The functions and classes that a .pt file may refer to, by PyTorch's names."""

from __future__ import annotations

import collections
import enum
import importlib
import inspect
import pickle
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import lamella
from lamella import _C, Tensor, _storage
from lamella.compat.storage import STORAGE_DTYPES as STORAGES
from lamella.compat.storage import TypedStorage
from lamella.nn.parameter import Parameter


class StorageType:
    """The type of a storage as a file names it; the dtype is None for untyped storages."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype


class Stored(TypedStorage):
    """A storage of a file, with the dtype that it was saved with."""

    def __init__(self, memory: Any, dtype: Any, target: Any) -> None:
        super().__init__(wrap_storage=memory, dtype=dtype)
        self.target = target  # the device of the tensors over it


class CppArchive:
    """An archive of values by name inside a file that C++ wrote."""

    values: dict[str, Any]

    def __setstate__(self, state: Any) -> None:
        self.values = {}
        _expect(isinstance(state, dict), "values by name", state)
        for name, value in state.items():
            inner = value.values if isinstance(value, CppArchive) else {"": value}
            for below, one in inner.items():
                self.values[f"{name}.{below}" if below else name] = one


def _expect(right: bool, expected: str, got: Any) -> None:
    if not right:
        raise RuntimeError(f"load: expected {expected}, got {type(got).__name__}")


def _tensor(
    stored: Any,
    dtype: Any,
    offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    requires_grad: bool,
    metadata: Any = None,
) -> Tensor:
    _expect(isinstance(stored, Stored), "a tensor of a storage", stored)
    _expect(isinstance(dtype, lamella.dtype), "a tensor's dtype", dtype)
    lazy = 0
    if metadata:
        lazy = int(bool(metadata.get("conj"))) | int(bool(metadata.get("neg"))) << 1
    tensor: Tensor
    if stored.target.type == "meta":
        tensor = lamella.empty_strided(size, stride, dtype=dtype, device="meta")
    else:
        tensor = _storage.rebuild_tensor(stored.untyped(), dtype, offset, size, stride, lazy)
        if tensor.device != stored.target:
            tensor = tensor.to(stored.target)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_v2(
    stored: Any, offset: int, size: Any, stride: Any, requires_grad: bool, *rest: Any
) -> Tensor:
    """rest: hooks, which are never saved, and the conjugate and negative bits."""
    metadata = rest[1] if len(rest) > 1 else None
    dtype = getattr(stored, "dtype", None)
    return _tensor(stored, dtype, offset, size, stride, requires_grad, metadata)


def _rebuild_v3(
    stored: Any,
    offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    return _tensor(stored, dtype, offset, size, stride, requires_grad, metadata)


def _rebuild_v1(stored: Any, offset: int, size: Any, stride: Any) -> Tensor:
    return _rebuild_v2(stored, offset, size, stride, False)


def _rebuild_parameter(data: Any, requires_grad: bool, hooks: Any, state: Any = None) -> Parameter:
    _expect(isinstance(data, Tensor), "a parameter's tensor", data)
    parameter = Parameter(data, requires_grad)
    if state:
        state = state[0] if isinstance(state, tuple) else state
        _expect(isinstance(state, dict), "a parameter's attributes", state)
        parameter.__dict__.update(state)
    return parameter


def _rebuild_subclass(function: Any, kind: Any, args: Any, state: Any) -> Any:
    tensor = function(*args)
    is_kind = isinstance(kind, type) and issubclass(kind, Tensor) and kind is not Tensor
    if is_kind and type(tensor) is not kind:
        tensor = _C._make_subclass(kind, tensor, tensor.requires_grad)
    state, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, {})
    if state and hasattr(tensor, "__dict__"):
        tensor.__dict__.update(state[0] if isinstance(state, tuple) else state)
    for name, value in slots.items():
        setattr(tensor, name, value)
    return tensor


def _rebuild_wrapper(
    kind: Any, dtype: Any, size: Any, stride: Any, offset: int, layout: Any, device: Any, grad: bool
) -> Any:
    _expect(isinstance(kind, type) and issubclass(kind, Tensor), "a subclass of Tensor", kind)
    made = {"strides": stride, "storage_offset": offset, "layout": layout, "device": device}
    return _C._make_wrapper_subclass(kind, size, dtype=dtype, requires_grad=grad, **made)


def _layout(name: str) -> Any:
    found = getattr(lamella, name.rpartition(".")[2], None)
    _expect(isinstance(found, lamella.layout), "the name of a layout", found)
    return found


def _rebuild_sparse(layout: Any, parts: Any) -> Any:
    _expect(isinstance(layout, lamella.layout), "a tensor's layout", layout)
    _expect(isinstance(parts, tuple), "a sparse tensor's parts", parts)
    from lamella._sparse_text import rebuild

    return rebuild(layout, parts)


def _encode(text: str, encoding: str) -> bytes:
    """Bytes as pickle protocols before 3 encode them."""
    if encoding != "latin1":
        raise RuntimeError(f"load: expected the encoding latin1, got {encoding!r}")
    return text.encode("latin1")


def _device(*args: Any) -> Any:
    return lamella.device(*args)


_ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "Counter"): collections.Counter,
    ("builtins", "set"): set,
    ("builtins", "bytearray"): bytearray,
    ("builtins", "complex"): complex,
    ("__builtin__", "set"): set,
    ("__builtin__", "bytearray"): bytearray,
    ("__builtin__", "complex"): complex,
    ("_codecs", "encode"): _encode,
    ("torch", "Size"): lamella.Size,
    ("torch", "device"): _device,
    ("torch", "Tensor"): Tensor,
    ("torch._tensor", "Tensor"): Tensor,
    ("torch.nn.parameter", "Parameter"): Parameter,
    ("torch._utils", "_rebuild_tensor"): _rebuild_v1,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_v2,
    ("torch._utils", "_rebuild_tensor_v3"): _rebuild_v3,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): _storage.rebuild_meta_tensor,
    ("torch._utils", "_rebuild_sparse_tensor"): _rebuild_sparse,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter,
    ("torch.serialization", "_get_layout"): _layout,
    ("torch._tensor", "_rebuild_from_type_v2"): _rebuild_subclass,
    ("torch._utils", "_rebuild_wrapper_subclass"): _rebuild_wrapper,
}


def find(module: str, name: str) -> Any:
    """The object for a name that every file may use, else None."""
    if (module, name) in _ALLOWED:
        return _ALLOWED[module, name]
    if module in ("torch", "torch.cuda", "torch.storage"):
        if name in STORAGES:
            return StorageType(STORAGES[name])
        if name == "UntypedStorage":
            return StorageType(None)
        value = getattr(lamella, name, None) if module == "torch" else None
        if isinstance(value, (lamella.dtype, lamella.layout, lamella.memory_format)):
            return value
    return None


# Names that are allowed with weights_only=False.
_TRUSTED = {
    "builtins": {"list", "dict", "tuple", "int", "float", "str", "bool", "bytes", "frozenset"}
    | {"slice", "range", "object"},
    "collections": {"defaultdict", "deque"},
    "argparse": {"Namespace"},
    "types": {"SimpleNamespace"},
    "copyreg": {"_reconstructor", "__newobj__"},
    "copy_reg": {"_reconstructor"},
    "pathlib": {"Path", "PosixPath", "PurePath", "PurePosixPath"},
    "datetime": {"date", "datetime", "time", "timedelta"},
    "numpy": {"ndarray", "dtype"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.core.numeric": {"_frombuffer"},
}


# Names in pickles of Lamella's own modules and tensors.
_OURS = {
    "lamella.nn.modules._entries": {"Entries"},
    "lamella.nn.modules._hooks": {"Hooks", "WithoutModule"},
    "lamella.nn.parameter": {"_rebuild"},
    "lamella._storage": {"rebuild_tensor", "rebuild_subclass", "_storage_from_bytes"},
}


def find_trusted(module: str, name: str) -> Any:
    """The object for a name that is allowed with weights_only=False: plain containers, NumPy's
    arrays, and classes of modules, named tuples, data classes and enumerations that are imported
    already."""
    module = {"__builtin__": "builtins", "copy_reg": "copyreg"}.get(module, module)
    if name in _TRUSTED.get(module, ()):
        if module.startswith("numpy.core"):
            module = module.replace("numpy.core", "numpy._core")
        return getattr(importlib.import_module(module), name)
    if module == "lamella" or module.startswith("lamella."):
        if name in _OURS.get(module, ()):
            return getattr(importlib.import_module(module), name)
    found = _imported(module, name)
    if isinstance(found, type):
        from lamella.nn import Module

        named = issubclass(found, tuple) and hasattr(found, "_fields")
        kinds = (Module, enum.Enum)
        if issubclass(found, kinds) or named or hasattr(found, "__dataclass_fields__"):
            return found
    return None


def find_made(module: str, name: str) -> Any:
    """A class whose objects a file may contain with weights_only=False without calling the class:
    imported classes from outside the standard library, and Lamella's layers and distributions.
    Methods of such objects may be stored, but are not called."""
    if (module, name) in (("builtins", "getattr"), ("__builtin__", "getattr")):
        return _method
    ours = ("torch.distributions", "lamella.compat.distributions", "lamella.nn.")
    outside = module.startswith(ours)
    if not outside and module.partition(".")[0] in (*sys.stdlib_module_names, "torch", "lamella"):
        return None
    found = _imported(module, name)
    return found if isinstance(found, type) and found.__new__ in _PLAIN_NEW else None


def _method(owner: Any, name: str) -> Any:
    found = inspect.getattr_static(type(owner), name, None)
    if isinstance(owner, type) or not isinstance(found, types.FunctionType):
        raise pickle.UnpicklingError(
            f"load: expected '{name}' to be a method of the object, got {type(found).__name__}"
        )
    return types.MethodType(found, owner)


# Functions that only create objects.
_PLAIN_NEW = [kind.__new__ for kind in (object, dict, list, tuple, set, str, int, float)]


def _imported(module: str, name: str) -> Any:
    if module.startswith("torch.distributions"):
        ours = sys.modules.get("lamella.compat.distributions")
        homes = (ours, *(getattr(ours, kind, None) for kind in ("constraints", "transforms")))
        return next((getattr(home, name) for home in homes if hasattr(home, name)), None)
    loaded = sys.modules.get("lamella.nn" if module.startswith("torch.nn.modules.") else module)
    return getattr(loaded, name, None) if loaded is not None else None
