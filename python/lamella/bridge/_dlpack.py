"""Operators of Lamella on arrays of any kind that DLPack knows, without the kind's own dispatcher.

Gradients and transforms are the other doors'. A result that shares memory with an argument stays
a view of it where the operator's schema says so, and is a copy otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import lamella
from lamella.bridge import _library, _transform
from lamella.bridge._library import Namespaces, Operator

_loaded: dict[str, Namespaces] = {}
# How a tensor of Lamella becomes an array, by the kind of array.
_makers: dict[type, Callable[[Any], Any]] = {}


def _is_array(x: Any) -> bool:
    return hasattr(x, "__dlpack__")


def _imported(x: Any) -> Any:
    return lamella.from_dlpack(x)


def _maker_of(x: Any) -> Callable[[Any], Any]:
    kind = type(x)
    if kind not in _makers:
        root = kind.__module__.partition(".")[0]
        if kind is lamella.Tensor:
            _makers[kind] = lambda y: y
        elif hasattr(x, "__array_namespace__"):
            _makers[kind] = x.__array_namespace__().from_dlpack
        elif hasattr(sys.modules.get(root), "from_dlpack"):
            _makers[kind] = sys.modules[root].from_dlpack
        else:
            raise TypeError(
                f"bridge.dlpack: expected arrays whose module has from_dlpack, got {kind.__name__}"
            )
    return _makers[kind]


def _frozen(value: Any, type_: str) -> Any:
    return value


def _call(op: Operator, args: Any, kwargs: Any) -> Any:
    values = op.bound(args, kwargs)
    _, arrays = _transform.split(op, values, _is_array, _frozen)
    if not arrays:
        raise TypeError(f"{op.full_name}: expected an array among its arguments")
    make = _maker_of(arrays[0])
    tensors: list[Any] = []

    def one(x: Any) -> Any:
        if x is None:
            return None
        tensors.append(_imported(x))
        return tensors[-1]

    given = [
        v if not a.is_tensor or v is None else [one(x) for x in v] if a.is_list else one(v)
        for a, v in zip(op.arguments, values)
    ]
    with lamella.no_grad():
        result = op.apply(given)
    written = {a.alias: v for a, v in zip(op.arguments, values) if a.is_write}
    taken = {x.untyped_storage().data_ptr() for x in tensors if x.numel()}

    def out(y: Any, may_share: bool) -> Any:
        if not isinstance(y, lamella.Tensor):
            return y
        y = y.detach().resolve_conj().resolve_neg()
        if not may_share and y.numel() and y.untyped_storage().data_ptr() in taken:
            y = y.clone()
        return make(y)

    parts = [result] if len(op.returns) == 1 else list(result or ())
    made: list[Any] = []
    for r, part in zip(op.returns, parts):
        if r.is_write:
            made.append(written[r.alias])
        elif isinstance(part, (list, tuple)) and r.is_tensor:
            made.append([out(y, bool(r.alias)) for y in part])
        else:
            made.append(out(part, bool(r.alias)))
    return made[0] if len(made) == 1 else tuple(made) if made else None


def _function(name: str, overloads: list[Operator]) -> Callable[..., Any]:
    short = name.partition("::")[2]

    def function(*args: Any, **kwargs: Any) -> Any:
        problem: TypeError | None = None
        for op in overloads:
            try:
                op.bound(args, kwargs)
            except TypeError as error:
                problem = problem or error
                continue
            return _call(op, args, kwargs)
        assert problem is not None
        raise problem

    function.__name__ = short
    function.__doc__ = "\n".join(op.schema for op in overloads)
    return function


def load(path: str) -> Namespaces:
    if path not in _loaded:
        found = _library.operators(path)
        _library.remember(found)
        _loaded[path] = _library.namespaces(path, found, _function)
    return _loaded[path]
