"""torch.utils._contextlib: context managers that also are decorators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamella.autograd._decorate import decorate


class _DecoratorContextManager:
    """A context manager that also decorates functions; clone() creates the context for each
    call."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        decorated: Callable[..., Any] = decorate(self, orig_func)
        return decorated

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *error: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same, usable as a decorator with or without parentheses."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
