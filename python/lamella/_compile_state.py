"""Finds what a compiled function reads besides its arguments: tensors of modules, globals,
attributes and closure variables, each with the container and key that hold it."""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

from lamella import Tensor

__all__ = ["Found", "OutsidePlace", "find", "is_same"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_CALLABLE = (types.FunctionType, types.MethodType, functools.partial)
_MISSING = object()
# Larger dictionaries and lists count as data: they are compared by identity, not by entry.
_MAX_ENTRIES = 4096
_STANDARD: frozenset[str] = getattr(sys, "stdlib_module_names", frozenset())


def is_same(a: Any, b: Any) -> bool:
    """Whether numbers and text are equal, and other objects identical. is_same() in compiled.cpp
    must agree."""
    if a is b:
        return True
    if type(a) is not type(b) or not isinstance(a, _PLAIN):
        return False
    # 0.0 == -0.0, but a program for one is not valid for the other.
    return bool(a == b) and (type(a) not in (float, complex) or repr(a) == repr(b))


class OutsidePlace:
    """An entry of a dictionary or list, or a closure cell (key None), and the value that it had
    when it was found."""

    __slots__ = ("container", "key", "name", "value")

    def __init__(self, container: Any, key: Any, name: str, value: Any) -> None:
        self.container, self.key, self.name, self.value = container, key, name, value

    def get(self) -> Any:
        if self.key is None:
            try:
                return self.container.cell_contents
            except ValueError:
                return _MISSING
        if type(self.container) is list:
            return self.container[self.key] if self.key < len(self.container) else _MISSING
        return self.container.get(self.key, _MISSING)

    def put(self, value: Any) -> None:
        if self.key is None:
            self.container.cell_contents = value
        elif value is not _MISSING:
            self.container[self.key] = value
        elif type(self.container) is list:
            del self.container[self.key :]
        else:
            self.container.pop(self.key, None)

    def holds(self) -> bool:
        """Whether the entry still has its value."""
        return is_same(self.get(), self.value)

    def guard(self) -> tuple[Any, ...]:
        """The place as compiled.cpp takes it; a place that was empty has no third item."""
        if self.value is _MISSING:
            return (self.container, self.key)
        return (self.container, self.key, self.value)


class Found:
    """What a function reads besides its arguments.

    tensors: places of tensors. others: places of all other values. rates: places of learning rates,
    which are inputs of the program. states: the state of each optimizer, by parameter. containers:
    the attribute dictionaries of objects, with the objects' names and the numbers of entries.
    has_gradients: whether the function may read or set gradients of tensors."""

    def __init__(self) -> None:
        self.tensors: list[OutsidePlace] = []
        self.others: list[OutsidePlace] = []
        self.rates: list[OutsidePlace] = []
        self.states: list[dict[Any, Any]] = []
        self.containers: list[tuple[dict[Any, Any], str, int]] = []
        self.has_gradients = False
        self._changed: list[OutsidePlace] = []

    def change(self) -> str:
        """Restores the Python values that the function changed; returns the name of one of them,
        empty if there were none."""
        changed = ""
        for place in self.others:
            if not place.holds():
                place.put(place.value)
                self._changed.append(place)
                changed = place.name
        for container, name, count in self.containers:
            while len(container) > count:
                key = container.popitem()[0]
                changed = _joined(name, key)
                # The program is for calls without this entry: a value cached by the first call is
                # present at the next one, which then compiles again.
                self.others.append(OutsidePlace(container, key, changed, _MISSING))
        return changed

    def forget_changes(self) -> None:
        """Drops the guards on values that the function changes: a function that runs uncompiled
        does so whatever they are."""
        self.others = [place for place in self.others if place not in self._changed]


def find(fn: Any, arguments: list[Any]) -> Found:
    """The globals and closure variables of fn and, recursively, of the functions among them; the
    contents of modules, optimizers, lists and dictionaries among these and the arguments; and the
    attributes of other objects."""
    finder = _Finder()
    for value in [fn, *arguments]:
        finder.below(value, "")
    return finder.found


class _Finder:
    def __init__(self) -> None:
        self.found = Found()
        # Ids of visited objects and places. The function keeps these alive, so ids are not reused.
        self.seen: set[Any] = set()

    def is_new(self, value: Any) -> bool:
        if id(value) in self.seen:
            return False
        self.seen.add(id(value))
        return True

    def below(self, value: Any, name: str) -> None:
        """Adds what a value contains or refers to."""
        if isinstance(value, functools.partial):
            if self.is_new(value):
                for part in [value.func, *value.args, *value.keywords.values()]:
                    self.below(part, name)
        elif isinstance(value, types.MethodType):
            self.below(value.__self__, name)
            self.below(value.__func__, name)
        elif isinstance(value, types.FunctionType):
            # Functions of the standard library and of Lamella are not searched.
            if not _is_library(value.__module__) and self.is_new(value):
                self.variables(value)
        elif _is_optimizer(value):
            if self.is_new(value):
                self.optimizer(value, name)
        elif _is_module(value):
            if self.is_new(value):
                self.methods(type(value))
                self.contents(value, name)
        elif _is_object(value):
            if self.is_new(value):
                self.methods(type(value))
                self.entries(vars(value), name)
                self.found.containers.append((vars(value), name, len(vars(value))))
        elif type(value) in (dict, list) and len(value) <= _MAX_ENTRIES:
            if self.is_new(value):
                self.entries(value, name)
        elif type(value) is tuple:
            for i, item in enumerate(value):
                self.below(item, _joined(name, i))

    def add(self, container: Any, key: Any, name: str, value: Any) -> bool:
        mark = (id(container), key if key is None or type(key) in (int, str) else id(key))
        if mark in self.seen:
            return False
        self.seen.add(mark)
        place = OutsidePlace(container, key, name, value)
        (self.found.tensors if isinstance(value, Tensor) else self.found.others).append(place)
        return True

    def here(self, container: Any, key: Any, name: str, value: Any) -> None:
        known = isinstance(value, (*_CALLABLE, *_PLAIN, Tensor))
        known = known or type(value) in (dict, list, tuple) or _is_optimizer(value)
        if known or _is_module(value) or _is_object(value):
            if self.add(container, key, name, value):
                self.below(value, name)

    def entries(self, container: Any, name: str) -> None:
        is_list = type(container) is list
        items = enumerate(container) if is_list else list(container.items())
        for key, item in items:
            if key is None:
                continue
            self.here(container, key, _joined(name, key), item)
        if is_list:
            self.add(container, len(container), _joined(name, len(container)), _MISSING)

    def variables(self, fn: types.FunctionType) -> None:
        self.found.has_gradients |= _names_gradients(fn.__code__)
        for cell, name in zip(fn.__closure__ or (), fn.__code__.co_freevars):
            place = OutsidePlace(cell, None, name, None)
            self.here(cell, None, name, place.get())
        for name in _names(fn.__code__):
            if name in fn.__globals__:
                self.here(fn.__globals__, name, name, fn.__globals__[name])

    def methods(self, cls: type) -> None:
        """Adds what the methods of a class and of its bases read, except for library classes."""
        for base in cls.__mro__:
            if _is_library(base.__module__) or not self.is_new(base):
                continue
            for item in list(vars(base).values()):
                fn = getattr(item, "__func__", getattr(item, "fget", item))
                if isinstance(fn, types.FunctionType):
                    self.below(fn, base.__name__)

    def contents(self, module: Any, name: str) -> None:
        attributes = module.__dict__
        named: set[str] = set()  # the attributes have entries for these as well
        for kind in ("_parameters", "_buffers"):
            entries = getattr(module, kind)
            named.update(entries)
            for key, value in entries.items():
                self.add(entries, key, _joined(name, key), value)
            self.found.containers.append((entries, name, len(entries)))
        for key, value in attributes.items():
            if key not in named and isinstance(value, (*_PLAIN, Tensor)):
                self.add(attributes, key, _joined(name, key), value)
        self.found.containers.append((attributes, name, len(attributes)))
        for key, value in module._modules.items():
            self.add(module._modules, key, _joined(name, key), value)
            self.below(value, _joined(name, key))

    def optimizer(self, optimizer: Any, name: str) -> None:
        self.found.has_gradients = True
        self.found.states.append(optimizer.state)
        is_own = _is_own(type(optimizer).__module__)
        self.methods(type(optimizer))
        # An optimizer with hooks has its own `step` among its attributes.
        for key in ("step", "param_groups", "state"):
            attributes = vars(optimizer)
            self.add(attributes, key, _joined(name, key), attributes.get(key, _MISSING))
        groups = optimizer.param_groups
        self.add(groups, len(groups), _joined(name, len(groups)), _MISSING)
        for number, group in enumerate(groups):
            self.add(groups, number, _joined(name, number), group)
            for key, value in group.items():
                place = _joined(name, key)
                if key == "lr" and is_own and type(value) is float:
                    self.found.rates.append(OutsidePlace(group, key, place, value))
                else:
                    self.add(group, key, place, value)
            self.entries(group["params"], _joined(name, "params"))
            for param in group["params"]:
                self.state(optimizer.state, param, _joined(name, "state"))

    def state(self, states: dict[Any, Any], param: Tensor, name: str) -> None:
        own = states.get(param, _MISSING)
        self.add(states, param, name, own)
        if type(own) is dict:
            for key, value in own.items():
                self.add(own, key, _joined(name, key), value)
            self.found.containers.append((own, name, len(own)))


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)


