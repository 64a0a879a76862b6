"""What liblamella_bridge.so is told of this version of PyTorch."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

import torch

from lamella.bridge import _library

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
