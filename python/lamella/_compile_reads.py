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

import array
import dis
import gc
import importlib.util
import operator
import os
import sys
import types
import weakref
from typing import Any

from lamella import Tensor, _hlo
from lamella._compile_calls import Calls
from lamella._compile_guards import (
    CELL,
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
        self._watch = _hlo._watch(lambda code: _code_facts(code).table, self._enter, self._handle)
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

    def end(self) -> None:
        """Lets go of what the function made, tensors with it; nothing is watched from now on."""
        self._cells_made.clear()
        self._generators.clear()
        self._watch = None  # which refers to its owner

    # ---- Events ----

    def _enter(self, frame: types.FrameType) -> bool:
        """Notes a new frame; whether it is that of a module that is imported."""
        before = frame.f_back
        if frame.f_code.co_name == "<module>" and before is not None:
            if before.f_code.co_filename.startswith("<frozen importlib"):
                return True
        code = frame.f_code
        for slot in _code_facts(code).own_cells:
            cell = self._watch.slot(frame, slot)
            self._cells_made[id(cell)] = cell
        if code.co_flags & 0x220:  # a generator or coroutine
            if frame.f_lasti > 8 and id(frame) not in self._generators:
                self._refuse(f"it continues a generator, {code.co_name}, that was started before")
            self._generators[id(frame)] = frame
        return False

    def _handle(self, frame: types.FrameType, place: int, operands: tuple[Any, ...]) -> None:
        name, what = _code_facts(frame.f_code).steps[place]
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
        if type(cell) is not types.CellType:
            return
        place = OutsidePlace(cell, None, self._cell_name(frame, slot), None)
        place.value = self._mark(place.get(), place.name)
        if id(place.value) not in self.stand_ins and (id(cell), None) not in self._changes:
            self._guard(place.name, CELL, cell, None, place.value)

    def _store_cell(self, frame: types.FrameType, slot: int, _: Any) -> None:
        cell = self._cell(frame, slot)
        if type(cell) is types.CellType:
            place = OutsidePlace(cell, None, self._cell_name(frame, slot), None)
            place.value = place.get()
            self._write(place)

    def _cell_name(self, frame: types.FrameType, slot: int) -> str:
        free = frame.f_code.co_freevars
        return free[slot - _code_facts(frame.f_code).table[0] + len(free)]

    def _load_attribute(self, _: Any, name: str, operands: tuple[Any, ...]) -> None:
        self._attribute(operands[0], name)

    def _load_super(self, _: Any, name: str, operands: tuple[Any, ...]) -> None:
        _super, after, owner = operands
        kind = owner if isinstance(owner, type) else type(owner)
        self._looked_up(kind, name, after)

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
        elif isinstance(container, dict) or (isinstance(container, list) and isinstance(key, int)):
            self._use_type(container)
            self._item(container, key)
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


# ---- Bytecode ------------------------------------------------------------------------------------

_IGNORED = 0xFFFF
# Instructions that read nothing but the stack and local variables, by the beginning of their names.
_SILENT = (
    "LOAD_FAST STORE_FAST DELETE_FAST LOAD_CONST LOAD_SMALL_INT LOAD_COMMON_CONST LOAD_CLOSURE "
    "LOAD_ASSERTION LOAD_BUILD_CLASS POP_TOP POP_BLOCK POP_EXCEPT POP_ITER PUSH_ DUP_ ROT_ COPY "
    "SWAP NOP NOT_TAKEN RESUME CACHE PRECALL KW_NAMES MAKE_ SET_FUNCTION RETURN_ JUMP_FORWARD "
    "JUMP_BACKWARD JUMP_ABSOLUTE SETUP_FINALLY BUILD_TUPLE BUILD_LIST BUILD_MAP BUILD_CONST "
    "BUILD_SLICE BUILD_STRING LIST_APPEND MAP_ADD RERAISE RAISE_ GEN_START YIELD_VALUE SEND "
    "END_ CHECK_EXC JUMP_IF_NOT_EXC INTERPRETER_EXIT ENTER_EXECUTOR "
    "POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE "
    "POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE EXTENDED_ARG"
).split()
# The handlers of others, with the number of operands.
_HANDLERS = {
    name: (handler, count)
    for handler, count, names in (
        ("load_global", 0, "LOAD_GLOBAL LOAD_FROM_DICT_OR_GLOBALS"),
        ("load_name", 0, "LOAD_NAME"),
        ("store_name", 0, "STORE_NAME DELETE_NAME"),
        ("load_cell", 0, "LOAD_DEREF LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF"),
        ("store_global", 0, "STORE_GLOBAL DELETE_GLOBAL"),
        ("store_cell", 0, "STORE_DEREF DELETE_DEREF"),
        ("load_attribute", 1, "LOAD_ATTR LOAD_METHOD IMPORT_FROM"),
        ("load_super", 3, "LOAD_SUPER_ATTR"),
        ("store_attribute", 1, "STORE_ATTR DELETE_ATTR"),
        ("subscript", 2, "BINARY_SUBSCR"),
        ("store_item", 2, "STORE_SUBSCR DELETE_SUBSCR"),
        ("store_slice", 3, "STORE_SLICE"),
        ("contains", 2, "CONTAINS_OP"),
        ("import_name", 0, "IMPORT_NAME"),
        ("advance", 1, "FOR_ITER"),
        ("plain", 1, "LIST_EXTEND SET_UPDATE DICT_UPDATE DICT_MERGE GET_ITER UNPACK_SEQUENCE"),
        ("plain", 1, "UNPACK_EX TO_BOOL UNARY_NOT"),
        ("compare", 2, "COMPARE_OP"),
        ("identity", 2, "IS_OP"),
    )
    for name in names.split()
}


def _handler(instruction: dis.Instruction) -> tuple[str, int] | None:
    name, arg = instruction.opname, instruction.arg or 0
    if name in _HANDLERS:
        return _HANDLERS[name]
    if name.startswith("CALL") and not name.startswith("CALL_INTRINSIC"):
        if name == "CALL_FUNCTION_EX":
            return "call_unpacked", 4 if sys.version_info >= (3, 11) else 2 + (arg & 1)
        extra = 1 if name in ("CALL_FUNCTION", "CALL_FUNCTION_KW") else 2
        named = name in ("CALL_KW", "CALL_FUNCTION_KW")
        return "call_named" if named else "call", arg + extra + named
    if name == "BINARY_OP" and instruction.argrepr == "[]":
        return "subscript", 2
    if name.startswith("INPLACE_") or (name == "BINARY_OP" and instruction.argrepr.endswith("=")):
        return "write_in_place", 2
    if name.startswith(tuple(_SILENT)):
        return None
    if "JUMP" in name:
        return "plain", 1
    return "plain", 2 if name.startswith("BINARY_") else 3


def _depths(code: types.CodeType, instructions: list[dis.Instruction]) -> dict[int, int]:
    """The depth of the stack before each instruction, by its offset."""
    at = {one.offset: i for i, one in enumerate(instructions)}
    depths: dict[int, int] = {}
    # Generators start with the sent value on their stack.
    work = [(0, int(instructions[0].opname == "GEN_START"))]
    entries = getattr(dis.Bytecode(code), "exception_entries", ())
    work += [(entry.target, entry.depth + 1 + bool(entry.lasti)) for entry in entries]
    is_jump = set(dis.hasjrel) | set(dis.hasjabs)
    while work:
        offset, depth = work.pop()
        while offset in at and offset not in depths:
            i = at[offset]
            one = instructions[i]
            depths[offset] = depth
            if one.opcode in is_jump:
                work.append((one.argval, depth + _effect(one, True)))
            depth += _effect(one, False)
            name = one.opname
            if i + 1 == len(instructions) or name.startswith(_ENDS):
                break
            offset = instructions[i + 1].offset
    return depths


_ENDS = (
    "RETURN_V", "RETURN_C", "RAISE", "RERAISE", "JUMP_FORWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD",
)  # fmt: skip


def _effect(one: dis.Instruction, jump: bool) -> int:
    """The change of the stack's depth, where dis says what compilers count with."""
    name = one.opname
    if name in ("EXTENDED_ARG", "PRECALL"):
        return 0
    if name == "RETURN_GENERATOR":
        return 1
    if name == "CALL" and sys.version_info < (3, 12):
        return -1 - (one.arg or 0)
    arg = one.arg if one.opcode >= dis.HAVE_ARGUMENT else None
    return dis.stack_effect(one.opcode, arg, jump=jump)


class _Code:
    """What is known of a code object: its table for compiled_reads.cpp, the handler and argument of
    each instruction, and the slots of its variables."""

    def __init__(self, code: types.CodeType) -> None:
        self.steps: dict[int, tuple[str, Any]] = {}
        names = list(code.co_varnames)
        if sys.version_info >= (3, 11):
            names += [name for name in code.co_cellvars if name not in code.co_varnames]
        else:
            names += code.co_cellvars
        names += code.co_freevars
        # Where two slots have one name, the last one holds the cell.
        slots = {name: i for i, name in enumerate(names)}
        self.own_cells = [slots[name] for name in code.co_cellvars]
        self.table: Any = None
        if code.co_filename == __file__ or code.co_filename.startswith("<frozen importlib"):
            return
        instructions = list(dis.get_instructions(code))
        depths = _depths(code, instructions)
        units = len(code.co_code) // 2
        numbers = array.array("H", [_IGNORED, 0] * units)
        extended: list[int] = []
        for one in instructions:
            if one.opcode == dis.EXTENDED_ARG:
                extended.append(one.offset)
                continue
            found = _handler(one)
            for offset in [*extended, one.offset]:
                if found is not None:
                    name, count = found
                    what = slots[one.argval] if name.endswith("_cell") else one.argval
                    self.steps[offset // 2] = (name, what)
                    numbers[offset] = count
                    numbers[offset + 1] = depths.get(one.offset, 0)
            extended = []
        self.table = (len(names), numbers.tobytes())


_codes: dict[int, tuple[Any, _Code]] = {}


def _code_facts(code: types.CodeType) -> _Code:
    known = _codes.get(id(code))
    if known is None or known[0]() is not code:
        key = id(code)
        known = weakref.ref(code, lambda _: _codes.pop(key, None)), _Code(code)
        _codes[key] = known
    return known[1]
