"""Which implementation of scaled_dot_product_attention runs: there is one for each device, so that
a choice is noted and changes nothing."""

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
    """Within it, attention may run by any of some implementations, of which there must be one."""
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not chosen or not all(isinstance(backend, SDPBackend) for backend in chosen):
        raise AssertionError(
            f"sdpa_kernel: expected 'backends' to be one SDPBackend or several, got {backends!r}"
        )
    yield
