"""Operators of Lamella on arrays of any kind that DLPack knows, without the kind's own dispatcher.

Gradients and transforms are the other doors'. A result that shares memory with an argument stays
a view of it where the operator's schema says so, and is a copy otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import lamella
from lamella import _C
from lamella.bridge import _library
from lamella.bridge._library import Namespaces, Operator

_loaded: dict[str, Namespaces] = {}
# How a tensor of Lamella becomes an array, by the kind of array.
_makers: dict[type, Callable[[Any], Any]] = {}


def _maker_of(x: Any) -> Callable[[Any], Any]:
    kind = type(x)
    if kind not in _makers:
        root = kind.__module__.partition(".")[0]
        table = getattr(kind, "__dlpack_c_exchange_api__", None)
        if kind is lamella.Tensor:
            _makers[kind] = lambda y: y
        elif table is not None:
            _makers[kind] = lambda y: _C._to_exchange(table, y)
        elif hasattr(x, "__array_namespace__"):
            _makers[kind] = x.__array_namespace__().from_dlpack
        elif hasattr(sys.modules.get(root), "from_dlpack"):
            _makers[kind] = sys.modules[root].from_dlpack
        else:
            raise TypeError(
                f"bridge.dlpack: expected arrays whose module has from_dlpack, got {kind.__name__}"
            )
    return _makers[kind]


def _importer_of(kind: type) -> Callable[[Any], Any]:
    """How an array of the kind becomes a tensor: by DLPack's C functions, if the kind has them."""
    table = getattr(kind, "__dlpack_c_exchange_api__", None)
    is_torch = kind.__module__.partition(".")[0] == "torch"

    def imported(x: Any) -> Any:
        # DLPack has no form for PyTorch's lazily negated, conjugated or differentiated tensors.
        # PyTorch's __dlpack__ refuses the last two itself, and drops the sign of the first.
        if is_torch and x.is_neg():
            raise BufferError(
                "bridge.dlpack: expected a tensor that is not negated lazily, got one that is; use "
                "resolve_neg()"
            )
        if table is None or (is_torch and (x.requires_grad or x.is_conj())):
            return lamella.from_dlpack(x)
        made = _C._from_exchange(table, x)
        return lamella.from_dlpack(x) if made is None else made

    return imported if is_torch or table is not None else lamella.from_dlpack


_importers: dict[type, Callable[[Any], Any]] = {}
# DLPack's C functions of a kind, if it has them, and whether it is PyTorch's.
_tables: dict[type, tuple[Any, bool]] = {}


def _span(t: Any) -> tuple[int, int]:
    """The addresses of a tensor's elements, and one behind the last."""
    start: int = t.data_ptr()
    if t.is_contiguous():
        return start, start + t.nbytes
    elements = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
    return start, start + elements * t.element_size()


def _function(name: str, overloads: list[Operator]) -> Callable[..., Any]:
    space, _, short = name.partition("::")
    packet = getattr(getattr(lamella.ops, space), short)
    writes = any(op.writes for op in overloads)
    views = any(op.is_view for op in overloads)
    importers, no_grad = _importers, lamella.no_grad
    tables, call = _tables, _C._call_exchanged

    # Without keywords there is one to call, if the others are `out` forms.
    plain = [op for op in overloads if not any(a.is_out for a in op.arguments)]
    only = plain[0] if len(plain) == 1 and not views and not plain[0].writes else None
    simple = only.call if only and [r.type for r in only.returns] == ["Tensor"] else None

    def function(*args: Any, **kwargs: Any) -> Any:
        if simple is not None and args and not kwargs:
            kind = type(args[0])
            found = tables.get(kind)
            if found is None:
                table = getattr(kind, "__dlpack_c_exchange_api__", None)
                found = tables[kind] = (table, kind.__module__.partition(".")[0] == "torch")
            if found[0] is not None:
                made = call(found[0], kind, found[1], simple, args)
                if made is not NotImplemented:
                    return made
        arrays: list[Any] = []
        tensors: list[Any] = []

        def one(x: Any) -> Any:
            importer = importers.get(type(x))
            if importer is None and hasattr(x, "__dlpack__"):
                importer = importers[type(x)] = _importer_of(type(x))
            if importer is not None:
                arrays.append(x)
                tensors.append(importer(x))
                return tensors[-1]
            return [one(y) for y in x] if isinstance(x, (list, tuple)) else x

        given = [one(x) for x in args]
        named = {key: one(x) for key, x in kwargs.items()}
        if not arrays:
            raise TypeError(f"{short}: expected an array among its arguments")
        with no_grad():
            result = packet(*given, **named)
        make = _maker_of(arrays[0])
        spans = [] if views else [_span(t) for t in tensors]

        def out(y: Any) -> Any:
            if isinstance(y, (list, tuple)):
                return type(y)(map(out, y))
            if not isinstance(y, lamella.Tensor):
                return y
            if writes:
                for x, t in zip(arrays, tensors):
                    if y is t:
                        return x
            if y.is_complex():
                y = y.resolve_conj()
            if not views:
                start = y.data_ptr()
                if y._base is not None or any(first <= start < last for first, last in spans):
                    y = y.clone()
                spans.append(_span(y))
            return make(y.resolve_neg())

        return out(result)

    function.__name__ = short
    function.__doc__ = "\n".join(op.schema for op in overloads)
    return function


def load(path: str) -> Namespaces:
    if path not in _loaded:
        found = _library.operators(path)
        _library.remember(found)
        _loaded[path] = _library.namespaces(path, found, _function)
    return _loaded[path]
