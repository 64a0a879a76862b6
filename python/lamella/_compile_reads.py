"""Sees what a function reads while it runs, and makes guards of that.

Note [Watching reads]
  While a function is traced, its Python code and all that it calls run under a trace function that
  gets the operands of each bytecode instruction before it is executed (compiled_reads.cpp). An
  instruction that reads an attribute, an entry, a variable or a cell becomes a guard on that; one
  that passes a container to C code becomes guards on all that the container holds.
  Only objects that existed before the call are guarded. They are those that a guarded read gave,
  and what such an object holds that is immutable; modules and classes always count. Objects that
  the function makes follow from what it read.
  A call of C code reads its arguments alone, or its result is guarded by another call, or it reads
  state that no guard compares, as a clock: then the function runs uncompiled, and the reason names
  the callee.
  Writes to objects from outside are undone, and the function runs uncompiled as well.
"""

from __future__ import annotations

import gc
import importlib.util
import operator
import os
import sys
import types
from typing import Any

from lamella import Tensor, _hlo
from lamella._compile_calls import Calls
from lamella._compile_code import code_facts
from lamella._compile_places import (
    CONTAINERS,
    MISSING,
    NotCompiled,
    OutsidePlace,
    is_library,
    is_own,
    is_python,
    lookup,
)

__all__ = ["Reads"]

_CHECKPOINT = os.path.join("lamella", "utils", "checkpoint.py")


