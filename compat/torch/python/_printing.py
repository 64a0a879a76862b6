"""torch._tensor_str, as far as programs reach into it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from lamella import Tensor
from lamella import _tensor_str as printing


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """A context in which tensors print with other options."""
    before = printing.get_printoptions()
    printing.set_printoptions(**options)
    try:
        yield
    finally:
        printing.set_printoptions(**before)


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements alone."""
    return "[]" if self.numel() == 0 else printing._body(self.detach(), indent)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """As the tensor prints; with other text in the place of its elements."""
    if tensor_contents is None:
        return printing.tensor_repr(inp)
    return f"tensor({tensor_contents})"


_add_suffixes = printing.with_suffixes
