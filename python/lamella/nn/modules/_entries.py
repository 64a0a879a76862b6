"""The dictionaries of a module's parameters, buffers and submodules by name.

Note [A module's entries are attributes]
  module._parameters, _buffers and _modules are dictionaries of what belongs to the module. Each
  entry is also in the module's __dict__, so that module.weight is an ordinary attribute and reading
  it calls no Python code. Changing an entry of a dictionary changes the attribute too; nothing else
  writes these attributes (Module.__setattr__ writes to the dictionaries).
  Modules whose class defines __getattr__ have no such attributes, so that it sees the names;
  Module.__getattr__ looks into the dictionaries.
"""

from __future__ import annotations

import weakref
from typing import Any

_MISSING = object()


# Module.__getattr__, set by module.py.
usual: Any = None


class Entries(dict):
    """A dictionary whose entries are attributes of a module, to which it has a weak reference."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Any, entries: Any = ()) -> None:
        super().__init__()
        self._owner = weakref.ref(owner)
        self.update(entries)

    def _attributes(self) -> dict[str, Any]:
        owner = self._owner()
        return {} if owner is None or type(owner).__getattr__ is not usual else owner.__dict__

    def place(self) -> None:
        """Adds the attributes, or removes them, after the module's class has changed."""
        owner = self._owner()
        for name, value in self.items() if owner is not None else ():
            owner.__dict__.pop(name, None)
            self._attributes().update({name: value})

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._attributes()[name] = value

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._attributes().pop(name, None)

    def pop(self, name: str, default: Any = _MISSING) -> Any:
        if name not in self:
            if default is _MISSING:
                raise KeyError(name)
            return default
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, Any]:
        name, value = super().popitem()
        self._attributes().pop(name, None)
        return name, value

    def clear(self) -> None:
        for name in list(self):
            del self[name]

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, *others: Any, **named: Any) -> None:
        for name, value in dict(*others, **named).items():
            self[name] = value

    # Writes in place, while `|` returns a plain dict; the types of dict do not allow this.
    def __ior__(self, other: Any) -> Entries:  # type: ignore[misc]
        self.update(other)
        return self

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Pickled as a plain dict: Module.__setstate__ makes it Entries of the copy.
        return dict, (dict(self),)
