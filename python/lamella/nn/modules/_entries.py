"""What a module owns by name.

Note [A module's entries are attributes]
  module._parameters, _buffers and _modules are dictionaries that say what belongs to the module.
  Each entry also stands in the module's __dict__, so that reading module.weight is an ordinary
  attribute and costs no Python call. Whoever changes an entry through the dictionary changes the
  attribute too; nothing else writes these attributes (Module.__setattr__ sends them here).
  Modules of a class with a __getattr__ of its own are left out: it wants to see the name, and
  Module.__getattr__ looks into the dictionaries.
"""

from __future__ import annotations

import weakref
from typing import Any

_MISSING = object()


# Module.__getattr__, which module.py sets.
usual: Any = None


class Entries(dict):
    """A dictionary whose entries are attributes of a module, which it does not keep alive."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Any, entries: Any = ()) -> None:
        super().__init__()
        self._owner = weakref.ref(owner)
        self.update(entries)

    def _attributes(self) -> dict[str, Any]:
        owner = self._owner()
        return {} if owner is None or type(owner).__getattr__ is not usual else owner.__dict__

    def place(self) -> None:
        """Makes the entries attributes, or no longer, after the module's class has changed."""
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

    # It writes in place, where `|` makes a plain dict, which the types of dict do not foresee.
    def __ior__(self, other: Any) -> Entries:  # type: ignore[misc]
        self.update(other)
        return self

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A plain dictionary: Module.__setstate__ ties it to the copy.
        return dict, (dict(self),)