class Reads(Calls):
    """What a function reads. roots: the function, and its arguments that are not tensors. `with
    reads:` watches the code inside."""

    def __init__(self, roots: list[Any]) -> None:
        super().__init__()
        self._watch = _hlo._watch(lambda code: code_facts(code).table, self._enter, self._handle)
        for root in roots:
            self._mark(root, "")
            self._use(root)

    def __enter__(self) -> Reads:
        self._before = sys.gettrace()
        # Finalizers of cyclic garbage would be watched as if the function called them.
        self._collects = gc.isenabled()
        gc.disable()
        sys._getframe().f_trace_opcodes = True  # Python 3.12 prepares for such events only then
        try:
            self._watch.start(self)
        except RuntimeError as error:
            self.__exit__()
            raise NotCompiled(str(error)) from None
        return self

    def __exit__(self, *error: Any) -> None:
        sys.settrace(self._before)
        if self._collects:
            gc.enable()
        if self.refused:
            raise NotCompiled(self.refused) from None

    # ---- Events ----

    def _enter(self, frame: types.FrameType) -> bool:
        """Notes a new frame; whether it is that of a module that is imported."""
        before = frame.f_back
        if frame.f_code.co_name == "<module>" and before is not None:
            if before.f_code.co_filename.startswith("<frozen importlib"):
                return True
        code = frame.f_code
        for slot in code_facts(code).own_cells:
            cell = self._watch.slot(frame, slot)
            self._cells_made[id(cell)] = cell
        if code.co_flags & 0x220:  # a generator or coroutine
            if frame.f_lasti > 8 and id(frame) not in self._generators:
                self._refuse(f"it continues a generator, {code.co_name}, that was started before")
            self._generators[id(frame)] = frame
        return False

    def _handle(self, frame: types.FrameType, place: int, operands: tuple[Any, ...]) -> None:
        name, what = code_facts(frame.f_code).steps[place]
        self._is_library = is_library(frame.f_globals.get("__name__"))
        frames = (frame, frame.f_back)
        files = (one.f_code.co_filename for one in frames if one is not None)
        self._restores_generator = any(file.endswith(_CHECKPOINT) for file in files)
        try:
            getattr(self, "_" + name)(frame, what, operands)
        except Exception as error:
            if self.refused:
                raise
            where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            self._refuse(f"what it reads at {where} cannot be guarded: {error!r}")

    # ---- Instructions ----

    def _load_global(self, frame: types.FrameType, name: str, _: Any) -> None:
        space = frame.f_globals
        value = self._item(space, name) if self._has_globals(frame) else space.get(name, MISSING)
        if value is MISSING:
            self._item(frame.f_builtins, name)

    def _has_globals(self, frame: types.FrameType) -> bool:
        """Whether the global variables of a frame existed outside; exec() may have made them."""
        space = frame.f_globals
        module = sys.modules.get(space.get("__name__", ""))
        return id(space) in self._outside or getattr(module, "__dict__", None) is space

    def _load_name(self, frame: types.FrameType, name: str, _: Any) -> None:
        own = frame.f_locals
        if own is not frame.f_globals and isinstance(own, dict):
            if self._item(own, name) is not MISSING if self._is_outside(own) else name in own:
                return
        self._load_global(frame, name, _)

    def _store_name(self, frame: types.FrameType, name: str, _: Any) -> None:
        own = frame.f_locals
        if self._has_globals(frame) if own is frame.f_globals else self._is_outside(own):
            self._set_item(frame.f_locals, name, name)

    def _store_global(self, frame: types.FrameType, name: str, _: Any) -> None:
        if self._has_globals(frame):
            self._set_item(frame.f_globals, name, name)

    def _cell(self, frame: types.FrameType, slot: int) -> Any:
        cell = self._watch.slot(frame, slot)
        return None if id(cell) in self._cells_made else cell

    def _load_cell(self, frame: types.FrameType, slot: int, _: Any) -> None:
        cell = self._cell(frame, slot)
        if type(cell) is not types.CellType or id(cell) in self._cells:
            return
        place = OutsidePlace(cell, None, self._cell_name(frame, slot), None)
        place.value = self._mark(place.get(), place.name)
        if id(place.value) not in self.stand_ins and (id(cell), None) not in self._changes:
            self._cells[id(cell)] = place

    def _store_cell(self, frame: types.FrameType, slot: int, _: Any) -> None:
        cell = self._cell(frame, slot)
        if type(cell) is types.CellType:
            place = OutsidePlace(cell, None, self._cell_name(frame, slot), None)
            place.value = place.get()
            self._write(place, None)

    def _cell_name(self, frame: types.FrameType, slot: int) -> str:
        free = frame.f_code.co_freevars
        return free[slot - code_facts(frame.f_code).table[0] + len(free)]

    def _load_attribute(self, _: Any, name: str, operands: tuple[Any, ...]) -> None:
        self._attribute(operands[0], name)

    def _load_super(self, _: Any, name: str, operands: tuple[Any, ...]) -> None:
        _super, after, owner = operands
        kind = owner if isinstance(owner, type) else type(owner)
        self._super(after, kind, name)

    def _store_attribute(self, _: Any, name: str, operands: tuple[Any, ...]) -> None:
        self._specials(type(*operands))
        if not isinstance(lookup(type(*operands), "__setattr__"), types.FunctionType):
            self._set_attribute(operands[0], name)

    def _subscript(self, _: Any, _name: Any, operands: tuple[Any, ...]) -> None:
        container, key = operands
        self._use(key)
        if not self._is_outside(container) or isinstance(container, (type, tuple)):
            self._use(container) if not isinstance(container, CONTAINERS) else None
        elif isinstance(lookup(type(container), "__getitem__"), types.FunctionType):
            self._use_type(container)
        elif isinstance(container, dict):
            self._use_type(container)
            self._item(container, key)
        elif isinstance(container, list) and isinstance(key, int):
            self._use_type(container)
            self._element(container, key)
        elif isinstance(container, (types.MappingProxyType, memoryview)) or not (
            isinstance(container, (*CONTAINERS, Tensor))
            or is_python(type(container))
            or type(container).__module__ == "numpy"
            or is_own(type(container).__module__)
        ):
            self._evaluated(operator.getitem, (container, key), self._name(container))
        else:
            self._use(container)

    def _store_item(self, _: Any, _name: Any, operands: tuple[Any, ...]) -> None:
        container, key = operands
        self._specials(type(container))
        if not isinstance(lookup(type(container), "__setitem__"), types.FunctionType):
            self._set_entry(container, key)

    def _store_slice(self, _: Any, _name: Any, operands: tuple[Any, ...]) -> None:
        self._set_entry(operands[0], slice(None))

    def _contains(self, _: Any, _name: Any, operands: tuple[Any, ...]) -> None:
        key, container = operands
        python = isinstance(lookup(type(container), "__contains__"), types.FunctionType)
        if isinstance(container, dict) and self._is_outside(container) and not python:
            self._use_type(container)
            self._item(container, key, only_present=True)
        else:
            self._use(container)

    def _compare(self, _: Any, argument: Any, operands: tuple[Any, ...]) -> None:
        if argument in ("in", "not in"):
            self._contains(_, argument, operands)
            return
        for operand in operands:
            self._use(operand, deep=True)

    def _identity(self, _: Any, _name: Any, operands: tuple[Any, ...]) -> None:
        if not self._is_library and all(isinstance(one, Tensor) for one in operands):
            if any(id(one) in self.stand_ins for one in operands):
                self._refuse("it compares tensors by identity")

    def _import_name(self, frame: types.FrameType, name: str, _: Any) -> None:
        self._imported(name)
        if frame.f_globals.get("__package__") and f".{name}" not in sys.modules:
            try:
                self._item(
                    sys.modules,
                    importlib.util.resolve_name(f".{name}", frame.f_globals["__package__"]),
                )
            except ImportError:
                pass

    def _advance(self, _: Any, _name: Any, operands: tuple[Any, ...]) -> None:
        self._next(*operands)

    def _write_in_place(self, _: Any, _name: Any, operands: tuple[Any, ...]) -> None:
        self._plain(_, _name, operands)
        if isinstance(operands[0], CONTAINERS) and self._is_outside(operands[0]):
            self._contents(operands[0])

    def _plain(self, _: Any, _name: Any, operands: tuple[Any, ...]) -> None:
        for operand in operands:
            self._use(operand)

    def _call_named(self, frame: Any, _: Any, operands: tuple[Any, ...]) -> None:
        self._call(frame, _, operands[:-1])

    def _call_unpacked(self, frame: Any, _: Any, operands: tuple[Any, ...]) -> None:
        """[NULL,] callable, tuple or iterable of arguments, [dictionary]; or callable, NULL, tuple,
        dictionary or NULL."""
        given = [operand for operand in operands if operand is not self._watch]
        at = next((i for i in range(len(given) - 1, -1, -1) if isinstance(given[i], tuple)), -1)
        if at < 1:
            given = given[-2 - (_ or 0) :]
            at = 1
        for part in given[at:]:
            self._use(part)
        named = given[at + 1] if len(given) > at + 1 else {}
        args = given[at] if isinstance(given[at], (tuple, list)) else ()
        self._called(frame, given[at - 1], [*args, *dict.values(named)])
