"""torch.fx: graphs of the calls in a module or function, which can be transformed and run as
Python.

Tracing uses proxies without values, so control flow that depends on values cannot be traced;
`lamella.trace` runs a program with values instead. Submodules are loaded on first use.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from lamella.compat import _absent, _hollow, _names

_HOMES = {
    "node": "Node map_arg has_side_effect",
    "graph": "Graph CodeGen",
    "graph_module": "GraphModule",
    "proxy": "Proxy",
    "_symbolic_trace": "PH ProxyableClassMeta Tracer symbolic_trace",
    "interpreter": "Interpreter Transformer",
    "subgraph_rewriter": "replace_pattern",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
# Functions whose calls with proxies become nodes, as (namespace, name).
_wrapped: list[tuple[dict[str, Any], str]] = []


def wrap(fn_or_name: Any) -> Any:
    """Makes calls of a function in the caller's module become nodes; returns the argument."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "wrap: expected 'fn_or_name' to be a function or a name, got "
            f"{type(fn_or_name).__name__}"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError(
            "wrap: expected to be called by a module itself, got a call inside a function"
        )
    if not any(home is frame.f_globals and known == name for home, known in _wrapped):
        _wrapped.append((frame.f_globals, name))
    return fn_or_name


def __getattr__(name: str) -> Any:
    if name in (*_HOMES, "passes", "subgraph_rewriter"):
        return importlib.import_module(f"lamella.compat.fx.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(f"lamella.compat.fx.{_HOME[name]}"), name)
    if f"fx.{name}" in _names.HOLLOW:
        return _hollow.module(f"fx.{name}")
    raise _absent.missing(f"fx.{name}", (*_HOME, "wrap"))
