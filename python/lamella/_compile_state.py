"""Finds tensors that a compiled function may read besides its arguments, in modules, globals,
attributes and closure variables, each with the container and key that hold it. What the function
does read is seen while it is traced: see _compile_reads.py. A tensor that is not found here is a
constant of the program."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterator
from typing import Any

from lamella import Tensor
from lamella._compile_guards import OutsidePlace, is_library, is_own, joined
from lamella._compile_reads import Reads

__all__ = ["Found", "find"]

_CALLABLE = (types.FunctionType, types.MethodType, functools.partial)
# Larger dictionaries and lists count as data, and are not searched.
_MAX_ENTRIES = 4096


class Found:
    """What is known before a function is traced of the tensors that it reads besides its arguments.

    tensors: places of tensors, which are inputs of the program. rates: places of learning rates,
    which are as well. states: the state of each optimizer, by parameter. has_gradients: whether the
    function may read or set gradients of tensors. reads: what the trace saw, from which the guards
    on all other values are made. graphs: whether the program's runs on CUDA are captured graphs."""

    def __init__(self) -> None:
        self.tensors: list[OutsidePlace] = []
        self.rates: list[OutsidePlace] = []
        self.states: list[dict[Any, Any]] = []
        self.has_gradients = False
        self.reads: Reads | None = None
        self.graphs = False


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
            if not is_library(value.__module__) and self.is_new(value):
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
        elif type(value) in (dict, list) and len(value) <= _MAX_ENTRIES:
            if self.is_new(value):
                self.entries(value, name)
        elif type(value) is tuple:
            for i, item in enumerate(value):
                self.below(item, joined(name, i))

    def add(self, container: Any, key: Any, name: str, value: Any) -> bool:
        """Whether a place was not visited before; adds it if it holds a tensor."""
        mark = (id(container), key if key is None or type(key) in (int, str) else id(key))
        if mark in self.seen:
            return False
        self.seen.add(mark)
        if isinstance(value, Tensor):
            self.found.tensors.append(OutsidePlace(container, key, name, value))
        return True

    def here(self, container: Any, key: Any, name: str, value: Any) -> None:
        if self.add(container, key, name, value):
            self.below(value, name)

    def entries(self, container: Any, name: str) -> None:
        items = enumerate(container) if type(container) is list else list(container.items())
        for key, item in items:
            if key is not None:
                self.here(container, key, joined(name, key), item)

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
            if is_library(base.__module__) or not self.is_new(base):
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
                self.add(entries, key, joined(name, key), value)
        for key, value in attributes.items():
            if key not in named and isinstance(value, Tensor):
                self.add(attributes, key, joined(name, key), value)
        for key, value in module._modules.items():
            self.below(value, joined(name, key))

    def optimizer(self, optimizer: Any, name: str) -> None:
        self.found.has_gradients = True
        self.found.states.append(optimizer.state)
        is_own_optimizer = is_own(type(optimizer).__module__)
        self.methods(type(optimizer))
        for number, group in enumerate(optimizer.param_groups):
            for key, value in group.items():
                place = joined(joined(name, number), key)
                if key == "lr" and is_own_optimizer and type(value) is float:
                    self.found.rates.append(OutsidePlace(group, key, place, value))
                else:
                    self.add(group, key, place, value)
            self.entries(group["params"], joined(name, "params"))
            for param in group["params"]:
                own = optimizer.state.get(param)
                if type(own) is dict:
                    for key, value in own.items():
                        self.add(own, key, joined(joined(name, "state"), key), value)


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


def _is_object(value: Any) -> bool:
    """An instance of a class that is not Lamella's and keeps its attributes in a dictionary."""
    if isinstance(value, (type, types.ModuleType, Tensor, *_CALLABLE)):
        return False
    package = (type(value).__module__ or "").partition(".")[0]
    return (
        package != "builtins"
        and not is_own(package)
        and type(getattr(value, "__dict__", 0)) is dict
    )


def _is_module(value: Any) -> bool:
    return hasattr(type(value), "named_parameters") and hasattr(value, "_parameters")


def _is_optimizer(value: Any) -> bool:
    return hasattr(type(value), "add_param_group") and hasattr(value, "param_groups")
