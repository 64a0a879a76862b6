"""Bytecode of watched functions: which instructions read something, and where operands are."""

from __future__ import annotations

import array
import dis
import sys
import types
import weakref
from typing import Any

__all__ = ["code_facts"]

_IGNORED = 0xFFFF
_OWN_FILES = (__file__, __file__.replace("_compile_code", "_compile_reads"))
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
# The handler of each other instruction, and the number of its operands.
_HANDLERS = {
    "LOAD_GLOBAL": ("load_global", 0),
    "LOAD_NAME": ("load_name", 0),
    "STORE_NAME": ("store_name", 0),
    "DELETE_NAME": ("store_name", 0),
    "LOAD_FROM_DICT_OR_GLOBALS": ("load_global", 0),
    "LOAD_DEREF": ("load_cell", 0),
    "LOAD_CLASSDEREF": ("load_cell", 0),
    "LOAD_FROM_DICT_OR_DEREF": ("load_cell", 0),
    "STORE_GLOBAL": ("store_global", 0),
    "DELETE_GLOBAL": ("store_global", 0),
    "STORE_DEREF": ("store_cell", 0),
    "DELETE_DEREF": ("store_cell", 0),
    "LOAD_ATTR": ("load_attribute", 1),
    "LOAD_METHOD": ("load_attribute", 1),
    "IMPORT_FROM": ("load_attribute", 1),
    "LOAD_SUPER_ATTR": ("load_super", 3),
    "STORE_ATTR": ("store_attribute", 1),
    "DELETE_ATTR": ("store_attribute", 1),
    "BINARY_SUBSCR": ("subscript", 2),
    "STORE_SUBSCR": ("store_item", 2),
    "DELETE_SUBSCR": ("store_item", 2),
    "STORE_SLICE": ("store_slice", 3),
    "CONTAINS_OP": ("contains", 2),
    "IMPORT_NAME": ("import_name", 0),
    "FOR_ITER": ("advance", 1),
    "LIST_EXTEND": ("plain", 1),
    "SET_UPDATE": ("plain", 1),
    "DICT_UPDATE": ("plain", 1),
    "DICT_MERGE": ("plain", 1),
    "COMPARE_OP": ("compare", 2),
    "GET_ITER": ("plain", 1),
    "UNPACK_SEQUENCE": ("plain", 1),
    "UNPACK_EX": ("plain", 1),
    "TO_BOOL": ("plain", 1),
    "UNARY_NOT": ("plain", 1),
    "IS_OP": ("identity", 2),
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
        if code.co_filename in _OWN_FILES or code.co_filename.startswith("<frozen importlib"):
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


def code_facts(code: types.CodeType) -> _Code:
    known = _codes.get(id(code))
    if known is None or known[0]() is not code:
        key = id(code)
        known = weakref.ref(code, lambda _: _codes.pop(key, None)), _Code(code)
        _codes[key] = known
    return known[1]
