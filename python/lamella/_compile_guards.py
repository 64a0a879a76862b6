"""Guards on what a function reads: made by Reads, checked by compiled_outside.cpp."""

from __future__ import annotations

import collections
import functools
import gc
import sys
import types
from collections.abc import Callable
from typing import Any

from lamella import Tensor, _hlo
from lamella._compile_places import (
    BOUND,
    CONTAINERS,
    MISSING,
    PLAIN_TYPES,
    Contents,
    NotCompiled,
    OutsidePlace,
    attribute_now,
    is_mutable,
    joined,
    lookup,
    special_methods,
    type_check,
)

_DICT, _ITEM, _LIST, _ELEMENT, _CELL, _OBJECT, _FUNCTION, _TYPE, _CALL, _TENSOR = range(10)
# The largest buffer, in bytes, that is compared at each call.
_MAX_BUFFER = 1 << 20
_ALWAYS = (types.ModuleType, type, types.MappingProxyType)
_SLOT = (types.MemberDescriptorType, types.GetSetDescriptorType)


class Guards:
    """The reads of a function. `with reads:` watches the code inside.

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
        elif isinstance(value, BOUND):
            self._mark(value.__self__, name)
        elif not is_mutable(type(value)) and not isinstance(value, CONTAINERS):
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
        key = id(container)
        if key in self._dicts or key in self._lists:
            return True
        return any(args and args[0] is container for _, args, _, _ in self._calls.values())

    def _evaluated(self, fn: Callable[..., Any], args: tuple[Any, ...], name: str) -> Any:
        """Guards the result of a call, which must have no effects."""
        # Python makes a new object of a method each time.
        method = (fn.__name__, id(fn.__self__)) if isinstance(fn, BOUND) else id(fn)
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

    def _write(self, change: Any, key: Any) -> None:
        change.value = self._original(change.value)
        self._changes.setdefault((id(change.container), key), change)

    def _original(self, value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(self._original, value))
        return self.stand_ins.get(id(value), value)

    def _contents(self, container: Any) -> None:
        self._write(Contents(container, self._name(container)), MISSING)

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
                    OutsidePlace(owner, name, where, attribute_now(owner, name), True), name
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
            if isinstance(change, Contents):
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
            check = type_check(cls, named, special)
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


def _memory_facts(value: Any) -> tuple[Any, ...]:
    view = memoryview(value)
    return view.shape, view.format, view.strides, view.tobytes()