def _names_gradients(code: types.CodeType) -> bool:
    """Whether the code uses an attribute `backward`, or an attribute `grad` of anything but the
    modules `func` and `autograd`."""
    before = None
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"):
            name = instruction.argval
            if name == "backward" or (name == "grad" and before not in ("func", "autograd")):
                return True
        before = instruction.argval
    return any(isinstance(c, types.CodeType) and _names_gradients(c) for c in code.co_consts)


def _joined(name: str, key: Any) -> str:
    return f"{name}.{key}" if name else str(key)


# lamella.compat gives its types the module name "torch".
_PACKAGES = ("lamella", "torch")


def _is_own(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] in _PACKAGES


def _is_library(module: str | None) -> bool:
    return module is not None and (_is_own(module) or module.partition(".")[0] in _STANDARD)


def _is_object(value: Any) -> bool:
    """An instance of a class that is not Lamella's and keeps its attributes in a dictionary."""
    if isinstance(value, (type, types.ModuleType, Tensor, *_CALLABLE)):
        return False
    package = (type(value).__module__ or "").partition(".")[0]
    return package not in ("builtins", *_PACKAGES) and type(getattr(value, "__dict__", 0)) is dict


def _is_module(value: Any) -> bool:
    return hasattr(type(value), "named_parameters") and hasattr(value, "_parameters")


def _is_optimizer(value: Any) -> bool:
    return hasattr(type(value), "add_param_group") and hasattr(value, "param_groups")
