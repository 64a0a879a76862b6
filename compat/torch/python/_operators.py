"""Operators that libraries name in torch.ops.aten and that are composed of others here, and members
of torch.ops itself."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import lamella
from lamella import _C, Tensor
from lamella._tensor import _record_stream


def _sparse_addmm(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    return lamella.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "_pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)": lambda x, device=None: x,
    "pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)": lambda x, device=None: x,
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) "
    "-> Tensor": _sparse_addmm,
}


_ZERO_TENSOR = int(_C._dispatch_functionality_bits("ZeroTensor"))


def _zeros(size: Any, **options: Any) -> Tensor:
    """Zeros in the memory of one element, with the key ZeroTensor."""
    made = lamella.zeros((), **options).expand(size)
    _C._add_keys(made, _ZERO_TENSOR)
    return made


# Operators that handlers and modes are called with, not with the operators that they are made of.
_WHOLE: dict[str, Callable[..., Any]] = {
    "_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor": _zeros,
    "_foobar(Tensor self, bool arg1=True, bool arg2=True, *, bool arg3=True) -> Tensor": (
        lambda self, *flags, **more: self.clone()
    ),
    "record_stream(Tensor(a!) self, Stream s) -> ()": _record_stream,
}

_library: Any = None


def _load_library(path: str | os.PathLike[str]) -> Any:
    lamella.ops.loaded_libraries.add(os.path.realpath(path))
    return lamella.load_library(path)


def install() -> None:
    """Registers the operators, once in a process."""
    global _library
    if _library is not None:
        return
    _library = lamella.library.Library("aten", "FRAGMENT")
    for rows, key in (
        (_OPERATORS, "CompositeImplicitAutograd"),
        (_WHOLE, "CompositeExplicitAutograd"),
    ):
        for schema, function in rows.items():
            _library.define(schema)
            _library.impl(schema.split("(")[0], function, key)
    _C._add_to_tensor(
        {
            "_is_zerotensor": lambda self: bool(_C._tensor_keys(self) & _ZERO_TENSOR),
            "record_stream": lambda self, stream: lamella.ops.aten.record_stream(self, stream),
        }
    )
    # Attributes of the object, where they stand before its methods.
    vars(lamella.ops).update(
        import_module=importlib.import_module, load_library=_load_library, loaded_libraries=set()
    )
