"""HLO: XLA's programs, read, built, looked at and run."""

from __future__ import annotations

from typing import Any

from lamella import Tensor, _hlo
from lamella._hlo import Computation, Executable, Instruction, Module, Shape, parse
from lamella.hlo import _arrays

__all__ = [
    "Computation",
    "Executable",
    "Instruction",
    "Module",
    "Shape",
    "compile",
    "evaluate",
    "parse",
]

_hlo._set_hooks(_arrays.convert, lambda executable, arguments, error: None)


def _module_of(text_or_module: str | Module) -> Module:
    if isinstance(text_or_module, str):
        return parse(text_or_module)
    return text_or_module


def compile(text_or_module: str | Module, *, platform: str = "Host") -> Executable:
    """A module made ready to run: call the result with arrays."""
    return _hlo.compile(_module_of(text_or_module), platform)


def evaluate(text_or_module: str | Module, *arrays: Any) -> list[Tensor]:
    """Runs a module once with the reference evaluator. Gives one tensor for each array of the
    result, tuples flattened."""
    return compile(text_or_module)._run("evaluate", arrays)
