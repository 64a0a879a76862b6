"""lamella.bridge: a library of operators, built once against Lamella's C ABI, in other frameworks.

`torch(path)`, `jax(path)` and `dlpack(path)` load the library and return its operators by
namespace: `lamella.bridge.jax(path).ns.op(x)`. After `torch(path)` they are in `torch.ops` as
well."""

from __future__ import annotations

import os

from lamella.bridge._library import Namespaces as Namespaces

__all__ = ["dlpack", "jax", "torch"]


def torch(path: str | os.PathLike[str]) -> Namespaces:
    """The operators of a library as operators of PyTorch, with gradients, transforms and fakes."""
    from lamella.bridge import _torch

    return _torch.load(os.fspath(path))


def jax(path: str | os.PathLike[str]) -> Namespaces:
    """The operators of a library as functions of JAX, each with a Primitive."""
    from lamella.bridge import _jax

    return _jax.load(os.fspath(path))


def dlpack(path: str | os.PathLike[str]) -> Namespaces:
    """The operators of a library on arrays with `__dlpack__`, giving arrays of the same kind."""
    from lamella.bridge import _dlpack

    return _dlpack.load(os.fspath(path))
