"""The parts of PyTorch that Lamella lacks, and the error messages for them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from lamella._missing import MissingName
from lamella.compat._names import ABSENT

PAGE = "docs/existing-code.md"


def sentence(name: str) -> str | None:
    """The explanation for a dotted name that is absent on purpose, else None."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        said = ABSENT.get(".".join(parts[:count]))
        if said is not None:
            return said
    return None


def text(name: str, known: Iterable[str]) -> str:
    """The error message for a missing name: an explanation or the nearest name, and the page that
    lists absent names.

    name: dotted, without "torch". known: the names that exist in the same module.
    """
    said = sentence(name)
    if said is None:
        parent, _, last = name.rpartition(".")
        near = difflib.get_close_matches(last, [n for n in known if not n.startswith("__")], 1)
        said = f"the nearest is '{near[0]}'" if near else ""
    return f"Lamella has no 'torch.{name}'{'; ' if said else ''}{said} (absent names: {PAGE})"


def missing(name: str, known: Iterable[str]) -> AttributeError:
    """The error for a missing name."""
    return MissingName(lambda: text(name, known))
