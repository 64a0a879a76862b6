"""Sees what a function reads while it runs, and makes guards of that.

Note [Watching reads]
  While a function is traced, its Python code and all that it calls run under a trace function that
  gets the operands of each bytecode instruction before it is executed (compiled_reads.cpp). An
  instruction that reads an attribute, an entry, a variable or a cell becomes a guard on that; one
  that passes a container to C code becomes guards on all that the container holds.
  Only objects that existed before the call are guarded. They are those that a guarded read gave, and
  what such an object holds that is immutable; modules and classes always count. Objects that the
  function makes follow from what it read.
  A call of C code reads its arguments alone, or its result is guarded by another call, or it reads
  state that no guard compares, as a clock: then the function runs uncompiled, and the reason names
  the callee.
  Writes to objects from outside are undone, and the function runs uncompiled as well.
"""

from __future__ import annotations

import array
import collections
import contextvars
import dis
import functools
import gc
import importlib.util
import io
import operator
import string
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

from lamella import Tensor, _hlo

__all__ = ["MISSING", "NotCompiled", "OutsidePlace", "Reads", "is_library", "is_own", "joined"]

MISSING = object()


class NotCompiled(Exception):
    """A function cannot be compiled; the message says why and where."""


_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, slice)
_PLAIN_TYPES = frozenset([*_PLAIN, type(NotImplemented), types.CodeType])
_DICT, _ITEM, _LIST, _ELEMENT, _CELL, _OBJECT, _FUNCTION, _TYPE, _CALL, _TENSOR = range(10)
# The largest buffer, in bytes, that is compared at each call.
_MAX_BUFFER = 1 << 20
_STANDARD: frozenset[str] = getattr(sys, "stdlib_module_names", frozenset())

# lamella.compat gives its types the module name "torch".
_PACKAGES = ("lamella", "torch")


def is_own(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] in _PACKAGES


def is_library(module: str | None) -> bool:
    return module is not None and (is_own(module) or module.partition(".")[0] in _STANDARD)


def joined(name: str, key: Any) -> str:
    text = str(key) if isinstance(key, _PLAIN) else f"({type(key).__name__})"
    return f"{name}.{text}" if name else text


# ---- Instructions --------------------------------------------------------------------------------

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
    name = instruction.opname
    if name in _HANDLERS:
        return _HANDLERS[name]
    if name.startswith("CALL") and not name.startswith("CALL_INTRINSIC"):
        if name == "CALL_FUNCTION_EX":
            return "call_unpacked", 4 if sys.version_info >= (3, 11) else 2 + (instruction.arg & 1)
        extra = 1 if name in ("CALL_FUNCTION", "CALL_FUNCTION_KW") else 2
        named = name in ("CALL_KW", "CALL_FUNCTION_KW")
        return "call_named" if named else "call", instruction.arg + extra + named
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
    """The change of the stack's depth. dis says what compilers count with, which differs in places."""
    name = one.opname
    if name in ("EXTENDED_ARG", "PRECALL"):
        return 0
    if name == "RETURN_GENERATOR":
        return 1
    if name == "CALL" and sys.version_info < (3, 12):
        return -1 - one.arg
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
        # Of equal names the last slot holds the cell.
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


def _code(code: types.CodeType) -> _Code:
    known = _codes.get(id(code))
    if known is None or known[0]() is not code:
        key = id(code)
        known = weakref.ref(code, lambda _: _codes.pop(key, None)), _Code(code)
        _codes[key] = known
    return known[1]


# ---- Places --------------------------------------------------------------------------------------


class OutsidePlace:
    """An entry of a dictionary or list, a closure cell (key None), or an attribute, and the value
    that it had when it was found."""

    __slots__ = ("container", "is_attribute", "key", "name", "value")

    def __init__(
        self, container: Any, key: Any, name: str, value: Any, is_attribute: bool = False
    ) -> None:
        self.container, self.key, self.name, self.value = container, key, name, value
        self.is_attribute = is_attribute

    def get(self) -> Any:
        if self.is_attribute:
            return _attribute_now(self.container, self.key)
        if self.key is None:
            try:
                return self.container.cell_contents
            except ValueError:
                return MISSING
        if isinstance(self.container, list):
            try:
                return list.__getitem__(self.container, self.key)
            except IndexError:
                return MISSING
        return dict.get(self.container, self.key, MISSING)

    def put(self, value: Any) -> None:
        if self.is_attribute:
            owner = type if isinstance(self.container, type) else object
            if value is not MISSING:
                owner.__setattr__(self.container, self.key, value)
            elif self.get() is not MISSING:
                owner.__delattr__(self.container, self.key)
        elif self.key is None:
            if value is MISSING:
                del self.container.cell_contents
            else:
                self.container.cell_contents = value
        elif value is not MISSING:
            self.container[self.key] = value
        elif isinstance(self.container, list):
            del self.container[self.key :]
        else:
            self.container.pop(self.key, None)


def _attribute_now(owner: Any, name: str) -> Any:
    if isinstance(owner, type):
        return vars(owner).get(name, MISSING)
    try:
        return object.__getattribute__(owner, name)
    except AttributeError:
        return MISSING


class _Contents:
    """All that a container held, as a change to be undone."""

    is_attribute, key = False, MISSING

    def __init__(self, container: Any, name: str) -> None:
        self.container, self.name = container, name
        self.value = self.get()

    def get(self) -> Any:
        if isinstance(self.container, dict):
            return tuple(dict.items(self.container))
        return bytes(self.container) if _is_bytes(self.container) else tuple(self.container)

    def put(self, value: Any) -> None:
        if isinstance(self.container, (list, bytearray, array.array)):
            self.container[:] = type(self.container)(value) if _is_bytes(self.container) else value
        else:
            self.container.clear()
            add = getattr(self.container, "update", None) or self.container.extend
            add(value)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, bytearray)


