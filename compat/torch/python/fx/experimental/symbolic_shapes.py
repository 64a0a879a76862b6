"""Questions about sizes that might be symbols: here they are numbers, and the answers plain."""

from __future__ import annotations

from typing import Any


class GuardOnDataDependentSymNode(RuntimeError):
    """No error is of this class: no size is a symbol."""


def guard_or_false(a: Any) -> bool:
    """Whether it holds."""
    return bool(a)


guard_or_true = guard_bool = statically_known_true = definitely_true = guard_or_false
guard_size_oblivious = guard_or_false


def guard_int(a: Any) -> int:
    """The number."""
    return int(a)


hint_int = guard_int


def is_concrete_int(a: Any) -> bool:
    """True."""
    return isinstance(a, int)


def free_symbols(value: Any) -> set[Any]:
    """None of them."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(value: Any) -> bool:
    """False."""
    return False
