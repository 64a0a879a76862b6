"""lamella.hlo: reads, builds, inspects, compiles and runs HLO programs, the format of XLA."""

from lamella import _hlo, _missing, _notebook
from lamella._hlo import (
    Builder,
    Computation,
    Executable,
    Instruction,
    Module,
    Op,
    Shape,
    from_json,
    parse,
)
from lamella.hlo import _arrays, _ops, _run
from lamella.hlo._computations import (
    all_reduce,
    call,
    composite_call,
    computation,
    conditional,
    map,
    reduce,
    reduce_all,
    reduce_scatter,
    reduce_window,
    scatter,
    select_and_scatter,
    sort,
    switch,
    while_,
)
from lamella.hlo._functions import *  # noqa: F403
from lamella.hlo._functions import ElementType
from lamella.hlo._operators import as_operator, from_trace, operator_call
from lamella.hlo._run import compile, evaluate, load, save
from lamella.hlo._targets import (
    custom_call_target,
    custom_call_targets,
    register_custom_call_target,
    register_ffi_target,
    register_ffi_type,
    remove_custom_call_target,
)
from lamella.hlo._types import (
    ConvolutionDimensionNumbers,
    DotDimensionNumbers,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
)

__all__ = [
    "Builder",
    "Computation",
    "ConvolutionDimensionNumbers",
    "DotDimensionNumbers",
    "ElementType",
    "Executable",
    "GatherDimensionNumbers",
    "Instruction",
    "Module",
    "Op",
    "ScatterDimensionNumbers",
    "Shape",
    "all_reduce",
    "as_operator",
    "call",
    "compile",
    "composite_call",
    "computation",
    "conditional",
    "custom_call_target",
    "custom_call_targets",
    "evaluate",
    "from_json",
    "from_trace",
    "load",
    "map",
    "operator_call",
    "parse",
    "reduce",
    "reduce_all",
    "reduce_scatter",
    "reduce_window",
    "register_custom_call_target",
    "register_ffi_target",
    "register_ffi_type",
    "remove_custom_call_target",
    "save",
    "scatter",
    "select_and_scatter",
    "sort",
    "switch",
    "while_",
]

_hlo._set_converter(_arrays.convert)
_hlo._set_constant_maker(_arrays.constant)
_hlo._set_failure_hook(_run.on_failure)
_ops.install()
Module._repr_html_ = lambda self: _notebook.page(self.to_html())  # type: ignore[attr-defined]
Executable._repr_html_ = lambda self: self.plan._repr_html_()  # type: ignore[attr-defined]

_missing.suggest(__name__)
