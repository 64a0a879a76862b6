"""torch._dynamo, as far as programs use it: lamella.compile traces instead."""

from __future__ import annotations

import sys
from typing import Any

from lamella.compat import _hollow, _names
from lamella.compat.compiler import OptimizedModule as OptimizedModule
from lamella.compat.compiler import allow_in_graph as allow_in_graph
from lamella.compat.compiler import assume_constant_result as assume_constant_result
from lamella.compat.compiler import disable as disable
from lamella.compat.compiler import is_compiling as is_compiling
from lamella.compat.compiler import list_backends as list_backends
from lamella.compat.compiler import reset as reset
from lamella.compat.compiler import substitute_in_graph as substitute_in_graph

# A limit of older versions, kept for programs that set it.
_hollow.module("_dynamo.config").__dict__.update(cache_size_limit=8, recompile_limit=8)

# PyTorch has OptimizedModule in a module of this name.
eval_frame = sys.modules[__name__]


def mark_dynamic(t: Any, index: Any = None, **options: Any) -> None:
    """Does nothing: programs are compiled for each shape."""


maybe_mark_dynamic = mark_static = mark_static_address = mark_unbacked = mark_dynamic


def graph_break(msg: str = "") -> None:
    """Does nothing: there are no graph breaks."""


def is_dynamo_supported() -> bool:
    """False."""
    return False


def __getattr__(name: str) -> Any:
    from lamella.compat._absent import missing

    if f"_dynamo.{name}" in _names.HOLLOW:
        return _hollow.module(f"_dynamo.{name}")
    raise missing(f"_dynamo.{name}", globals())
