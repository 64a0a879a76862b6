"""torch.utils.weak: weak references to tensors, and mappings by identity with weak keys."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

from lamella import Tensor


class WeakIdRef(weakref.ReferenceType[Any]):
    """A weak reference that compares by identity, whatever the object's == does."""

    __slots__ = ("_id",)

    _id: int

    def __new__(cls, key: Any, callback: Any = None) -> Any:
        made = super().__new__(cls, key, callback)
        made._id = id(key)
        return made

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        one = self()
        if one is not None and isinstance(other, weakref.ref):
            return one is other()
        return self is other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary by identity with weak keys."""

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:  # noqa: A002
        self.data: Any = {}
        self.ref_type = ref_type
        if dict is not None:
            self.update(dict)

    def _forget(self, reference: Any) -> None:
        self.data.pop(reference, None)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            found = reference()
            if found is not None:
                yield found

    def __contains__(self, key: object) -> bool:
        return self.ref_type(key) in self.data


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor: a call returns the tensor, or None."""

    def __init__(self, tensor: Tensor) -> None:
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        return self.ref()
