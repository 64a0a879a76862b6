"""torch.fx._compatibility: a marker for stable names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Named = TypeVar("_Named", bound=Callable[..., Any])


def compatibility(is_backward_compatible: bool) -> Callable[[_Named], _Named]:
    """A decorator that returns the function or class unchanged."""
    return lambda named: named
