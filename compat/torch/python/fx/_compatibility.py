"""torch.fx._compatibility: which names are promised to stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Named = TypeVar("_Named", bound=Callable[..., Any])


def compatibility(is_backward_compatible: bool) -> Callable[[_Named], _Named]:
    """A decorator that gives the function or class back as it is."""
    return lambda named: named
