"""Converts between operators, traced graphs and HLO modules."""

# The functions of the extension module have no types.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import lamella
from lamella import _hlo
from lamella._hlo import Builder, Module, Op, parse
from lamella.hlo import _functions

# The registrations of operators without a library, which live until the process ends.
_kept: list[Any] = []


def as_operator(
    text_or_module: str | bytes | Module, name: str, *, lib: Any = None, platform: str = "Host"
) -> Any:
    """Defines an operator "ns::name" that runs a module, and returns its overload in lamella.ops.

    Each array of the entry's parameters is a Tensor argument, with the parameter's name; each array
    of the result is a return. An input_output_alias makes the argument `Tensor(a!)`: the result is
    written to it. Arguments must have the parameters' shapes and dtypes.
    lib: the lamella.library.Library whose closing removes the operator; by default it is permanent.
    """
    return _define(text_or_module, name, lib, platform, sys._getframe(1))


def _define(
    text_or_module: str | bytes | Module, name: str, lib: Any, platform: str, caller: Any
) -> Any:
    module = text_or_module if isinstance(text_or_module, Module) else parse(text_or_module)
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


def from_trace(
    graph: Any, name: str = "traced", *, rules: bool = False, portable: bool = False
) -> Module:
    """The module of a graph that lamella.trace recorded: each node becomes a custom call of its
    operator; with `rules`, operators that have a lowering rule become opcodes, and with `portable`
    also functions such as gelu, which machine code takes from the kernels: for text that another
    compiler of HLO shall run.

    Parameters and constants of the graph become constants of the module. Inputs that the graph
    writes are additional results, after those of the graph. Graphs that write memory through one
    tensor and read it through another are refused; lamella.func.functionalize removes such writes.
    """
    return _hlo._from_trace(graph._raw, name, rules, None, None, True, None, portable)


def operator_call(
    op: str,
    operands: Sequence[Op],
    arguments: str = "",
    *,
    shape: Any = None,
    builder: Builder | None = None,
) -> Op:
    """Adds a custom call of the operator "ns::name.overload" to the computation being built:
    operator_call("aten::add.Tensor", [x, y], "alpha=2").

    The shape is computed by the operator's Meta kernel; aliasing and effects follow its schema.
    arguments: all arguments as a call has them, "(%0, %1, alpha=2)", or only those that are not
    tensors. shape: the result's shape, for operators without a Meta kernel. builder: needed if
    there are no operands.
    """
    shapes = [operand.shape for operand in operands]
    effect, aliasing = False, []
    if shape is None:
        shape, arguments, aliases, effect = _hlo.operator_call_facts(op, shapes, arguments)
        aliasing = [(output, (operand, ())) for output, operand in aliases.items()]
    first = () if builder is None else (builder,)
    custom_call: Any = _functions.custom_call
    return custom_call(*first, op, operands, shape, arguments, effect, aliasing)
