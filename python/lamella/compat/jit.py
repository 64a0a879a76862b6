"""torch.jit without a compiler: decorators give the function back, and nothing is scripting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def is_scripting() -> bool:
    """False."""
    return False


def is_tracing() -> bool:
    """False."""
    return False


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """The object itself."""
    return obj


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself, with or without arguments of the decorator."""
    return drop if callable(drop) else lambda function: function


def _same(function: F) -> F:
    return function


unused = export = script_if_tracing = _overload = _overload_method = interface = _same


def annotate(the_type: Any, value: Any) -> Any:
    """The value."""
    return value


def isinstance(obj: Any, kinds: Any) -> bool:  # noqa: A001
    """As Python's, without the arguments of generic types."""
    import builtins
    import typing

    origins = kinds if builtins.isinstance(kinds, tuple) else (kinds,)
    plain: Any = tuple(typing.get_origin(kind) or kind for kind in origins)
    return builtins.isinstance(obj, plain)
