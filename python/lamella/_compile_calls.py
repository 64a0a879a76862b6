"""What attributes, operators and calls read: see Note [Watching reads] in _compile_reads.py."""

from __future__ import annotations

import array
import contextvars
import functools
import io
import operator
import string
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

from lamella import Tensor
from lamella._compile_guards import (
    BOUND,
    CONTAINERS,
    MISSING,
    PLAIN,
    PLAIN_TYPES,
    SLOT,
    Guards,
    attribute_now,
    is_mutable,
    is_own,
    is_python,
    joined,
    lookup,
)

_UNBOUND = (types.MethodDescriptorType, types.WrapperDescriptorType)
# Objects of these types never change, or their contents are read in other ways.
_FIXED = (*PLAIN, *CONTAINERS, *BOUND, *_UNBOUND, tuple, frozenset, types.MethodType, weakref.ref)
_ATTRIBUTE_OPERATORS = (operator.attrgetter, operator.methodcaller)
_VIEWS: Any = (type({}.keys()), type({}.values()), type({}.items()))
# Modules whose C functions read nothing but their arguments.
_PURE = frozenset(
    "builtins math cmath operator _operator itertools functools _functools collections "
    "_collections _abc _weakref _thread _struct struct _json _codecs re _sre _string lamella "
    "torch numpy _warnings "
    "_collections_abc copy types typing _typing enum _bisect _heapq _ctypes _opcode "
    "_contextvars _io _ast _statistics binascii zlib _hashlib _sha2 _md5 unicodedata "
    "_datetime weakref threading contextlib string array pickle _pickle ctypes ml_dtypes atexit "
    "_imp _tokenize marshal".split()
)
# What these say of a generator is not the same at the next call.
_GENERATOR = frozenset("initial_seed seed get_state get_offset".split())
# Functions of these modules that read other state.
_IMPURE = _GENERATOR.union(
    "open input read readline readlines readinto read1 now utcnow today random rand randn randint "
    "permutation shuffle choice standard_normal uniform normal integers bytes_ getrandbits "
    "memory_at".split()
)
# Types of C code whose objects never change, or whose methods read nothing that matters.
_CONSTANT_MODULES = ("re", "datetime", "_struct", "types", "_thread", "enum", "ml_dtypes", "numpy")
_SHALLOW = frozenset(
    "len iter list tuple zip enumerate reversed isinstance issubclass id type bool callable "
    "set frozenset hasattr getattr next keys values items copy".split()
)
# Methods of containers: those of one entry; those that only write; those that only read.
_ENTRY = ("get", "__getitem__", "__contains__", "setdefault", "pop")
_WRITING = frozenset(
    "append add extend update appendleft clear insert extendleft __setitem__ __delitem__".split()
)
_READING = frozenset(
    "get keys values items copy index count __getitem__ __len__ __contains__ __iter__ __eq__ "
    "__ne__ __lt__ __le__ __gt__ __ge__ __reversed__ union intersection difference "
    "symmetric_difference issubset issuperset isdisjoint __or__ __and__ __sub__ __xor__ "
    "__add__ __mul__ __rmul__ __repr__ __hash__ __bool__ __reduce__ __reduce_ex__ __copy__ "
    "__class__ __init_subclass__ __format__ __str__ __sizeof__ __dir__ fromkeys tobytes "
    "tolist hex decode startswith endswith find __subclasshook__ __new__ __init__ __setattr__ "
    "__getattribute__ __delattr__".split()
)
# Functions whose results no program depends on.
_QUIET = ("_getframe", "audit", "exc_info", "fspath")
# What C functions say of a thread or process; compared at each call.
_STATE = frozenset(
    "getrecursionlimit getswitchinterval getdefaultencoding getfilesystemencoding isenabled "
    "get_threshold get_num_threads getpid getcwd get_ident get_native_id intern".split()
)


def _is_constant(value: Any) -> bool:
    code = (types.FunctionType, types.MethodType, *BOUND, *_UNBOUND, property)
    data = (*PLAIN, *CONTAINERS, tuple, frozenset, type, Tensor, types.MappingProxyType)
    module = type(value).__module__
    return isinstance(value, code + data) or module in _CONSTANT_MODULES or is_python(type(value))


