"""Operators of Lamella on arrays of any kind that DLPack knows, without the kind's own dispatcher.

Gradients and transforms are the other doors'. A result that shares memory with an argument stays
a view of it where the operator's schema says so, and is a copy otherwise."""

from __future__ import annotations

from lamella.bridge import _arrays, _library
from lamella.bridge._library import Namespaces

_loaded: dict[str, Namespaces] = {}


def load(path: str) -> Namespaces:
    if path not in _loaded:
        found = _library.operators(path)
        _library.remember(found)
        _loaded[path] = _library.namespaces(path, found, _arrays.function_of)
    return _loaded[path]
