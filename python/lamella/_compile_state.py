"""What a compiled function takes from outside of its arguments: tensors of modules, and values that
it reads, each with the place where it stands."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Any

from lamella import Tensor

__all__ = ["Place", "places_of"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_CALLABLE = (types.FunctionType, types.MethodType, functools.partial)
_MISSING = object()
# Larger dictionaries are data rather than parameters, and are told by identity.
_MOST_ENTRIES = 4096


class Place:
    """An entry of a dictionary, or a cell of a closure, and what was in it."""

    __slots__ = ("container", "key", "name", "value")

    def __init__(self, container: Any, key: Any, name: str, value: Any) -> None:
        self.container, self.key, self.name, self.value = container, key, name, value

    def get(self) -> Any:
        if self.key is None:
            try:
                return self.container.cell_contents
            except ValueError:
                return _MISSING
        return self.container.get(self.key, _MISSING)

    def put(self, value: Any) -> None:
        if self.key is None:
            self.container.cell_contents = value
        else:
            self.container[self.key] = value

    def holds(self) -> bool:
        """Whether what is there now is what was there. Numbers and text count by value."""
        now = self.get()
        if now is self.value:
            return True
        return type(now) is type(self.value) and isinstance(now, _PLAIN) and now == self.value


def places_of(fn: Any, arguments: list[Any]) -> tuple[list[Place], list[Place]]:
    """Places of tensors, and of all else that fn reads: globals and variables of enclosing
    functions, of fn and of the functions that it finds there, the contents of modules among them
    and among the arguments, and the attributes of other objects, with the entries of dictionaries
    among those."""
    tensors: list[Place] = []
    others: list[Place] = []
    seen: set[int] = set()
    for place in _found(fn, arguments, seen):
        (tensors if isinstance(place.value, Tensor) else others).append(place)
    return tensors, others


def _found(fn: Any, arguments: list[Any], seen: set[int]) -> Iterator[Place]:
    for value in [fn, *arguments]:
        yield from _below(value, "", seen)


def _below(value: Any, name: str, seen: set[int]) -> Iterator[Place]:
    """Places inside of a value."""
    if id(value) in seen:
        return
    if isinstance(value, functools.partial):
        seen.add(id(value))
        for part in [value.func, *value.args, *value.keywords.values()]:
            yield from _below(part, name, seen)
    elif isinstance(value, types.MethodType):
        yield from _below(value.__self__, name, seen)
        yield from _below(value.__func__, name, seen)
    elif isinstance(value, types.FunctionType):
        # What a package brings along is no variable of the function's.
        if value.__module__ is not None and value.__module__.partition(".")[0] == "lamella":
            return
        seen.add(id(value))
        yield from _variables(value, seen)
    elif _is_module(value):
        seen.add(id(value))
        yield from _contents(value, name, seen)
    elif _is_object(value):
        seen.add(id(value))
        for key, item in list(vars(value).items()):
            yield from _here(Place(vars(value), key, _joined(name, key), item), seen)
    elif type(value) is dict and len(value) <= _MOST_ENTRIES:
        seen.add(id(value))
        for key, item in list(value.items()):
            yield from _here(Place(value, key, _joined(name, key), item), seen)


def _variables(fn: types.FunctionType, seen: set[int]) -> Iterator[Place]:
    for cell, name in zip(fn.__closure__ or (), fn.__code__.co_freevars):
        place = Place(cell, None, name, None)
        place.value = place.get()
        yield from _here(place, seen)
    for name in _names(fn.__code__):
        if name in fn.__globals__:
            yield from _here(Place(fn.__globals__, name, name, fn.__globals__[name]), seen)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)


def _here(place: Place, seen: set[int]) -> Iterator[Place]:
    value = place.value
    known = isinstance(value, (*_CALLABLE, *_PLAIN, Tensor)) or type(value) is dict
    if known or _is_module(value) or _is_object(value):
        key = hash((id(place.container), place.key))
        if key in seen:
            return
        seen.add(key)
        yield place
        yield from _below(value, place.name, seen)


def _joined(name: str, key: Any) -> str:
    return f"{name}.{key}" if name else str(key)


def _is_object(value: Any) -> bool:
    """An instance of a class that is not Lamella's and keeps its attributes in a dictionary."""
    if isinstance(value, (type, types.ModuleType, Tensor, *_CALLABLE)):
        return False
    package = (type(value).__module__ or "").partition(".")[0]
    return package not in ("builtins", "lamella") and type(getattr(value, "__dict__", 0)) is dict


def _is_module(value: Any) -> bool:
    return hasattr(type(value), "named_parameters") and hasattr(value, "_parameters")


def _contents(module: Any, name: str, seen: set[int]) -> Iterator[Place]:
    for kind in ("_parameters", "_buffers"):
        entries = getattr(module, kind)
        for key, value in entries.items():
            yield Place(entries, key, _joined(name, key), value)
    for key, value in module.__dict__.items():
        if isinstance(value, _PLAIN):
            yield Place(module.__dict__, key, _joined(name, key), value)
    for key, value in module._modules.items():
        yield Place(module._modules, key, _joined(name, key), value)
        yield from _below(value, _joined(name, key), seen)
