"""What liblamella_bridge.so is told of this version of PyTorch."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

import torch

from lamella.bridge import _arrays, _library

_FOLDER = os.path.join(os.path.dirname(torch.__file__), "lib")


@functools.cache
def open_torch() -> bool:
    """Finds PyTorch's functions. False: lamella_bridge_torch_plain() did not find what it needs."""
    native = _library.native()
    path = os.path.join(_FOLDER, "libtorch_cpu.so")
    _library.check(native.lamella_bridge_torch_open(path.encode()))
    x = torch.ones(2)
    with torch.inference_mode():
        inference = torch.ones(2)
    try:
        tensors = [
            x, torch.ones(2, requires_grad=True), torch.view_as_complex(torch.ones(2, 2)).conj(),
            torch._neg_view(x), torch.empty(2, device="meta"), torch._efficientzerotensor(2),
            inference,
        ]  # fmt: skip
        keys = [torch._C._dispatch_keys(y).raw_repr() for y in tensors]
        names = ("Python", "Functionalize", "FuncTorchDynamicLayerBackMode")
        below = [int(getattr(torch._C.DispatchKey, name)) for name in names]
        addresses = [y._cdata for y in tensors]
    except AttributeError:
        return False
    is_done = ctypes.c_int32()
    n, k = len(tensors), len(below)
    words = ctypes.c_uint64 * n
    _library.check(
        native.lamella_bridge_torch_plain(
            os.path.join(_FOLDER, "libc10.so").encode(), words(*addresses),
            words(*map(id, tensors)), words(*keys), n, (ctypes.c_uint16 * k)(*below), k,
            ctypes.byref(is_done),
        )
    )  # fmt: skip
    return bool(is_done.value)


@functools.cache
def keeper() -> Any:
    """Keeps an error, by its type and itself, which a kernel in Python that one in C calls through
    torch raises: torch loses its type."""
    keep = ctypes.PyDLL(_library.native()._name).lamella_bridge_torch_keep
    keep.argtypes, keep.restype = [ctypes.py_object, ctypes.py_object], None
    return keep


def gradient_functions(name: str, overload: str, slow: Any) -> Any:
    """The forward and backward of an operator for an autograd.Function, in C; None: there are none.
    slow: the backward that may be recorded."""
    _arrays.functions()
    make = ctypes.PyDLL(_library.native()._name).lamella_bridge_torch_gradient
    make.argtypes, make.restype = [ctypes.py_object] * 3, ctypes.py_object
    return make(name, overload, slow)


def bound_method(function: Any) -> Any:
    """A function of C that a class binds as its method."""
    make = ctypes.pythonapi.PyInstanceMethod_New
    make.argtypes, make.restype = [ctypes.py_object], ctypes.py_object
    return make(function)


def name_apply(operator: str, function: Any) -> None:
    """Lets the kernel in C call what an operator of PyTorch calls."""
    name = ctypes.PyDLL(_library.native()._name).lamella_bridge_torch_apply
    name.argtypes, name.restype = [ctypes.c_char_p, ctypes.py_object], None
    name(operator.encode(), function)