# ---- Types ---------------------------------------------------------------------------------------

_HEAP, _IMMUTABLE = 1 << 9, 1 << 8


def _is_mutable(kind: type) -> bool:
    return bool(kind.__flags__ & _HEAP) and not kind.__flags__ & _IMMUTABLE


def _lookup(kind: type, name: str, after: type | None = None) -> Any:
    """What a name means in a class, or in the bases that follow the class `after`."""
    bases = kind.__mro__
    if after is not None:
        bases = bases[bases.index(after) + 1 :] if after in bases else ()
    for base in bases:
        if name in base.__dict__:
            return base.__dict__[name]
    return MISSING


_UNUSED = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __annotations__ __abstractmethods__ __slots__ "
    "__annotate__ __annotations_cache__ __static_attributes__ __firstlineno__ __orig_bases__".split()
)


def _special(kind: type) -> dict[str, Any]:
    """The methods that Python calls by itself."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if _is_mutable(base):
            for name, value in list(base.__dict__.items()):
                if name.startswith("__") and name not in _UNUSED:
                    found[name] = value
    return found


def _type_check(kind: type, names: dict[Any, Any], special: dict[str, Any] | None) -> Any:
    def holds() -> bool:
        same = all(
            now is value or (now is not MISSING and _hlo._is_same(now, value))
            for (after, name), value in names.items()
            for now in (_lookup(kind, name, after),)
        )
        if not same or special is None:
            return same
        now = _special(kind)
        return now.keys() == special.keys() and all(now[key] is special[key] for key in now)

    return holds


# ---- Calls of C code -----------------------------------------------------------------------------

# Modules whose C functions read nothing but their arguments.
_PURE = frozenset(
    "builtins math cmath operator _operator itertools functools _functools collections _collections "
    "_abc _weakref _thread _struct struct _json _codecs re _sre _string lamella torch numpy _warnings "
    "_collections_abc copy types typing _typing enum _bisect _heapq _ctypes _opcode "
    "_contextvars _io _ast _statistics binascii zlib _hashlib _sha2 _md5 unicodedata "
    "_datetime weakref threading contextlib string array pickle _pickle ctypes ml_dtypes atexit "
    "_imp _tokenize marshal".split()
)
# Functions of these modules that read other state.
_IMPURE = frozenset(
    "open input read readline readlines readinto read1 now utcnow today random rand randn randint "
    "permutation shuffle choice standard_normal uniform normal integers bytes_ getrandbits "
    "initial_seed seed get_state get_offset memory_at".split()
)
# Types of C code whose objects never change, or whose methods read nothing that matters.
_CONSTANT_MODULES = ("re", "datetime", "_struct", "types", "_thread", "enum", "ml_dtypes")


def _is_constant(value: Any) -> bool:
    kinds = (*_PLAIN, *_CONTAINERS, tuple, frozenset, type, Tensor, types.MappingProxyType)
    if isinstance(value, kinds) or _is_code(value):
        return True
    module = type(value).__module__
    return module in _CONSTANT_MODULES or module == "numpy" or _is_python(type(value))


def _is_code(value: Any) -> bool:
    return isinstance(value, (types.FunctionType, types.MethodType, *_BOUND, *_UNBOUND, property))


def _is_python(kind: type) -> bool:
    """Whether the objects of a class have no state of C code."""
    return next(base for base in kind.__mro__ if "__new__" in base.__dict__) is object


_SHALLOW = frozenset(
    "len iter list tuple zip enumerate reversed isinstance issubclass map filter id type bool callable "
    "set frozenset dict hasattr getattr any all next keys values items copy".split()
)
_READING = frozenset(
    "get keys values items copy index count __getitem__ __len__ __contains__ __iter__ __eq__ __ne__ "
    "__lt__ __le__ __gt__ __ge__ __reversed__ union intersection difference symmetric_difference "
    "issubset issuperset isdisjoint __or__ __and__ __sub__ __xor__ __add__ __mul__ __rmul__ __repr__ "
    "__hash__ __bool__ __reduce__ __reduce_ex__ __copy__ __class__ __init_subclass__ __format__ "
    "__str__ __sizeof__ __dir__ fromkeys tobytes tolist hex decode startswith endswith find "
    "__subclasshook__ __new__ __init__ __setattr__ __getattribute__ __delattr__".split()
)
_ALWAYS = (types.ModuleType, type, types.MappingProxyType)
_CONTAINERS = (list, dict, set, collections.deque, bytearray, array.array)
_BOUND = (types.BuiltinMethodType, types.MethodWrapperType)
_UNBOUND = (types.MethodDescriptorType, types.WrapperDescriptorType)
_SLOT = (types.MemberDescriptorType, types.GetSetDescriptorType)
_ATTRIBUTE_OPERATORS = (operator.attrgetter, operator.methodcaller)
# What C functions say of a thread or process; compared at each call.
_STATE = frozenset(
    "getrecursionlimit getswitchinterval getdefaultencoding getfilesystemencoding isenabled "
    "get_threshold get_num_threads getpid getcwd get_ident get_native_id intern".split()
)


class Reads:
    """The reads of a function. `with reads:` watches the code inside.

    gradients: whether it read an attribute `grad` of a tensor. refused: why it cannot be guarded,
    empty if it can."""

    def __init__(self, roots: list[Any]) -> None:
        self.gradients = False
        self.refused = ""
        self._is_library = False  # whether the present instruction is of a library
        # Tensors in place of those from outside.
        self.stand_ins: dict[int, Any] = {}  # the values that they replace, by their id
        self._outside: dict[int, tuple[Any, str]] = {}
        self._dicts: dict[int, list[Any]] = {}  # dict, name, keys or None, value by key
        self._lists: dict[int, list[Any]] = {}  # list, name, length or -1, value by index
        self._cells: dict[int, OutsidePlace] = {}
        self._objects: dict[int, tuple[Any, str, type, Any]] = {}
        self._functions: dict[int, tuple[Any, str]] = {}
        self._types: dict[type, list[Any]] = {}  # value by (base, name), special methods or None
        self._calls: dict[Any, tuple[Any, Any, Any, str]] = {}
        self._tensors: dict[int, tuple[Any, str]] = {}
        self._cells_made: dict[int, Any] = {}
        self._generators: dict[int, Any] = {}
        self._changes: dict[Any, Any] = {}
        self._changed: list[Any] = []
        self._late: list[tuple[Any, Any]] = []  # entries that are read when all is done
        self._watch: Any = _hlo._watch(lambda code: _code(code).table, self._enter, self._handle)
        for root in roots:
            self._mark(root, "")
            self._use(root)

    def __enter__(self) -> Reads:
        self._before = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # Python 3.12 prepares for such events only then
        self._watch.start()
        return self

    def __exit__(self, *error: Any) -> None:
        sys.settrace(self._before)
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
        for slot in _code(code).own_cells:
            cell = self._watch.slot(frame, slot)
            self._cells_made[id(cell)] = cell
        if code.co_flags & 0x220:  # a generator or coroutine
            if frame.f_lasti > 8 and id(frame) not in self._generators:
                self._refuse(f"it continues a generator, {code.co_name}, that was started before")
            self._generators[id(frame)] = frame
        return False

    def _handle(self, frame: types.FrameType, place: int, operands: tuple[Any, ...]) -> None:
        name, what = _code(frame.f_code).steps[place]
        self._is_library = is_library(frame.f_globals.get("__name__"))
        try:
            getattr(self, "_" + name)(frame, what, operands)
        except Exception as error:
            if self.refused:
                raise
            where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            self._refuse(f"what it reads at {where} cannot be guarded: {error!r}")

    def _refuse(self, why: str) -> None:
        self.refused = self.refused or why
        raise NotCompiled(why)

    # ---- What exists outside ----

    def _is_outside(self, value: Any) -> bool:
        return id(value) in self._outside or isinstance(value, _ALWAYS)

    def _name(self, value: Any) -> str:
        if isinstance(value, (types.ModuleType, type)):
            return value.__name__.rpartition(".")[2]
        return self._outside.get(id(value), (None, ""))[1]

    def _mark(self, value: Any, name: str) -> Any:
        """Says that a value exists outside; returns it."""
        kind = type(value)
        if kind in _PLAIN_TYPES or id(value) in self._outside or id(value) in self.stand_ins:
            return value
        if isinstance(value, (types.ModuleType, type)) or value is MISSING:
            return value
        if kind.__module__ == "lamella._ops":
            return value  # namespaces of operators, which are filled as they are read
        self._outside[id(value)] = value, name
        if isinstance(value, (tuple, frozenset)):
            for i, item in enumerate(value):
                self._mark(item, joined(name, i))
        elif isinstance(value, Tensor):
            self._tensors[id(value)] = value, name
        elif kind is types.FunctionType:
            self._functions[id(value)] = value, name
            if id(value.__globals__) not in self._outside:
                self._outside[id(value.__globals__)] = value.__globals__, ""
            if value.__kwdefaults__:
                self._mark(value.__kwdefaults__, name)
                self._whole(value.__kwdefaults__)
            self._mark(value.__defaults__, name)
        elif kind is types.MethodType:
            self._mark(value.__self__, name)
            self._mark(value.__func__, name)
        elif kind in (staticmethod, classmethod):
            self._mark(value.__func__, name)
        elif kind is property:
            for part in (value.fget, value.fset, value.fdel):
                self._mark(part, name)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self._mark(part, name)
            self._whole(value.keywords)
        elif isinstance(value, _BOUND):
            self._mark(value.__self__, name)
        elif type(value).__flags__ & _HEAP == 0 and not isinstance(value, _CONTAINERS):
            for part in gc.get_referents(value):
                self._mark(part, name)
        return value

    # ---- Reads ----

    def _item(self, container: Any, key: Any, only_present: bool = False) -> Any:
        """Reads an entry of a dictionary from outside."""
        try:
            value = dict.get(container, key, MISSING)
            if id(key) in self.stand_ins:
                key = self.stand_ins[id(key)]
                if dict.get(container, key, MISSING) is not value:
                    self._refuse(f"it looks up a tensor in {self._name(container)}")
        except TypeError:
            return MISSING
        name = joined(self._name(container), key)
        self._mark(value, name)
        if id(value) in self.stand_ins or (id(container), key) in self._changes:
            return value
        row = self._dicts.setdefault(id(container), [container, self._name(container), None, {}])
        if only_present and value is not MISSING:
            row[3].setdefault(key, _hlo._ANY)
        elif row[3].get(key, _hlo._ANY) is _hlo._ANY:
            row[3][key] = value
        return value

    def _element(self, container: Any, index: int) -> None:
        row = self._lists.setdefault(id(container), [container, self._name(container), -1, {}])
        size = list.__len__(container)
        inside = -size <= index < size
        value = list.__getitem__(container, index) if inside else MISSING
        self._mark(value, joined(row[1], index))
        at = index + size if index < 0 else index
        if id(value) not in self.stand_ins and (id(container), at) not in self._changes:
            row[3].setdefault(index, value)

    def _whole(self, container: Any) -> None:
        """Reads all that a container from outside holds."""
        name = self._name(container)
        if (id(container), MISSING) in self._changes and not self._is_read(container):
            # What was changed before it was read is undone, and the function runs as it is.
            self._lists.setdefault(id(container), [container, name, -1, {}])
        if isinstance(container, dict):
            keys = tuple(key for key in dict.keys(container) if id(key) not in self.stand_ins)
            for key in keys:
                self._item(container, key)
            row = self._dicts.setdefault(id(container), [container, name, None, {}])
            if row[2] is None:
                row[2] = keys
            if isinstance(container, collections.OrderedDict):
                self._evaluated(tuple, (container,), name)
        elif isinstance(container, list):
            size = list.__len__(container)
            row = self._lists.setdefault(id(container), [container, name, -1, {}])
            if row[2] < 0:
                row[2] = size
            for i in range(size):
                self._element(container, i)
        elif isinstance(container, (set, collections.deque)):
            self._evaluated(tuple, (container,), name)
        else:
            self._buffer(container)

    def _is_read(self, container: Any) -> bool:
        key = id(container)
        if key in self._dicts or key in self._lists:
            return True
        return any(args and args[0] is container for _, args, _, _ in self._calls.values())

    def _evaluated(self, fn: Callable[..., Any], args: tuple[Any, ...], name: str) -> Any:
        """Guards the result of a call, which must have no effects."""
        # Python makes a new object of a method each time.
        method = (fn.__name__, id(fn.__self__)) if isinstance(fn, _BOUND) else id(fn)
        key = (method, id(args[0]) if args else 0, args[1:])
        try:
            known = key in self._calls
        except TypeError:
            known = False
        if known:
            return self._calls[key][2]
        try:
            value, again = fn(*args), fn(*args)
        except (AttributeError, LookupError, ValueError, TypeError):
            value = again = MISSING
        if id(value) in self.stand_ins:
            return value
        if not _hlo._is_same(again, value):
            self._refuse(f"it reads {name}, which is another object each time")
        self._calls[key] = fn, args, value, name
        return self._mark(value, name)

    def _object(self, value: Any) -> Any:
        """Guards the type of an object from outside; returns its dictionary of attributes."""
        known = self._objects.get(id(value))
        if known is not None:
            return known[3]
        found = None
        if type(value).__dictoffset__ != 0:
            found = object.__getattribute__(value, "__dict__")
            found = self._mark(found, self._name(value)) if isinstance(found, dict) else None
        self._objects[id(value)] = value, self._name(value), type(value), found
        return found

    def _looked_up(self, kind: type, name: str, after: type | None = None) -> Any:
        value = _lookup(kind, name, after)
        if _is_mutable(kind) and (id(kind), name) not in self._changes:
            self._types.setdefault(kind, [{}, None])[0].setdefault((after, name), value)
        return self._mark(value, joined(kind.__name__, name))

    def _specials(self, kind: type) -> None:
        if _is_mutable(kind):
            row = self._types.setdefault(kind, [{}, None])
            if row[1] is None:
                row[1] = _special(kind)
                for name, value in row[1].items():
                    self._mark(value, joined(kind.__name__, name))

    def _attribute(self, owner: Any, name: str) -> None:
        kind = type(owner)
        if kind is super:
            self._super(owner.__thisclass__, owner.__self_class__, name)
            if owner.__self__ is not None:
                self._descriptor(_lookup(owner.__self_class__, name, owner.__thisclass__), owner)
            return
        if isinstance(owner, types.ModuleType):
            if kind is not types.ModuleType:
                self._looked_up(kind, name)
            if name == "__dict__":
                self._mark(owner.__dict__, self._name(owner))
            if self._item(owner.__dict__, name) is MISSING:
                self._item(owner.__dict__, "__getattr__")
            return
        if isinstance(owner, type):
            self._specials(kind)
            self._looked_up(kind, name)
            found = self._looked_up(owner, name)
            self._descriptor(found, owner)
            return
        self._specials(kind)
        found = self._looked_up(kind, name)
        is_tensor = isinstance(owner, Tensor)
        if is_tensor and name == "grad":
            self.gradients = True
        if is_tensor and found is MISSING and name in vars(self.stand_ins.get(id(owner), owner)):
            if id(owner) in self.stand_ins:
                self._refuse(f"it reads the attribute '{name}' of a tensor")
        if not self._is_outside(owner):
            return
        if isinstance(owner, threading.local):
            self._evaluated(getattr, (owner, name), joined(self._name(owner), name))
            return
        if kind is types.MethodType:
            self._attribute(owner.__func__, name)
            return
        if found is not MISSING and hasattr(type(found), "__set__"):
            if name == "__dict__":
                self._object(owner)
            elif isinstance(found, _SLOT):
                builtin = not _is_mutable(kind) and kind not in (types.FunctionType, types.CellType)
                if not (
                    is_tensor or builtin or is_own(kind.__module__) and kind.__dictoffset__ == 0
                ):
                    where = joined(self._name(owner), name)
                    if (id(owner), name) not in self._changes:
                        self._evaluated(found.__get__, (owner, kind), where)
                self._object(owner)
            else:
                self._descriptor(found, owner)
            return
        attributes = self._object(owner)
        if attributes is not None:
            self._item(attributes, name)
        if found is not MISSING:
            self._descriptor(found, owner)

    def _descriptor(self, found: Any, owner: Any) -> None:
        kind = type(found)
        if _is_mutable(kind) and hasattr(kind, "__get__"):
            self._specials(kind)
            self._object(found)

    def _super(self, after: type, kind: type, name: str) -> None:
        self._looked_up(kind, name, after)

    def _use(self, value: Any, deep: bool = False, seen: set[int] | None = None) -> None:
        """An instruction or C code reads an object: of a container all that it holds, of other
        objects the methods that Python calls by itself."""
        kind = type(value)
        if kind in _PLAIN_TYPES or value is self._watch:
            return
        is_container = isinstance(value, (*_CONTAINERS, tuple, frozenset))
        if is_container and deep:
            seen = set() if seen is None else seen
            if id(value) in seen:
                return
            seen.add(id(value))
        is_outside = self._is_outside(value)
        if is_outside and isinstance(value, _CONTAINERS):
            self._whole(value)
        if is_container and deep and not isinstance(value, (bytearray, array.array)):
            for item in dict.values(value) if isinstance(value, dict) else value:
                self._use(item, True, seen)
        if _is_mutable(kind):
            self._specials(kind)
            if is_outside and not isinstance(value, (types.ModuleType, type, Tensor)):
                self._object(value)
        if is_outside and not is_container:
            if isinstance(value, types.MappingProxyType):
                self._evaluated(_proxy_facts, (value,), self._name(value))
            elif isinstance(value, (type({}.keys()), type({}.values()), type({}.items()))):
                self._refuse(f"it reads a view of a dictionary, {self._name(value)}")
            elif not isinstance(value, (type, Tensor)) and not _is_python(kind):
                self._buffer(value)

    def _buffer(self, value: Any) -> None:
        """Reads the memory of an object, if it has one."""
        try:
            size = memoryview(value).nbytes
        except (TypeError, ValueError):
            return
        if size > _MAX_BUFFER:
            self._refuse(f"it reads {size} bytes of {self._name(value)}")
        self._evaluated(_memory_facts, (value,), self._name(value))

    def _everything(self, value: Any) -> None:
        """C code may read any attribute of an object."""
        self._use(value)
        if not _is_mutable(type(value)) or not self._is_outside(value):
            return
        attributes = self._object(value)
        if attributes is not None:
            self._whole(attributes)
        for base in type(value).__mro__:
            for name, part in base.__dict__.items():
                if isinstance(part, types.MemberDescriptorType):
                    self._attribute(value, name)

    # ---- Writes ----

    def _write(self, change: Any, key: Any) -> None:
        change.value = self._original(change.value)
        self._changes.setdefault((id(change.container), key), change)

    def _original(self, value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(self._original, value))
        return self.stand_ins.get(id(value), value)

    def _contents(self, container: Any) -> None:
        self._write(_Contents(container, self._name(container)), MISSING)

    def _set_attribute(self, owner: Any, name: str) -> None:
        if isinstance(owner, Tensor) or not self._is_outside(owner):
            return
        where = joined(self._name(owner), name)
        if isinstance(owner, types.ModuleType):
            self._set_item(owner.__dict__, name, where)
            return
        if isinstance(owner, type):
            place = OutsidePlace(owner, name, where, vars(owner).get(name, MISSING), True)
            self._write(place, name)
            return
        found = self._looked_up(type(owner), name)
        if found is not MISSING and hasattr(type(found), "__set__"):
            if isinstance(found, _SLOT):
                self._write(
                    OutsidePlace(owner, name, where, _attribute_now(owner, name), True), name
                )
            return
        attributes = self._object(owner)
        if attributes is not None:
            self._set_item(attributes, name, where)

    def _set_item(self, container: Any, key: Any, name: str) -> None:
        key = self.stand_ins.get(id(key), key)
        if isinstance(container, list):
            size = list.__len__(container)
            key = key + size if key < 0 else key
            value = list.__getitem__(container, key) if 0 <= key < size else MISSING
        else:
            value = dict.get(container, key, MISSING)
            if container is sys.modules["lamella"].__dict__ and value is MISSING:
                # A part of the package that is imported when it is used first.
                self._dicts.get(id(container), [0, 0, 0, {}])[3].pop(key, None)
                self._late.append((container, key))
                return
        self._write(OutsidePlace(container, key, name, value), key)

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
        return free[slot - _code(frame.f_code).table[0] + len(free)]  # type: ignore[index]

    def _load_attribute(self, _: Any, name: str, operands: tuple[Any, ...]) -> None:
        self._attribute(*operands, name)

    def _load_super(self, _: Any, name: str, operands: tuple[Any, ...]) -> None:
        _super, after, owner = operands
        kind = owner if isinstance(owner, type) else type(owner)
        self._super(after, kind, name)

    def _store_attribute(self, _: Any, name: str, operands: tuple[Any, ...]) -> None:
        self._specials(type(*operands))
        if not isinstance(_lookup(type(*operands), "__setattr__"), types.FunctionType):
            self._set_attribute(*operands, name)

    def _subscript(self, _: Any, _name: Any, operands: tuple[Any, ...]) -> None:
        container, key = operands
        self._use(key)
        if not self._is_outside(container) or isinstance(container, (type, tuple)):
            self._use(container) if not isinstance(container, _CONTAINERS) else None
        elif isinstance(_lookup(type(container), "__getitem__"), types.FunctionType):
            self._use_type(container)
        elif isinstance(container, dict):
            self._use_type(container)
            self._item(container, key)
        elif isinstance(container, list) and isinstance(key, int):
            self._use_type(container)
            self._element(container, key)
        elif isinstance(container, (types.MappingProxyType, memoryview)) or not (
            isinstance(container, (*_CONTAINERS, Tensor))
            or _is_python(type(container))
            or type(container).__module__ == "numpy"
            or is_own(type(container).__module__)
        ):
            self._evaluated(operator.getitem, (container, key), self._name(container))
        else:
            self._use(container)

    def _use_type(self, value: Any) -> None:
        if _is_mutable(type(value)):
            self._specials(type(value))
            self._object(value)

    def _store_item(self, _: Any, _name: Any, operands: tuple[Any, ...]) -> None:
        container, key = operands
        self._specials(type(container))
        if not isinstance(_lookup(type(container), "__setitem__"), types.FunctionType):
            self._set_entry(container, key)

    def _set_entry(self, container: Any, key: Any) -> None:
        if not self._is_outside(container):
            return
        if isinstance(container, dict):
            self._set_item(container, key, joined(self._name(container), key))
        elif isinstance(container, list) and isinstance(key, int):
            self._set_item(container, key, joined(self._name(container), key))
        elif isinstance(container, _CONTAINERS):
            self._contents(container)
        elif not isinstance(container, Tensor):
            self._refuse(f"it writes to {self._name(container)}, a {type(container).__name__}")

    def _store_slice(self, _: Any, _name: Any, operands: tuple[Any, ...]) -> None:
        self._set_entry(operands[0], slice(None))

    def _contains(self, _: Any, _name: Any, operands: tuple[Any, ...]) -> None:
        key, container = operands
        python = isinstance(_lookup(type(container), "__contains__"), types.FunctionType)
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
        parts = name.split(".")
        for i in range(len(parts)):
            self._item(sys.modules, ".".join(parts[: i + 1]))
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

    def _next(self, iterator: Any) -> None:
        python = isinstance(_lookup(type(iterator), "__next__"), types.FunctionType)
        if self._is_outside(iterator) and hasattr(type(iterator), "__next__") and not python:
            self._refuse(f"it advances an iterator, {self._name(iterator)}")

    def _write_in_place(self, _: Any, _name: Any, operands: tuple[Any, ...]) -> None:
        self._plain(_, _name, operands)
        if isinstance(operands[0], _CONTAINERS) and self._is_outside(operands[0]):
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

    # ---- Calls ----

    def _call(self, frame: Any, _: Any, operands: tuple[Any, ...]) -> None:
        given = [operand for operand in operands if operand is not self._watch]
        self._called(frame, given[0], given[1:])

    def _called(self, frame: Any, fn: Any, args: list[Any]) -> None:
        if type(fn) is types.MethodType:
            fn, args = fn.__func__, [fn.__self__, *args]
        kind = type(fn)
        if kind is types.FunctionType:
            return
        if isinstance(fn, type):
            self._constructed(fn, args)
        elif isinstance(fn, (*_BOUND, *_UNBOUND, types.ClassMethodDescriptorType)):
            self._builtin(frame, fn, args)
        elif isinstance(fn, functools.partial):
            self._mark(fn, self._name(fn)) if self._is_outside(fn) else None
            self._use(fn.keywords)
            self._called(frame, fn.func, [*fn.args, *args])
        elif isinstance(fn, weakref.ref):
            self._evaluated(fn, (), self._name(fn))
        elif isinstance(fn, _ATTRIBUTE_OPERATORS):
            self._path(fn, args[0])
        elif isinstance(fn, operator.itemgetter):
            for key in fn.__reduce__()[1]:
                self._subscript(frame, None, (args[0], key))
        elif isinstance(fn, functools._lru_cache_wrapper):
            if all(type(arg) in _PLAIN_TYPES for arg in args):
                self._called(frame, fn.__wrapped__, args)
                self._evaluated(fn, tuple(args), getattr(fn, "__name__", "a cached function"))
            else:
                self._mark(fn.__wrapped__, "")
        elif isinstance(_lookup(kind, "__call__"), types.FunctionType):
            self._use(fn)
        else:
            inner = getattr(fn, "_fn", None) if kind.__module__.startswith("lamella") else None
            if inner is not None:
                self._mark(inner, "")
            self._c_call(kind.__module__, kind.__name__, None, args)

    def _path(self, fn: Any, value: Any) -> None:
        """Reads what an attrgetter or methodcaller reads of an object."""
        made, args = fn.__reduce__()
        is_method = isinstance(fn, operator.methodcaller)
        paths = (
            (made.args if isinstance(made, functools.partial) else args[:1]) if is_method else args
        )
        for path in paths:
            owner = value
            for name in path.split("."):
                self._attribute(owner, name)
                owner = getattr(owner, name, None)

    def _constructed(self, cls: type, args: list[Any]) -> None:
        self._specials(type(cls))
        self._specials(cls)
        python = [isinstance(_lookup(cls, n), types.FunctionType) for n in ("__init__", "__new__")]
        python.append(isinstance(_lookup(cls, "__new__"), staticmethod))
        if cls is type and len(args) == 1:
            if self._is_outside(args[0]):
                self._use(args[0])
        elif cls is super or any(python):
            pass
        else:
            base = next(base for base in cls.__mro__ if "__new__" in base.__dict__)
            self._c_call(base.__module__, base.__name__, None, args)

    def _builtin(self, frame: Any, fn: Any, args: list[Any]) -> None:
        name = fn.__name__
        owner: Any = None
        if isinstance(fn, _BOUND):
            owner = fn.__self__
            owner = None if isinstance(owner, types.ModuleType) else owner
            module = fn.__module__ if isinstance(fn, types.BuiltinFunctionType) else None
            module = module or type(owner).__module__
        else:
            owner = args[0] if args else None
            args = args[1:]
            module = fn.__objclass__.__module__
            if isinstance(fn, _UNBOUND) and isinstance(owner, fn.__objclass__):
                fn = fn.__get__(owner, type(owner))
        if owner is None and name in ("getattr", "hasattr", "setattr", "delattr") and len(args) > 1:
            if name in ("setattr", "delattr"):
                self._store_attribute(None, args[1], (args[0],))
            else:
                self._attribute(args[0], args[1])
        elif name == "__getattribute__":
            self._attribute(owner, args[0])
        elif name in ("__setattr__", "__delattr__"):
            owner = owner.__self__ if type(owner) is super else owner
            if type(owner) is type and args and not isinstance(args[0], str):
                owner, args = args[0], args[1:]
            self._set_attribute(owner, args[0])
        elif name in ("__reduce_ex__", "__reduce__", "__getstate__", "__dir__"):
            self._everything(owner)
        elif owner is None and name in ("vars", "dir") and args:
            self._attribute(args[0], "__dict__")
            self._everything(args[0]) if name == "dir" else None
        elif owner is None and name == "globals":
            self._mark(frame.f_globals, "")
        elif owner is None and name == "next":
            self._next(args[0])
        elif name in ("__next__", "send", "throw") and owner is not None:
            self._next(owner)
        elif owner is None and name in ("getitem", "setitem", "delitem", "contains") and args:
            if name == "getitem":
                self._subscript(frame, None, (args[0], args[1]))
            elif name == "contains":
                self._contains(frame, None, (args[1], args[0]))
            else:
                self._set_entry(args[0], args[1])
        elif isinstance(owner, _CONTAINERS) and self._is_outside(owner):
            self._method(owner, name, args)
        elif isinstance(owner, contextvars.ContextVar) and name == "get":
            self._evaluated(fn, tuple(args), getattr(owner, "name", name))
        elif name in ("format", "format_map") and isinstance(owner, str):
            if any("." in part[1] or "[" in part[1] for part in string.Formatter().parse(owner) if part[1]):
                self._refuse("it calls str.format, which reads attributes and items")
            for arg in args:
                self._use(arg)
        else:
            self._c_call(module, name, owner, args, fn)

    def _method(self, owner: Any, name: str, args: list[Any]) -> None:
        """A method of a container from outside."""
        self._use_type(owner)
        if isinstance(owner, dict) and name in (
            "get",
            "__getitem__",
            "__contains__",
            "setdefault",
            "pop",
        ):
            if args:
                self._item(owner, args[0], only_present=name == "__contains__")
                if name in ("setdefault", "pop"):
                    self._set_item(owner, args[0], joined(self._name(owner), args[0]))
        elif isinstance(owner, list) and name == "__getitem__" and type(args[0]) is int:
            self._element(owner, args[0])
        else:
            if name not in _READING:
                self._contents(owner)
            writes = (
                "append",
                "add",
                "extend",
                "update",
                "appendleft",
                "clear",
                "insert",
                "extendleft",
            )
            if name not in ("__setitem__", "__delitem__", *writes):
                self._whole(owner)
        for arg in args:
            self._use(arg, deep=name in ("index", "count", "remove", "__eq__"))

    def _c_call(self, module: Any, name: str, owner: Any, args: list[Any], fn: Any = None) -> None:
        root = str(module).partition(".")[0]
        where = f"{module}.{name}"
        if fn is not None and name in _STATE:
            self._evaluated(fn, tuple(args), where)
            return
        quiet = isinstance(owner, io.TextIOBase) or name in (
            "_getframe",
            "audit",
            "exc_info",
            "fspath",
        )
        if (root not in _PURE or name in _IMPURE or "random" in str(module)) and not quiet:
            if not is_own(root) or name in ("initial_seed", "seed", "get_state", "get_offset"):
                self._refuse(f"it calls {where}, whose result may differ from call to call")
                return
        if owner is not None and name not in ("__init__", "__new__", "__init_subclass__"):
            self._use(owner)
            if self._is_outside(owner) and not (quiet or _is_constant(owner) or is_own(root)):
                self._refuse(f"it calls {name} of {self._name(owner)}, a {type(owner).__name__}")
            if self._is_outside(owner) and hasattr(type(owner), "__next__"):
                self._next(owner)
        if name in ("from_numpy", "from_dlpack", "frombuffer", "_from_numpy"):
            return  # the tensor shares the memory, which each call reads
        is_own_code = not self._is_library
        if is_own_code and args and id(args[0]) in self.stand_ins and name in ("isinstance", "type", "id"):
            was = self.stand_ins[id(args[0])]
            differs = type(was) is not type(args[0]) if name == "type" else name == "id"
            if differs or (name == "isinstance" and isinstance(was, args[1]) != isinstance(*args[:2])):
                self._refuse(f"it calls {name}() with a tensor")
        elif name in ("isinstance", "issubclass") and type(args[-1]) not in (type, tuple):
            self._evaluated(fn, tuple(args), where) if self._is_outside(args[0]) else None
        for arg in args:
            self._use(arg, deep=name not in _SHALLOW)
        for getter in (arg for arg in args if isinstance(arg, _ATTRIBUTE_OPERATORS)):
            for arg in args:
                if isinstance(arg, dict):
                    arg = list(arg)
                for item in arg if isinstance(arg, (*_CONTAINERS, tuple, frozenset)) else [arg]:
                    self._path(getter, item)

    # ---- Results ----

    def change(self) -> str:
        """Undoes what the function changed outside; returns the name of one change, empty if there
        were none."""
        name = ""
        for (_, key), change in reversed(list(self._changes.items())):
            if key is MISSING and not self._is_read(change.container):
                continue  # appending to a list that is not read
            now = change.get()
            if now is change.value or (
                MISSING not in (now, change.value) and _hlo._is_same(now, change.value)
            ):
                continue
            change.put(change.value)
            self._changed.append(change)
            name = change.name
        self._changes.clear()
        for container, key in self._late:
            self._item(container, key)
        # C code may have changed more.
        while True:
            rows, names = self._rows()
            found = _hlo._guards(rows).changed()
            if found is None:
                return name
            if (
                len(found) == 2
                and isinstance(found[1], types.ModuleType)
                and len(rows[found[0]]) == 5
            ):
                self._drop(rows, found[0], found[1])  # it was imported
                continue
            name = names[found[0]] or "what it reads"
            self._drop(rows, found[0])

    def _drop(self, rows: list[Any], at: int, now: Any = MISSING) -> None:
        kind, value, key = rows[at][:3]
        if kind in (_ITEM, _ELEMENT):
            head = max(i for i in range(at) if rows[i][0] in (_DICT, _LIST))
            table = self._dicts if kind == _ITEM else self._lists
            entries = table[id(rows[head][1])][3]
            key = key if kind == _ITEM else rows[at][4]
            del entries[key]
            if now is not MISSING:
                entries[key] = now
        elif kind == _TYPE:
            del self._types[value]
        elif kind == _CALL:
            self._calls = {k: v for k, v in self._calls.items() if v[0] is not value or v[1] != key}
        else:
            tables: dict[int, Any] = {
                _DICT: self._dicts, _LIST: self._lists, _CELL: self._cells,
                _OBJECT: self._objects, _FUNCTION: self._functions, _TENSOR: self._tensors,
            }  # fmt: skip
            del tables[kind][id(value)]

    def _forget_calls(self, argument: Any) -> None:
        kept = {k: v for k, v in self._calls.items() if not v[1] or v[1][0] is not argument}
        self._calls = kept

    def forget_changes(self) -> None:
        """Drops the guards on values that the function changes: a function that runs uncompiled
        does so whatever they are."""
        for change in self._changed:
            key = id(change.container)
            if isinstance(change, _Contents):
                self._dicts.pop(key, None)
                self._lists.pop(key, None)
                self._forget_calls(change.container)
            elif change.value is MISSING:
                # The program would be for calls without this entry: a value cached by the first
                # call is present at the next one, which then compiles again.
                if isinstance(change.container, dict):
                    row = self._dicts.setdefault(key, [change.container, change.name, None, {}])
                    row[3][change.key] = MISSING
            elif change.is_attribute and isinstance(change.container, type):
                for kind, row in self._types.items():
                    if issubclass(kind, change.container):
                        row[0] = {k: v for k, v in row[0].items() if k[1] != change.key}
            elif change.is_attribute:
                self._forget_calls(change.container)
            elif change.key is None:
                self._cells.pop(key, None)
            else:
                for rows in (self._dicts, self._lists):
                    if key in rows:
                        rows[key][3].pop(change.key, None)

    def _rows(self) -> tuple[list[Any], list[str]]:
        """The guards as OutsideGuards in compiled_outside.h takes them, and their names."""
        rows: list[Any] = []
        names: list[str] = []

        def add(name: str, kind: int, value: Any, key: Any = None, index: int = -1, count: int = 0,
                *expected: Any) -> None:  # fmt: skip
            rows.append((kind, value, key, index, count, *expected))
            names.append(name)

        def entry(value: Any) -> tuple[Any, ...]:
            return () if value is MISSING else (value,)

        for value, name, kind, attributes in self._objects.values():
            expected = (
                () if attributes is None or isinstance(value, types.ModuleType) else (attributes,)
            )
            add(name, _OBJECT, value, kind, -1, 0, *expected)
        for fn, name in self._functions.values():
            add(name, _FUNCTION, fn, fn.__code__, -1, 0, fn.__defaults__, fn.__kwdefaults__)
        for cls, (named, special) in self._types.items():
            check = _type_check(cls, named, special)
            text = next((key[1] for key in named), "__class__")
            add(cls.__name__, _TYPE, cls, check, -1, 0, text)
        for place in self._cells.values():
            add(place.name, _CELL, place.container, None, -1, 0, *entry(place.value))
        for container, name, keys, items in self._dicts.values():
            if keys is not None or items:
                add(
                    name, _DICT, container, None, -1, len(items), *(() if keys is None else (keys,))
                )
            for key, value in items.items():
                add(joined(name, key), _ITEM, None, key, -1, 0, *entry(value))
        for container, name, length, items in self._lists.values():
            add(name, _LIST, container, None, length, len(items))
            for index, value in items.items():
                add(joined(name, index), _ELEMENT, None, None, index, 0, *entry(value))
        for fn, args, value, name in self._calls.values():
            add(name, _CALL, fn, args, -1, 0, *entry(value))
        for tensor, name in self._tensors.values():
            add(name, _TENSOR, tensor)
        return rows, names

    def guards(self) -> tuple[Any, list[str], list[Any]]:
        """The guards, their names, and the values that they expect."""
        rows, names = self._rows()
        return _hlo._guards(rows), names, [row[5] if len(row) > 5 else MISSING for row in rows]


def _proxy_facts(value: Any) -> tuple[Any, ...]:
    return tuple(value.items())


def _memory_facts(value: Any) -> tuple[Any, ...]:
    view = memoryview(value)
    return view.shape, view.format, view.strides, view.tobytes()
