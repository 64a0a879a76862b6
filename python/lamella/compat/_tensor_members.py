"""Members of Tensor that PyTorch's programs use and Lamella has not."""

from __future__ import annotations

from typing import Any

from lamella import _C


def _is_cuda(self: Any) -> bool:
    """False: there is no such device."""
    return False


def install() -> None:
    """Adds the members. They stay when the names of modules are taken away again."""
    _C._add_to_tensor({})
