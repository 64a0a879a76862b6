"""torch.storage."""

from lamella import UntypedStorage as UntypedStorage


class TypedStorage:
    """A storage with a dtype: there is none, so nothing is one."""


_TypedStorage = TypedStorage
