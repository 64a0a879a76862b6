"""torch.cuda.nvtx and torch.cuda.profiler: marks that nobody reads."""

from __future__ import annotations

import contextlib
from typing import Any


def range_push(msg: str) -> int:
    """-1."""
    return -1


def range_pop() -> int:
    """-1."""
    return -1


def mark(msg: str) -> None:
    """Nothing to mark."""


class _Range(contextlib.ContextDecorator):
    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


def range(msg: str, *args: Any, **kwargs: Any) -> Any:  # noqa: A001
    """A context, or decorator, that changes nothing."""
    return _Range()


def profile() -> Any:
    """A context that changes nothing."""
    return _Range()


def start() -> None:
    """Nothing to begin."""


stop = start
