"""torch.cuda.nvtx and torch.cuda.profiler: annotations, which are ignored."""

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
    """Does nothing."""


class _Range(contextlib.ContextDecorator):
    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


def range(msg: str, *args: Any, **kwargs: Any) -> Any:  # noqa: A001
    """A context, or decorator, that does nothing."""
    return _Range()


def profile() -> Any:
    """A context that does nothing."""
    return _Range()


def start() -> None:
    """Does nothing."""


stop = start
