"""Chains whose operators XLA has, as a part of its own program: derivatives that are formulas.

The chain is recorded on ones of the shapes. If nothing of the library is left when what no result
needs is gone, such as the operator itself, the rest becomes StableHLO, which XLA fuses with what
is around it.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from jax import core
from jax.extend.core import Primitive
from jax.interpreters import mlir

import lamella
from lamella.bridge import _arrays, _library
from lamella.bridge._transform import Chain

try:
    from jax._src.interpreters.mlir import merge_mlir_modules
    from jax._src.lib import _jax
    from jax._src.lib.mlir import ir
    from jax._src.lib.mlir.dialects import func

    from lamella import hlo

    _hlo: Any = importlib.import_module("jaxlib._hlo")
except ImportError:  # another version of JAX, or the runtime alone: chains stay calls
    _hlo = None

# Recording computes the chain once, while a program is compiled.
_MOST_ELEMENTS = 1 << 24


@functools.lru_cache(maxsize=1024)
def text_of(chain: Chain, avals: tuple[core.ShapedArray, ...]) -> str | None:
    """The chain as HLO, if it can be had."""
    names = {op.full_name for op in _library.remembered()}
    if _hlo is None or not chain.transforms or sum(x.size for x in avals) > _MOST_ELEMENTS:
        return None
    try:
        ones = [lamella.ones(x.shape, dtype=getattr(lamella, x.dtype.name)) for x in avals]
        graph = lamella.trace(
            lambda *xs: tuple(_arrays.run_chain(chain, list(xs))),
            *ones,
            check=False,
            locations=False,
            decompose=True,
        )  # fmt: skip
        graph.eliminate_dead_code()
        if names & set(graph.operators()):
            return None
        text = str(hlo.from_trace(graph, rules=True))
    except Exception:  # the call itself says what is wrong, if anything is
        return None
    return None if " custom-call(" in text else text


def _lower(context: Any, *operands: Any, text: str, results: Any) -> Any:
    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    module = context.module_context
    source = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(proto), module.context)
    name = merge_mlir_modules(module.module, "lamella_formula", source, module.symbol_table)
    types = list(ir.SymbolTable(module.module.operation)[name].type.results)
    symbol = ir.FlatSymbolRefAttr.get(name)
    return func.CallOp(types, symbol, list(operands)).results


formula = Primitive("lamella_formula")
formula.multiple_results = True
formula.def_abstract_eval(lambda *avals, text, results: list(results))
mlir.register_lowering(formula, _lower)
