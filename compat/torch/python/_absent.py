"""The parts of PyTorch that Lamella lacks, and the error messages for them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

PAGE = "docs/existing-code.md"

# An explanation for each part that is absent on purpose. The longest matching prefix of a dotted
# name is used.
ABSENT = {
    "fx": "torch.fx has what traces, changes and runs graphs, and of its passes shape_prop",
    "onnx": "Lamella exports HLO: lamella.trace() and lamella.hlo",
    "_dynamo": "lamella.compile compiles what it traces, without rewriting bytecode",
    "_inductor": "lamella.compile compiles through HLO and LLVM",
    "_export": "lamella.trace(fn, *example_inputs) gives a Graph, which saves and loads",
    "export": "lamella.trace(fn, *example_inputs) gives a Graph, which saves and loads",
    "ao": "Lamella has no quantized tensors",
    "quantization": "Lamella has no quantized tensors",
    "_functorch": "lamella.func has the transforms",
    "package": "Lamella runs no code from files",
    "mps": "Lamella has no devices of Apple",
    "monitor": "lamella.profiler has what Lamella measures",
    "utils.mobile_optimizer": "Lamella has no mobile programs",
    "distributed.fsdp": "lamella.nn.parallel has what Lamella shards",
    "distributed.tensor": "lamella.nn.parallel has what Lamella shards",
    "distributed.rpc": "Lamella has collectives only",
    "distributed.pipelining": "Lamella has collectives only",
    "distributed.elastic": "mpirun starts the ranks",
}


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


class MissingName(AttributeError):
    """The error for a missing name. hasattr() creates such errors without reading their text, so
    the search for the nearest name waits until the text is read."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(name)
        self._missing, self._known = name, known

    def __str__(self) -> str:
        return text(self._missing, self._known)

    def __reduce__(self) -> Any:
        return AttributeError, (str(self),)


def missing(name: str, known: Iterable[str]) -> AttributeError:
    """The error for a missing name."""
    return MissingName(name, known)
