"""What the watching of compiled functions knows of Python: places, and lookups in types."""

from __future__ import annotations

import array
import collections
import sys
import types
from typing import Any

from lamella import _hlo

__all__ = [
    "BOUND",
    "CONTAINERS",
    "Contents",
    "MISSING",
    "NotCompiled",
    "OutsidePlace",
    "PLAIN",
    "PLAIN_TYPES",
    "attribute_now",
    "is_library",
    "is_mutable",
    "is_own",
    "is_python",
    "joined",
    "lookup",
    "special_methods",
    "type_check",
]

MISSING = object()


class NotCompiled(Exception):
    """A function cannot be compiled; the message says why and where."""


PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, slice)
PLAIN_TYPES = frozenset([*PLAIN, type(NotImplemented), types.CodeType])
_STANDARD: frozenset[str] = getattr(sys, "stdlib_module_names", frozenset())

# lamella.compat gives its types the module name "torch".
_PACKAGES = ("lamella", "torch")


def is_own(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] in _PACKAGES


def is_library(module: str | None) -> bool:
    return module is not None and (is_own(module) or module.partition(".")[0] in _STANDARD)


def joined(name: str, key: Any) -> str:
    text = str(key) if isinstance(key, PLAIN) else f"({type(key).__name__})"
    return f"{name}.{text}" if name else text


CONTAINERS = (list, dict, set, collections.deque, bytearray, array.array)
BOUND = (types.BuiltinMethodType, types.MethodWrapperType)


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
            return attribute_now(self.container, self.key)
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


def attribute_now(owner: Any, name: str) -> Any:
    if isinstance(owner, type):
        return vars(owner).get(name, MISSING)
    try:
        return object.__getattribute__(owner, name)
    except AttributeError:
        return MISSING


class Contents:
    """All that a container held, as a change to be undone."""

    is_attribute, key = False, MISSING

    def __init__(self, container: Any, name: str) -> None:
        self.container: Any = container
        self.name = name
        self.value = self.get()

    def get(self) -> Any:
        if isinstance(self.container, dict):
            return tuple(dict.items(self.container))
        make = bytes if isinstance(self.container, bytearray) else tuple
        return make(self.container)

    def put(self, value: Any) -> None:
        container = self.container
        if isinstance(container, array.array):
            value = array.array(container.typecode, value)
        if isinstance(container, (list, bytearray, array.array)):
            container[:] = value
        else:
            container.clear()
            add = getattr(container, "update", None) or container.extend
            add(value)


# ---- Types ---------------------------------------------------------------------------------------

_HEAP, _IMMUTABLE = 1 << 9, 1 << 8


def is_mutable(kind: type) -> bool:
    return bool(kind.__flags__ & _HEAP) and not kind.__flags__ & _IMMUTABLE


def lookup(kind: type, name: str, after: type | None = None) -> Any:
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
    "__annotate__ __annotations_cache__ __static_attributes__ __firstlineno__ "
    "__orig_bases__".split()
)


def special_methods(kind: type) -> dict[str, Any]:
    """The methods that Python calls by itself."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if is_mutable(base):
            for name, value in list(base.__dict__.items()):
                if name.startswith("__") and name not in _UNUSED:
                    found[name] = value
    return found


def type_check(kind: type, names: dict[Any, Any], special: dict[str, Any] | None) -> Any:
    def holds() -> bool:
        same = all(
            now is value or (now is not MISSING and _hlo._is_same(now, value))
            for (after, name), value in names.items()
            for now in (lookup(kind, name, after),)
        )
        if not same or special is None:
            return same
        now = special_methods(kind)
        return now.keys() == special.keys() and all(now[key] is special[key] for key in now)

    return holds


def is_python(kind: type) -> bool:
    """Whether the objects of a class have no state of C code."""
    return next(base for base in kind.__mro__ if "__new__" in base.__dict__) is object
