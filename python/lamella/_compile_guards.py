"""Guards on what a function reads: made by Reads, checked by compiled_outside.cpp."""

from __future__ import annotations

import array
import collections
import functools
import gc
import sys
import types
from collections.abc import Callable
from typing import Any

from lamella import Tensor, _hlo

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
            inside = 0 <= self.key < list.__len__(self.container)
            return list.__getitem__(self.container, self.key) if inside else MISSING
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

SLOT = (types.MemberDescriptorType, types.GetSetDescriptorType)
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


# ---- Guards --------------------------------------------------------------------------------------

# The kinds of guards, in the order in which they are checked.
_OBJECT, _FUNCTION, _TYPE, CELL, _DICT, _ITEM, _LIST, _ELEMENT, _CALL, _TENSOR = range(10)
# The largest buffer, in bytes, that is compared at each call.
_MAX_BUFFER = 1 << 20
_ALWAYS = (types.ModuleType, type, types.MappingProxyType)


class Guards:
    """The reads of a function.

    gradients: whether it read an attribute `grad` of a tensor. refused: why it cannot be guarded,
    empty if it can."""

    def __init__(self) -> None:
        self.gradients = False
        self.refused = ""
        # Whether the present instruction is of a library, or of one that restores the state of a
        # generator of random numbers that it reads.
        self._is_library = self._restores_generator = False
        # Tensors in place of those from outside.
        self.stand_ins: dict[int, Any] = {}  # the values that they replace, by their id
        self._outside: dict[int, tuple[Any, str]] = {}
        # A row for each dictionary, list or other container: its name, its keys or length, and its
        # values by key or index.
        self._containers: dict[int, list[Any]] = {}
        self._types: dict[type, list[Any]] = {}  # value by (base, name), special methods or None
        # Name and row of each call, and of each other guard by its kind and the object's id.
        self._calls: dict[Any, tuple[Any, ...]] = {}
        self._single: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._cells_made: dict[int, Any] = {}
        self._generators: dict[int, Any] = {}
        self._changes: dict[Any, Any] = {}
        self._changed: list[Any] = []
        self._late: list[tuple[Any, Any]] = []  # entries that are read when all is done
        self._watch: Any = None  # stands for an empty slot of the stack

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
        if kind in PLAIN_TYPES or id(value) in self._outside or id(value) in self.stand_ins:
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
            self._guard(name, _TENSOR, value, None)
        elif kind is types.FunctionType:
            defaults = value.__defaults__, value.__kwdefaults__
            self._guard(name, _FUNCTION, value, value.__code__, *defaults)
            self._outside.setdefault(id(value.__globals__), (value.__globals__, ""))
            for part in defaults:
                self._mark(part, name)
            self._whole(defaults[1]) if defaults[1] else None
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self._mark(part, name)
            self._whole(value.keywords)
        elif not is_mutable(kind) and not isinstance(value, CONTAINERS):
            for part in gc.get_referents(value):
                self._mark(part, name)
        return value

    # ---- Reads ----

    def _guard(self, name: str, kind: int, value: Any, key: Any, *expected: Any) -> None:
        self._single.setdefault((kind, id(value)), (name, kind, value, key, *expected))

    def _container(self, value: Any) -> list[Any]:
        return self._containers.setdefault(id(value), [value, self._name(value), MISSING, {}])

    def _item(self, container: Any, key: Any, only_present: bool = False) -> Any:
        """Reads an entry of a dictionary, or an element of a list, from outside."""
        at = key
        if isinstance(container, list):
            self._container(container)
            at = key + list.__len__(container) if key < 0 else key
        try:
            value = OutsidePlace(container, at, "", None).get()
            if id(key) in self.stand_ins:
                at = key = self.stand_ins[id(key)]
                if dict.get(container, key, MISSING) is not value:
                    self._refuse(f"it looks up a tensor in {self._name(container)}")
        except TypeError:
            return MISSING
        self._mark(value, joined(self._name(container), key))
        if id(value) not in self.stand_ins and (id(container), at) not in self._changes:
            values = self._container(container)[3]
            if only_present and value is not MISSING:
                values.setdefault(key, _hlo._ANY)
            elif values.get(key, _hlo._ANY) is _hlo._ANY:
                values[key] = value
        return value

    def _whole(self, container: Any) -> None:
        """Reads all that a container from outside holds."""
        name = self._name(container)
        if (id(container), MISSING) in self._changes and not self._is_read(container):
            # What was changed before it was read is undone, and the function runs as it is.
            self._container(container)
        if isinstance(container, (dict, list)):
            keys: Any
            if isinstance(container, dict):
                keys = tuple(key for key in dict.keys(container) if id(key) not in self.stand_ins)
            else:
                keys = range(list.__len__(container))
            for key in keys:
                self._item(container, key)
            row = self._container(container)
            if row[2] is MISSING:
                row[2] = keys if isinstance(container, dict) else len(keys)
            if isinstance(container, collections.OrderedDict):
                self._evaluated(tuple, (container,), name)
        elif isinstance(container, (set, collections.deque)):
            self._evaluated(tuple, (container,), name)
        else:
            self._buffer(container)

    def _buffer(self, value: Any) -> None:
        """Reads the memory of an object, if it has one."""
        try:
            size = memoryview(value).nbytes
        except (TypeError, ValueError):
            return
        if size > _MAX_BUFFER:
            self._refuse(f"it reads {size} bytes of {self._name(value)}")
        self._evaluated(_memory_facts, (value,), self._name(value))

    def _is_read(self, container: Any) -> bool:
        if id(container) in self._containers:
            return True
        return any(row[3] and row[3][0] is container for row in self._calls.values())

    def _evaluated(self, fn: Callable[..., Any], args: tuple[Any, ...], name: str) -> Any:
        """Guards the result of a call, which must have no effects."""
        # Python makes a new object of a method each time.
        method = (fn.__name__, id(fn.__self__)) if isinstance(fn, BOUND) else id(fn)
        key = (method, id(args[0]) if args else 0, args[1:])
        try:
            if key in self._calls:
                return self._calls[key][4]
        except TypeError:
            pass
        try:
            value, again = fn(*args), fn(*args)
        except (AttributeError, LookupError, ValueError, TypeError):
            value = again = MISSING
        if id(value) in self.stand_ins:
            return value
        if not _hlo._is_same(again, value):
            self._refuse(f"it reads {name}, which is another object each time")
        self._calls[key] = name, _CALL, fn, args, value
        return self._mark(value, name)

    def _object(self, value: Any) -> Any:
        """Guards the type of an object from outside; returns its dictionary of attributes."""
        found = None
        if type(value).__dictoffset__ != 0:
            found = object.__getattribute__(value, "__dict__")
            found = self._mark(found, self._name(value)) if isinstance(found, dict) else None
        is_module = found is None or isinstance(value, types.ModuleType)
        expected = MISSING if is_module else found
        self._guard(self._name(value), _OBJECT, value, type(value), expected)
        return found

    def _looked_up(self, kind: type, name: str, after: type | None = None) -> Any:
        value = lookup(kind, name, after)
        if is_mutable(kind) and (id(kind), name) not in self._changes:
            self._types.setdefault(kind, [{}, None])[0].setdefault((after, name), value)
        return self._mark(value, joined(kind.__name__, name))

    def _specials(self, kind: type) -> None:
        if is_mutable(kind):
            row: list[Any] = self._types.setdefault(kind, [{}, None])
            if row[1] is None:
                row[1] = special = special_methods(kind)
                for name, value in special.items():
                    self._mark(value, joined(kind.__name__, name))

    # ---- Writes ----

    def _write(self, change: Any) -> None:
        change.value = self._original(change.value)
        self._changes.setdefault((id(change.container), change.key), change)

    def _original(self, value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(self._original, value))
        return self.stand_ins.get(id(value), value)

    def _contents(self, container: Any) -> None:
        self._write(Contents(container, self._name(container)))

    def _set_attribute(self, owner: Any, name: str) -> None:
        if isinstance(owner, Tensor) or not self._is_outside(owner):
            return
        where = joined(self._name(owner), name)
        if isinstance(owner, types.ModuleType):
            self._set_item(owner.__dict__, name, where)
            return
        found = MISSING if isinstance(owner, type) else self._looked_up(type(owner), name)
        if isinstance(owner, type) or isinstance(found, SLOT):
            self._write(OutsidePlace(owner, name, where, attribute_now(owner, name), True))
        elif found is MISSING or not hasattr(type(found), "__set__"):
            attributes = self._object(owner)
            if attributes is not None:
                self._set_item(attributes, name, where)

    def _set_item(self, container: Any, key: Any, name: str) -> None:
        key = self.stand_ins.get(id(key), key)
        if isinstance(container, list) and key < 0:
            key += list.__len__(container)
        place = OutsidePlace(container, key, name, None)
        place.value = place.get()
        if container is sys.modules["lamella"].__dict__ and place.value is MISSING:
            # A part of the package that is imported when it is used first.
            self._container(container)[3].pop(key, None)
            self._late.append((container, key))
        else:
            self._write(place)

    # ---- Results ----

    def change(self) -> str:
        """Undoes what the function changed outside; returns the name of one change, empty if there
        were none."""
        name = ""
        for change in reversed(list(self._changes.values())):
            if change.key is MISSING and not self._is_read(change.container):
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
            rows = self._rows()
            found = _hlo._guards([row for _, row, _, _ in rows]).changed()
            if found is None:
                return name
            where, row, table, key = rows[found[0]]
            del table[key]
            if isinstance(found[-1], types.ModuleType) and row[0] == _ITEM and len(row) == 3:
                table[key] = found[1]  # it was imported
            else:
                name = where or "what it reads"

    def forget_changes(self) -> None:
        """Drops the guards on values that the function changes: a function that runs uncompiled
        does so whatever they are."""
        for change in self._changed:
            owner, key = change.container, change.key
            if key is MISSING or (change.is_attribute and not isinstance(owner, type)):
                for call, (_, _, _, args, _) in list(self._calls.items()):
                    if args and args[0] is owner:
                        del self._calls[call]
            if key is MISSING:
                self._containers.pop(id(owner), None)
            elif change.value is MISSING:
                # The program would be for calls without this entry: a value cached by the first
                # call is present at the next one, which then compiles again.
                if isinstance(owner, dict):
                    self._container(owner)[3][key] = MISSING
            elif change.is_attribute:
                for kind, row in self._types.items():
                    if isinstance(owner, type) and issubclass(kind, owner):
                        row[0] = {k: v for k, v in row[0].items() if k[1] != key}
            elif key is None:
                self._single.pop((CELL, id(owner)), None)
            elif id(owner) in self._containers:
                self._containers[id(owner)][3].pop(key, None)

    def _rows(self) -> list[tuple[str, tuple[Any, ...], Any, Any]]:
        """The guards: name, row as OutsideGuards in compiled_outside.h takes it, and the table and
        the key where it is kept."""
        groups = []

        def line(name: str, table: Any, key: Any, *row: Any) -> Any:
            return name, row if row[-1] is not MISSING else row[:-1], table, key

        for table in (self._single, self._calls):
            groups += [[line(name, table, key, *row)] for key, (name, *row) in table.items()]
        for cls, (named, special) in self._types.items():
            check = type_check(cls, named, special)
            text = next((key[1] for key in named), "__class__")
            groups.append([line(cls.__name__, self._types, cls, _TYPE, cls, check, text)])
        for container, name, whole, values in self._containers.values():
            at = self._containers, id(container)
            if isinstance(container, dict):
                group, kind = [line(name, *at, _DICT, container, None, whole)], _ITEM
            else:
                length = None if whole is MISSING else whole
                group, kind = [line(name, *at, _LIST, container, length)], _ELEMENT
            for key, value in values.items():
                group.append(line(joined(name, key), values, key, kind, container, key, value))
            groups.append(group)
        groups.sort(key=lambda group: group[0][1][0])
        return [row for group in groups for row in group]

    def guards(self) -> tuple[Any, list[str], list[Any]]:
        """The guards, their names, and the values that they expect."""
        names, rows = [], []
        for name, row, _, _ in self._rows():
            names.append(name)
            rows.append(row)
        return _hlo._guards(rows), names, [row[3] if len(row) > 3 else MISSING for row in rows]


def _memory_facts(value: Any) -> tuple[Any, ...]:
    view = memoryview(value)
    return view.shape, view.format, view.strides, view.tobytes()
