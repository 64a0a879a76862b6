"""torch._tensor_str, as far as programs reach into it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import lamella
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


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """The text with suffixes, each on a line of its own where the line would be too long."""
    texts, last = [tensor_str], len(tensor_str) - tensor_str.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or last + len(suffix) + 2 > lamella._tensor_str._options.linewidth:
            texts.append(",\n" + " " * indent + suffix)
            last, force_newline = indent + len(suffix), False
        else:
            texts.append(", " + suffix)
            last += len(suffix) + 2
    return "".join(texts) + ")"
