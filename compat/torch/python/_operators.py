"""Operators that libraries name in torch.ops.aten and that are composed of others here, and members
of torch.ops itself."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor


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
    for schema, function in _OPERATORS.items():
        _library.define(schema)
        _library.impl(schema.split("(")[0], function, "CompositeImplicitAutograd")
    # Attributes of the object, where they stand before its methods.
    vars(lamella.ops).update(
        import_module=importlib.import_module, load_library=_load_library, loaded_libraries=set()
    )
