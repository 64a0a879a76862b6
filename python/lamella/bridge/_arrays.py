"""Operators as functions of arrays, in C: how each type of array is exchanged, by DLPack."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from lamella.bridge import _library
from lamella.bridge._library import Operator
from lamella.bridge._transform import Chain

_NONE, _LAMELLA, _EXCHANGE, _CAPSULE = range(4)


class Exporter:
    """A tensor of Lamella for from_dlpack()."""

    def __init__(self, held: Any, device: int, index: int) -> None:
        self._held, self._device = held, (device, index)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        return functions().lamella_bridge_python_capsule(
            self._held, int(max_version is not None and max_version[0] >= 1)
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def _kind_of(kind: type) -> tuple[int, bool, Any, Any]:
    """How arrays of a type are exchanged, for array_kind() in lamella/bridge/arrays.cpp: how,
    whether they are PyTorch's, the capsule of DLPack's C functions, and what makes an array of an
    Exporter."""
    root = kind.__module__.partition(".")[0]
    if root == "lamella" and kind is getattr(sys.modules.get("lamella"), "Tensor", None):
        return _LAMELLA, False, None, None
    is_torch = root == "torch"
    table = getattr(kind, "__dlpack_c_exchange_api__", None)
    module = sys.modules.get("jax.numpy" if root.startswith("jax") else root)
    maker = getattr(module, "from_dlpack", None)
    if is_torch:
        from lamella.bridge._torch_plain import open_torch

        open_torch()
    if table is not None:
        return _EXCHANGE, is_torch, table, maker
    if not hasattr(kind, "__dlpack__"):
        return _NONE, False, None, None
    return _CAPSULE, is_torch, None, maker or _no_maker(kind)


def _no_maker(kind: type) -> Callable[[Any], Any]:
    def made(exporter: Any) -> Any:
        raise TypeError(
            f"bridge.dlpack: expected arrays whose module has from_dlpack, got {kind.__name__}"
        )

    return made


def _capsule_of(x: Any) -> Any:
    """The capsule of an array, as new as it has it."""
    is_neg = getattr(x, "is_neg", None)
    if is_neg is not None and is_neg():  # DLPack's capsule of PyTorch would drop the sign
        raise BufferError(
            "bridge.dlpack: expected a tensor that is not negated lazily, got one that is; use "
            "resolve_neg()"
        )
    try:
        return x.__dlpack__(max_version=(1, 0))
    except TypeError:
        return x.__dlpack__()


@functools.cache
def functions() -> Any:
    """liblamella_bridge.so with the GIL, which knows Python."""
    library: Any = ctypes.PyDLL(_library.native()._name)
    for name, types in {
        "open": [ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_void_p],
        "capsule": [ctypes.py_object, ctypes.c_int32],
        "chain": [ctypes.c_char_p, ctypes.py_object],
        "function": [ctypes.py_object, ctypes.py_object, ctypes.py_object],
    }.items():
        function = getattr(library, f"lamella_bridge_python_{name}")
        function.argtypes = types
        function.restype = ctypes.c_int32 if name == "open" else ctypes.py_object
    table = None
    module = sys.modules.get("lamella._C")
    if module is not None:
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        table = pointer(module._extension_table, b"lamella._C._extension_table")
    _library.check(library.lamella_bridge_python_open(_kind_of, _capsule_of, Exporter, table))
    return library


def function_of(name: str, overloads: Sequence[Operator]) -> Callable[..., Any]:
    """The function, in C, of the overloads of an operator."""
    short = name.partition("::")[2]
    rows = [
        (
            op.name, op.overload,
            tuple(a.default if a.has_default else ... for a in op.arguments),
        )
        for op in overloads
    ]  # fmt: skip
    made: Callable[..., Any] = functions().lamella_bridge_python_function(short, rows, ...)
    return made


def run_chain(chain: Chain, arrays: list[Any]) -> list[Any]:
    """The results of a chain."""
    made: list[Any] = functions().lamella_bridge_python_chain(chain.text().encode(), arrays)
    return made
