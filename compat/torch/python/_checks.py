"""torch._check() and its family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamella import Tensor


def _check_with(kind: Any, cond: Any, message: Callable[[], Any] | None = None) -> None:
    if not isinstance(cond, bool):
        raise TypeError(f"_check: expected 'cond' to be a bool, got {type(cond).__name__}")
    if not cond:
        raise kind("Expected cond to be True, but got False" if message is None else str(message()))


def _check(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """RuntimeError unless the condition holds; message() gives its text."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """IndexError unless the condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """ValueError unless the condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """TypeError unless the condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """NotImplementedError unless the condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Callable[[], Any] | None = None, *, max: Any = None) -> None:
    """RuntimeError unless the size is in [0, `max`]."""
    _check_with(RuntimeError, i >= 0 and (max is None or i <= max), message)


def _check_tensor_all(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """RuntimeError unless all elements are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(
            f"_check_tensor_all: expected 'cond' to be a Tensor, got {type(cond).__name__}"
        )
    _check_with(RuntimeError, bool(cond.all().item()), message)


def _assert(condition: Any, message: str) -> None:
    """AssertionError unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def _check_tensor_all_with(kind: Any, cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raises the given error type unless all elements are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(
            f"_check_tensor_all: expected 'cond' to be a Tensor, got {type(cond).__name__}"
        )
    _check_with(kind, bool(cond.all().item()), message)
