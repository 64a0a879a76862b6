"""Functions for symbolic sizes; sizes are plain numbers here, which makes the answers simple."""

from __future__ import annotations

from typing import Any


class GuardOnDataDependentSymNode(RuntimeError):
    """Never raised: no size is symbolic."""


def guard_or_false(a: Any) -> bool:
    """The condition as a bool."""
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
    """An empty set."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(value: Any) -> bool:
    """False."""
    return False
