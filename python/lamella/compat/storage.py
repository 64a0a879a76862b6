"""torch.storage."""

from __future__ import annotations

from typing import Any

from lamella import UntypedStorage as UntypedStorage
from lamella._storage import rebuild_tensor


class TypedStorage:
    """The memory behind a tensor, counted in elements of its dtype."""

    def __init__(self, tensor: Any) -> None:
        self._memory, self.dtype = tensor.untyped_storage(), tensor.dtype
        self.device = tensor.device

    def _elements(self) -> Any:
        return rebuild_tensor(self._memory, self.dtype, 0, (len(self),), (1,))

    def __len__(self) -> int:
        return int(self._memory.nbytes()) // int(self.dtype.itemsize)

    size = __len__

    def nbytes(self) -> int:
        """The number of bytes."""
        return int(self._memory.nbytes())

    def element_size(self) -> int:
        """The bytes of one element."""
        return int(self.dtype.itemsize)

    def data_ptr(self) -> int:
        """Where the memory begins."""
        return int(self._memory.data_ptr())

    def untyped(self) -> Any:
        """The memory in bytes."""
        return self._memory

    def tolist(self) -> list[Any]:
        """The elements."""
        return list(self._elements().tolist())

    def __getitem__(self, index: Any) -> Any:
        found = self._elements()[index]
        return found.item() if isinstance(index, int) else found

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements()[index] = value

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def fill_(self, value: Any) -> TypedStorage:
        """Writes a number everywhere."""
        self._elements().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Writes the elements of another one."""
        self._elements().copy_(source._elements())
        return self

    def clone(self) -> TypedStorage:
        """A copy in memory of its own."""
        return TypedStorage(self._elements().clone())

    def is_shared(self) -> bool:
        """False: memory is shared by forks alone."""
        return False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypedStorage):
            return NotImplemented
        return self.data_ptr() == other.data_ptr() and self.nbytes() == other.nbytes()

    __hash__ = object.__hash__

    def cpu(self) -> TypedStorage:
        """The storage itself."""
        return self


_TypedStorage = TypedStorage
