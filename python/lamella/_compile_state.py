"""What a compiled function takes from outside of its arguments: tensors of modules, and values that
it reads, each with the place where it stands."""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

from lamella import Tensor

__all__ = ["Found", "Place", "find", "is_same"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_CALLABLE = (types.FunctionType, types.MethodType, functools.partial)
_MISSING = object()
# Larger dictionaries and lists are data rather than parameters, and are told by identity.
_MOST_ENTRIES = 4096
_STANDARD: frozenset[str] = getattr(sys, "stdlib_module_names", frozenset())


def is_same(a: Any, b: Any) -> bool:
    """Numbers and text count by value, all else by identity: is_same() of compiled.cpp."""
    if a is b:
        return True
    if type(a) is not type(b) or not isinstance(a, _PLAIN):
        return False
    # 0.0 and -0.0 are equal, and not the same.
    return bool(a == b) and (type(a) not in (float, complex) or repr(a) == repr(b))


class Place:
    """An entry of a dictionary or list, or a cell of a closure, and what was in it."""

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
        """Whether what is there now is what was there."""
        return is_same(self.get(), self.value)

    def guard(self) -> tuple[Any, ...]:
        """What compiled.cpp takes: without a value where there was nothing."""
        if self.value is _MISSING:
            return (self.container, self.key)
        return (self.container, self.key, self.value)


class Found:
    """What a function takes from outside of its arguments.

    tensors: places of tensors. others: places of all else. rates: places of learning rates, whose
    value is an input. states: the state of each optimizer, by parameter. containers: dictionaries
    of objects, with the names of these, and how many entries there were. has_gradients: whether the
    function may look at gradients of tensors, or leave some."""

    def __init__(self) -> None:
        self.tensors: list[Place] = []
        self.others: list[Place] = []
        self.rates: list[Place] = []
        self.states: list[dict[Any, Any]] = []
        self.containers: list[tuple[dict[Any, Any], str, int]] = []
        self.has_gradients = False
        self._changed: list[Place] = []

    def change(self) -> str:
        """What the function has changed in Python, as a name, and puts it back; empty for
        nothing."""
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
                # Something else once it is there, as what is kept from the first call on.
                self.others.append(Place(container, key, changed, _MISSING))
        return changed

    def forget_changes(self) -> None:
        """Takes away what the function changes: it runs as it is whatever is there."""
        self.others = [place for place in self.others if place not in self._changed]


def find(fn: Any, arguments: list[Any]) -> Found:
    """Globals and variables of enclosing functions, of fn and of the functions that it finds there,
    the contents of modules, optimizers, lists and dictionaries among them and among the arguments,
    and the attributes of other objects."""
    finder = _Finder()
    for value in [fn, *arguments]:
        finder.below(value, "")
    return finder.found


class _Finder:
    def __init__(self) -> None:
        self.found = Found()
        # Objects and places that were visited; objects of the function live as long as it does.
        self.seen: set[Any] = set()

    def is_new(self, value: Any) -> bool:
        if id(value) in self.seen:
            return False
        self.seen.add(id(value))
        return True

    def below(self, value: Any, name: str) -> None:
        """What is inside of a value."""
        if isinstance(value, functools.partial):
            if self.is_new(value):
                for part in [value.func, *value.args, *value.keywords.values()]:
                    self.below(part, name)
        elif isinstance(value, types.MethodType):
            self.below(value.__self__, name)
            self.below(value.__func__, name)
        elif isinstance(value, types.FunctionType):
            # What a package brings along is no variable of the function's.
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
        elif type(value) in (dict, list) and len(value) <= _MOST_ENTRIES:
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
        place = Place(container, key, name, value)
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
            place = Place(cell, None, name, None)
            self.here(cell, None, name, place.get())
        for name in _names(fn.__code__):
            if name in fn.__globals__:
                self.here(fn.__globals__, name, name, fn.__globals__[name])

    def methods(self, cls: type) -> None:
        """What the methods of a class read, as far as the class is the user's."""
        for base in cls.__mro__:
            if _is_library(base.__module__) or not self.is_new(base):
                continue
            for item in list(vars(base).values()):
                fn = getattr(item, "__func__", getattr(item, "fget", item))
                if isinstance(fn, types.FunctionType):
                    self.below(fn, base.__name__)

    def contents(self, module: Any, name: str) -> None:
        attributes = module.__dict__
        named: set[str] = set()  # stand among the attributes as well
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
        # An optimizer with hooks has a method of its own here.
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
                    self.found.rates.append(Place(group, key, place, value))
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
    """Whether the attribute `grad` of something that is no module of functions stands in the code,
    or a call of backward()."""
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


# lamella.compat lets types say that they are from torch.
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
