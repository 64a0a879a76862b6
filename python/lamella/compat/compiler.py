"""torch.compiler: lamella.compile traces, so there is nothing to say to a compiler of bytecode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamella import compile as compile


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself, with or without arguments of the decorator."""
    return fn if fn is not None else lambda function: function


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn


assume_constant_result = substitute_in_graph = allow_in_graph


def reset() -> None:
    """Nothing is kept."""


def cudagraph_mark_step_begin() -> None:
    """Nothing to mark."""


def list_backends(*args: Any) -> list[str]:
    """No backends to choose among."""
    return []
