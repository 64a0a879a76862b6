"""HLO: XLA's programs, read, built, looked at and run."""

from __future__ import annotations

from typing import Any

from lamella import Tensor, _hlo
from lamella._hlo import Computation, Executable, Instruction, Module, Shape, parse
from lamella.hlo import _arrays, _bundle
from lamella.hlo._ffi import register_ffi_target, register_ffi_type
from lamella.hlo._operators import as_operator, from_trace
from lamella.hlo._targets import (
    custom_call,
    custom_call_targets,
    register_custom_call_target,
    remove_custom_call_target,
)

__all__ = [
    "Computation",
    "Executable",
    "Instruction",
    "Module",
    "Shape",
    "as_operator",
    "compile",
    "custom_call",
    "custom_call_targets",
    "evaluate",
    "from_trace",
    "parse",
    "register_custom_call_target",
    "register_ffi_target",
    "register_ffi_type",
    "remove_custom_call_target",
]

_hlo._set_converter(_arrays.convert)
_hlo._set_failure_hook(_bundle.on_failure)


def compile(text_or_module: str | Module, *, platform: str = "Host") -> Executable:
    """A module made ready to run. Call the result with arrays; it returns a list of tensors."""
    if not isinstance(text_or_module, (str, Module)):
        raise TypeError(
            f"compile: expected a Module or the text of one, got {type(text_or_module).__name__}"
        )
    text = text_or_module if isinstance(text_or_module, str) else None
    module = None if isinstance(text_or_module, str) else text_or_module
    try:
        if module is None:
            module = parse(text_or_module)
        return _hlo.compile(module, platform)
    except Exception as error:
        _bundle.note(error, module, text, "compile", {"platform": platform})
        raise


def evaluate(text_or_module: str | Module, *arrays: Any) -> list[Tensor]:
    """Runs a module once with the reference evaluator. Gives one tensor for each array of the
    result, tuples flattened."""
    return compile(text_or_module)._run("evaluate", arrays)