def _proxy_facts(value: Any) -> tuple[Any, ...]:
    return tuple(value.items())


class Calls(Guards):
    # Handlers of instructions, which calls of functions share.
    _subscript: Callable[..., None]
    _contains: Callable[..., None]
    _store_attribute: Callable[..., None]

    def _attribute(self, owner: Any, name: str) -> None:
        kind = type(owner)
        if kind is super:
            found = self._looked_up(owner.__self_class__, name, owner.__thisclass__)
            if owner.__self__ is not None:
                self._descriptor(found, owner)
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
            of_class = self._looked_up(kind, name)
            if isinstance(of_class, SLOT) and name != "__dict__" and is_mutable(owner):
                self._slot(of_class, owner, kind, name)
            self._descriptor(self._looked_up(owner, name), owner)
            return
        self._specials(kind)
        found = self._looked_up(kind, name)
        is_tensor = isinstance(owner, Tensor)
        self.gradients |= is_tensor and name == "grad"
        if is_tensor and found is MISSING and name in vars(self.stand_ins.get(id(owner), self)):
            self._refuse(f"it reads the attribute '{name}' of a tensor")
        # These have the attributes of another object.
        if kind is types.MethodType and found is MISSING:
            self._attribute(owner.__func__, name)
            return
        if kind in weakref.ProxyTypes:
            self._attribute(self._mark(owner.__reduce__.__self__, self._name(owner)), name)
            return
        if isinstance(owner, types.GenericAlias):
            self._attribute(owner.__origin__, name)
            return
        if not self._is_outside(owner):
            return
        if isinstance(owner, threading.local):
            self._evaluated(getattr, (owner, name), joined(self._name(owner), name))
            return
        if found is not MISSING and hasattr(type(found), "__set__"):
            if name == "__dict__":
                self._object(owner)
            elif isinstance(found, SLOT):
                is_fixed = is_own(kind.__module__) and kind.__dictoffset__ == 0
                if not (is_tensor or is_fixed or isinstance(owner, _FIXED)):
                    self._slot(found, owner, kind, name)
                self._object(owner)
            else:
                self._descriptor(found, owner)
            return
        attributes = self._object(owner)
        if attributes is not None:
            self._item(attributes, name)
        if found is not MISSING:
            self._descriptor(found, owner)

    def _slot(self, found: Any, owner: Any, kind: type, name: str) -> None:
        """Reads what C code stores in an object."""
        if (id(owner), name) in self._changes:
            return
        if not is_mutable(kind):
            now, again = (attribute_now(owner, name) for _ in range(2))
            if now is not again and type(now) not in PLAIN_TYPES:
                return  # Python's own objects make such values from what never changes
        self._evaluated(found.__get__, (owner, kind), joined(self._name(owner), name))

    def _imported(self, name: str) -> None:
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            self._item(sys.modules, ".".join(parts[:end]))

    def _descriptor(self, found: Any, owner: Any) -> None:
        kind = type(found)
        if is_mutable(kind) and hasattr(kind, "__get__"):
            self._specials(kind)
            self._object(found)

    def _use(self, value: Any, deep: bool = False, seen: set[int] | None = None) -> None:
        """An instruction or C code reads an object: of a container all that it holds, of other
        objects the methods that Python calls by itself."""
        kind = type(value)
        if kind in PLAIN_TYPES or value is self._watch:
            return
        is_container = isinstance(value, (*CONTAINERS, tuple, frozenset))
        if is_container and deep:
            seen = set() if seen is None else seen
            if id(value) in seen:
                return
            seen.add(id(value))
        is_outside = self._is_outside(value)
        if is_outside and isinstance(value, CONTAINERS):
            self._whole(value)
        if is_container and deep and not isinstance(value, (bytearray, array.array)):
            for item in dict.values(value) if isinstance(value, dict) else value:
                self._use(item, True, seen)
        if is_mutable(kind):
            self._specials(kind)
            if is_outside and not isinstance(value, (types.ModuleType, type, Tensor)):
                self._object(value)
        if is_outside and not is_container:
            if isinstance(value, types.MappingProxyType):
                self._evaluated(_proxy_facts, (value,), self._name(value))
            elif isinstance(value, _VIEWS):
                self._refuse(f"it reads a view of a dictionary, {self._name(value)}")
            elif not isinstance(value, (type, Tensor)) and not is_python(kind):
                self._buffer(value)

    def _everything(self, value: Any) -> None:
        """C code may read any attribute of an object."""
        self._use(value)
        if not is_mutable(type(value)) or not self._is_outside(value):
            return
        attributes = self._object(value)
        if attributes is not None:
            self._whole(attributes)
        for base in type(value).__mro__:
            for name, part in base.__dict__.items():
                if isinstance(part, types.MemberDescriptorType):
                    self._attribute(value, name)

    def _use_type(self, value: Any) -> None:
        if is_mutable(type(value)):
            self._specials(type(value))
            self._object(value)

    def _set_entry(self, container: Any, key: Any) -> None:
        if not self._is_outside(container):
            return
        if isinstance(container, dict) or (isinstance(container, list) and isinstance(key, int)):
            self._set_item(container, key, joined(self._name(container), key))
        elif isinstance(container, CONTAINERS):
            self._contents(container)
        elif not isinstance(container, Tensor):
            self._refuse(f"it writes to {self._name(container)}, a {type(container).__name__}")

    def _next(self, iterator: Any) -> None:
        python = isinstance(lookup(type(iterator), "__next__"), types.FunctionType)
        if self._is_outside(iterator) and hasattr(type(iterator), "__next__") and not python:
            self._refuse(f"it advances an iterator, {self._name(iterator)}")

    # ---- Calls ----

    def _call(self, frame: Any, _: Any, operands: tuple[Any, ...]) -> None:
        given = [operand for operand in operands if operand is not self._watch]
        self._called(frame, given[0], given[1:])

    def _called(self, frame: Any, fn: Any, args: list[Any]) -> None:
        if type(fn) is types.MethodType:
            fn, args = fn.__func__, [fn.__self__, *args]
        kind = type(fn)
        if kind is types.FunctionType:
            if fn.__name__ == "_gcd_import" and args:
                self._imported(args[0])  # importlib.import_module() calls it
            return
        if isinstance(fn, type):
            self._constructed(fn, args)
        elif isinstance(fn, (*BOUND, *_UNBOUND, types.ClassMethodDescriptorType)):
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
            if all(type(arg) in PLAIN_TYPES for arg in args):
                self._called(frame, fn.__wrapped__, args)
                self._evaluated(fn, tuple(args), getattr(fn, "__name__", "a cached function"))
            else:
                self._mark(fn.__wrapped__, "")
        elif isinstance(lookup(kind, "__call__"), types.FunctionType):
            self._use(fn)
        else:
            inner = getattr(fn, "_fn", None) if kind.__module__.startswith("lamella") else None
            if inner is not None:
                self._mark(inner, "")
            self._c_call(kind.__module__, kind.__name__, None, args)

    def _path(self, fn: Any, value: Any) -> None:
        """Reads what an attrgetter or methodcaller reads of an object."""
        made, args = fn.__reduce__()
        if isinstance(fn, operator.methodcaller):
            args = made.args if isinstance(made, functools.partial) else args[:1]
        for path in args:
            owner = value
            for name in path.split("."):
                self._attribute(owner, name)
                owner = getattr(owner, name, None)

    def _constructed(self, cls: type, args: list[Any]) -> None:
        self._specials(type(cls))
        self._specials(cls)
        python = (types.FunctionType, staticmethod)
        made_by = (lookup(cls, "__init__"), lookup(cls, "__new__"))
        if cls is type and len(args) == 1:
            if self._is_outside(args[0]):
                self._use(args[0])
        elif cls is not super and not any(isinstance(one, python) for one in made_by):
            base = next(base for base in cls.__mro__ if "__new__" in base.__dict__)
            self._c_call(base.__module__, base.__name__, None, args)

    def _builtin(self, frame: Any, fn: Any, args: list[Any]) -> None:
        name = fn.__name__
        owner: Any = None
        if isinstance(fn, BOUND):
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
            owner = getattr(owner, "__self__", None) if type(owner) is super else owner
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
        elif owner is None and name == "__import__" and args:
            self._imported(args[0])
        elif owner is None and name == "next":
            self._next(args[0])
        elif name in ("__next__", "send", "throw") and owner is not None:
            self._next(owner)
        elif owner is None and name in ("getitem", "setitem", "delitem", "contains") and args:
            if name == "getitem":
                self._subscript(frame, None, args)
            elif name == "contains":
                self._contains(frame, None, args[::-1])
            else:
                self._set_entry(args[0], args[1])
        elif isinstance(owner, CONTAINERS) and self._is_outside(owner):
            self._method(owner, name, args)
        elif isinstance(owner, contextvars.ContextVar) and name == "get":
            self._evaluated(fn, tuple(args), getattr(owner, "name", name))
        elif name in ("format", "format_map") and isinstance(owner, str):
            names = (part[1] or "" for part in string.Formatter().parse(owner))
            if any("." in name or "[" in name for name in names):
                self._refuse("it calls str.format, which reads attributes and items")
            for arg in args:
                self._use(arg)
        else:
            self._c_call(module, name, owner, args, fn)

    def _method(self, owner: Any, name: str, args: list[Any]) -> None:
        """A method of a container from outside."""
        self._use_type(owner)
        if isinstance(owner, dict) and name in _ENTRY:
            if args:
                self._item(owner, args[0], only_present=name == "__contains__")
                if name in ("setdefault", "pop"):
                    self._set_item(owner, args[0], joined(self._name(owner), args[0]))
        elif isinstance(owner, list) and name == "__getitem__" and type(args[0]) is int:
            self._item(owner, args[0])
        else:
            if name not in _READING:
                self._contents(owner)
            if name not in _WRITING:
                self._whole(owner)
        for arg in args:
            self._use(arg, deep=name in ("index", "count", "remove", "__eq__"))

    def _c_call(self, module: Any, name: str, owner: Any, args: list[Any], fn: Any = None) -> None:
        root = str(module).partition(".")[0]
        where = f"{module}.{name}"
        if fn is not None and name in _STATE:
            self._evaluated(fn, tuple(args), where)
            return
        quiet = isinstance(owner, io.TextIOBase) or name in _QUIET
        if (root not in _PURE or name in _IMPURE or "random" in str(module)) and not quiet:
            if not is_own(root) or (name in _GENERATOR and not self._restores_generator):
                self._refuse(f"it calls {where}, whose result may differ from call to call")
        if owner is not None and name not in ("__init__", "__new__", "__init_subclass__"):
            self._use(owner)
            if self._is_outside(owner) and not (quiet or _is_constant(owner) or is_own(root)):
                self._refuse(f"it calls {name} of {self._name(owner)}, a {type(owner).__name__}")
            if self._is_outside(owner) and hasattr(type(owner), "__next__"):
                self._next(owner)
        if name in ("from_numpy", "from_dlpack", "frombuffer", "_from_numpy"):
            return  # the tensor shares the memory, which each call reads
        was = self.stand_ins.get(id(args[0])) if args and not self._is_library else None
        if was is not None and name in ("isinstance", "type", "id"):
            differs = type(was) is not type(args[0]) if name == "type" else name == "id"
            if differs or (
                name == "isinstance" and isinstance(was, args[1]) != isinstance(*args[:2])
            ):
                self._refuse(f"it calls {name}() with a tensor")
        elif name in ("isinstance", "issubclass") and type(args[-1]) not in (type, tuple):
            self._evaluated(fn, tuple(args), where) if self._is_outside(args[0]) else None
        for arg in args:
            self._use(arg, deep=name not in _SHALLOW)
        for getter in (arg for arg in args if isinstance(arg, _ATTRIBUTE_OPERATORS)):
            for arg in args:
                if isinstance(arg, dict):
                    arg = list(arg)
                for item in arg if isinstance(arg, (*CONTAINERS, tuple, frozenset)) else [arg]:
                    self._path(getter, item)
