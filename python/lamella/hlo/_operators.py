"""Operators and modules for each other."""

# The extension module's own functions have no types.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import lamella
from lamella import _hlo
from lamella._hlo import Builder, Module, Op, parse
from lamella.hlo import _functions

# Operators that were defined for good.
_kept: list[Any] = []


def as_operator(
    text_or_module: str | Module, name: str, *, lib: Any = None, platform: str = "Host"
) -> Any:
    """Defines an operator "ns::name" that runs a module, and returns it as lamella.ops has it.

    Each array of the entry's parameters is a Tensor, by the parameter's name; each array of the
    result is returned. An input_output_alias makes the argument `Tensor(a!)`: the result is written
    there. Arguments must have the parameters' shapes and dtypes.
    lib: the lamella.library.Library that the operator ends with; without it, it stays.
    """
    return _define(text_or_module, name, lib, platform, sys._getframe(1))


def _define(text_or_module: str | Module, name: str, lib: Any, platform: str, caller: Any) -> Any:
    module = parse(text_or_module) if isinstance(text_or_module, str) else text_or_module
    registration = _hlo._define_operator(
        name, module, platform, caller.f_code.co_filename, caller.f_lineno
    )
    if lib is None:
        _kept.append(registration)
    else:
        lib._over.append(registration)
    ns, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    return getattr(getattr(getattr(lamella.ops, ns), base), overload or "default")


def from_trace(graph: Any, name: str = "traced", *, rules: bool = False) -> Module:
    """The module of a graph that lamella.trace recorded: each node is a custom call to its
    operator, or, with rules, the opcodes that do the same where the operator has a rule.

    Parameters and constants of the graph are constants of the module. Inputs that the graph writes
    are results as well, after those of the graph. Graphs that write memory through one tensor and
    read it through another are refused; lamella.func.functionalize makes functions that do not.
    """
    return _hlo._from_trace(graph._raw, name, rules)


def operator_call(
    op: str,
    operands: Sequence[Op],
    arguments: str = "",
    *,
    shape: Any = None,
    builder: Builder | None = None,
) -> Op:
    """A custom call of the operator "ns::name.overload" in a computation that is being built:
    operator_call("aten::add.Tensor", [x, y], "alpha=2").

    The shape is what the operator's Meta kernel gives; aliasing and effects are what its schema
    says. arguments: as a call would write them, "(%0, %1, alpha=2)"; without the operands, those
    that are not tensors. shape: of an operator that cannot tell it. builder: where there are no
    operands.
    """
    shapes = [operand.shape for operand in operands]
    effect, aliasing = False, []
    if shape is None:
        shape, arguments, aliases, effect = _hlo.operator_call_facts(op, shapes, arguments)
        aliasing = [(output, (operand, ())) for output, operand in aliases.items()]
    first = () if builder is None else (builder,)
    custom_call: Any = _functions.custom_call
    return custom_call(*first, op, operands, shape, arguments, effect, aliasing)
