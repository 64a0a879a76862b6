"""torch.jit without TorchScript: decorators return the function unchanged. trace() uses
lamella.trace; save() and load() write and read its graphs."""

from __future__ import annotations

import builtins
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from lamella._graph import Graph
from lamella.compat import _traced
from lamella.compat._traced import RecursiveScriptModule, TopLevelTracedModule
from lamella.compat._traced import ScriptFunction as ScriptFunction
from lamella.nn import Module

Final = typing.Final
F = TypeVar("F", bound=Callable[..., Any])


def is_scripting() -> bool:
    """False."""
    return False


def is_tracing() -> bool:
    """False."""
    return False


_is_tracing = is_tracing


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns the object unchanged."""
    return obj


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Returns the function unchanged, with or without decorator arguments."""
    return drop if callable(drop) else lambda function: function


def _same(function: F) -> F:
    return function


unused = export = script_if_tracing = script_method = _overload = _overload_method = interface = (
    _same
)


def trace(func: Any, example_inputs: Any = None, *args: Any, **options: Any) -> Any:
    """Records the operators that a function or module calls with these inputs; calls with inputs of
    other shapes record again."""
    inputs = (
        tuple(example_inputs)
        if builtins.isinstance(example_inputs, (tuple, list))
        else (example_inputs,)
    )
    return _traced.trace(func, inputs, options.get("check_trace", True))


def freeze(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """The module itself."""
    return mod


optimize_for_inference = freeze


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls the function immediately and returns its result, for wait()."""
    return func(*args, **kwargs)


def wait(future: Any) -> Any:
    """Returns the argument, the result of fork()."""
    return future


_fork, _wait = fork, wait


def save(m: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    """Saves a result of trace(). RuntimeError for other objects."""
    if not builtins.isinstance(m, _traced.Recorded):
        raise RuntimeError(
            f"torch.jit.save: expected what torch.jit.trace() gives, got {type(m).__name__}; there "
            "is no TorchScript"
        )
    m.save(f)


def load(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Loads a graph that save() wrote, as a module. ValueError if the file is not a graph."""
    return RecursiveScriptModule(Graph.load(f))


def set_fusion_strategy(strategy: Any) -> None:
    """Does nothing."""


class Attribute:
    """Returns the value; the type is ignored."""

    def __new__(cls, value: Any, type: Any) -> Any:
        return value


def annotate(the_type: Any, value: Any) -> Any:
    """The value."""
    return value


def isinstance(obj: Any, kinds: Any) -> bool:  # noqa: A001
    """isinstance() that ignores the arguments of generic types."""
    origins = kinds if builtins.isinstance(kinds, tuple) else (kinds,)
    plain: Any = tuple(typing.get_origin(kind) or kind for kind in origins)
    return builtins.isinstance(obj, plain)


class ScriptModule(Module):
    """A module is an instance only if its own class derives from this one: script() returns modules
    unchanged."""


class TracerWarning(Warning):
    """Never issued."""


class Error(RuntimeError):
    """Never raised."""


TracedModule = TopLevelTracedModule
_script_if_tracing = script_if_tracing


def trace_module(mod: Any, inputs: dict[str, Any], *args: Any, **options: Any) -> Any:
    """trace() for the one method whose inputs are given."""
    if len(inputs) != 1:
        raise RuntimeError(f"trace_module: expected the inputs of one method, got {list(inputs)}")
    [(name, values)] = inputs.items()
    return trace(mod if name == "forward" else getattr(mod, name), values, *args, **options)


def _get_trace_graph(f: Any, args: Any = (), *rest: Any, **options: Any) -> Any:
    """RuntimeError: TorchScript graphs do not exist here."""
    raise RuntimeError("_get_trace_graph: expected no TorchScript; lamella.trace() gives a Graph")


def enable_onednn_fusion(enabled: bool) -> None:
    """Does nothing."""


def onednn_fusion_enabled() -> bool:
    """False."""
    return False


def last_executed_optimized_graph() -> None:
    """None."""
