"""DispatchKeySet: the key set that kernels written in Python receive."""

from __future__ import annotations

from typing import Any

from lamella import _C

__all__ = ["DispatchKeySet"]


class DispatchKeySet(int):
    """The dispatch keys of a call. Supports & and |: `keys & after_autograd`."""

    def has(self, key: str) -> bool:
        """Whether the set has the functionality of a dispatch key, such as "AutogradCPU"."""
        bits = int(_C._dispatch_key_bits(key))
        return bits != 0 and (self & bits) == bits

    def add(self, key: str) -> DispatchKeySet:
        return DispatchKeySet(self | int(_C._dispatch_key_bits(key)))

    def remove(self, key: str) -> DispatchKeySet:
        """The set without the functionality of a key; its backends stay in the set."""
        return DispatchKeySet(int(self) & ~_C._dispatch_functionality_bits(key))

    def __and__(self, other: Any) -> DispatchKeySet:
        return DispatchKeySet(int(self) & int(other))

    def __or__(self, other: Any) -> DispatchKeySet:
        return DispatchKeySet(int(self) | int(other))

    def __repr__(self) -> str:
        return f"DispatchKeySet({_C._key_set_text(int(self))})"

    __str__ = __repr__


after_autograd = DispatchKeySet(_C._after_autograd_keys())
