"""torch.cuda: lamella.cuda where there is a device; else what programs expect without one."""

from __future__ import annotations

from typing import Any

import lamella
from lamella.compat import _no_cuda
from lamella.compat.cuda import amp as amp
from lamella.compat.cuda import nvtx as nvtx


def __getattr__(name: str) -> Any:
    if not name.startswith("__"):
        if hasattr(lamella.cuda, name) and lamella.cuda.is_available():
            return getattr(lamella.cuda, name)
        if hasattr(_no_cuda, name):
            return getattr(_no_cuda, name)
    raise AttributeError(f"module 'torch.cuda' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *vars(_no_cuda)})
