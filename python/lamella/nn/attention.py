"""The choice of an implementation of scaled_dot_product_attention. Each device has only one, so
that the choice is checked and has no effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """PyTorch's implementations."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(
    backends: SDPBackend | Iterable[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """A context in which attention may run by any of `backends`, at least one."""
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not chosen or not all(isinstance(backend, SDPBackend) for backend in chosen):
        raise AssertionError(
            f"sdpa_kernel: expected 'backends' to be one SDPBackend or several, got {backends!r}"
        )
    yield
