"""torch._tensor_str, as far as programs use it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from lamella import Tensor
from lamella import _tensor_str as printing


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """A context with other print options for tensors."""
    before = printing.get_printoptions()
    printing.set_printoptions(**options)
    try:
        yield
    finally:
        printing.set_printoptions(**before)


def _tensor_str(self: Tensor, indent: int) -> str:
    """The text of the elements alone."""
    return "[]" if self.numel() == 0 else printing._body(self.detach(), indent)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """The tensor's repr, optionally with other text in place of the elements."""
    if tensor_contents is None:
        return printing.tensor_repr(inp)
    return f"tensor({tensor_contents})"


_add_suffixes = printing.with_suffixes
