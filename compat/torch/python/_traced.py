"""The results of torch.jit.trace(): graphs of lamella.trace, one for each signature of the inputs.

A graph is valid for inputs with the recorded shapes and dtypes. Programs trace with one batch and
call with others, so a call that fits no graph records another one.
"""

from __future__ import annotations

import inspect
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor
from lamella.compat.utils import _pytree
from lamella.nn import Module


def _form(inputs: tuple[Any, ...]) -> Any:
    """The key of the inputs: inputs with equal keys use the same graph."""
    leaves, form = _pytree.tree_flatten(inputs)
    kinds = [
        (tuple(x.shape), x.dtype, x.device) if isinstance(x, Tensor) else repr(x) for x in leaves
    ]
    return str(form), tuple(kinds)


class _Graphs:
    """The graphs of one function; save() writes the first."""

    def __init__(self, function: Callable[..., Any], inputs: tuple[Any, ...], check: bool) -> None:
        self.function = function
        self.check = check
        self.by_form: dict[Any, Any] = {}
        self.first = self.of(inputs)

    def of(self, inputs: tuple[Any, ...]) -> Any:
        form = _form(inputs)
        graph = self.by_form.get(form)
        if graph is None:
            graph = lamella.trace(self.function, *inputs, check=self.check)
            self.by_form[form] = graph
        return graph

    def call(self, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if named:
            called = self.function
            called = called.forward if isinstance(called, Module) else called
            inputs = inspect.signature(called).bind(*inputs, **named).args
        return self.of(inputs)(*inputs)


class Recorded:
    """The common base of the results of trace() and load(); `graph` is for the example inputs."""

    graph: Any

    @property
    def code(self) -> str:
        """The graph as text."""
        return str(self.graph.code)

    def save(self, f: Any) -> None:
        """Writes the graph with its parameters and constants to a path or an open file."""
        if not hasattr(f, "write"):
            self.graph.save(f)
            return
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "graph")
            self.graph.save(path)
            f.write(path.read_bytes())


class ScriptFunction(Recorded):
    """The result of trace() for a function."""

    def __init__(self, graphs: _Graphs) -> None:
        self._graphs = graphs
        self.graph = graphs.first
        self.__name__ = getattr(graphs.function, "__name__", "forward")

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        return self._graphs.call(inputs, named)


class TopLevelTracedModule(Recorded, Module):
    """The result of trace() for a module, with the module's parameters, buffers and children."""

    def __init__(self, graphs: _Graphs) -> None:
        super().__init__()
        module: Any = graphs.function
        self._graphs = graphs
        self.graph = graphs.first
        self.training = module.training
        for own, of_module in (
            (self._parameters, module._parameters),
            (self._buffers, module._buffers),
            (self._modules, module._modules),
        ):
            own.update(of_module)
        self._non_persistent_buffers_set = module._non_persistent_buffers_set

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return self._graphs.call(inputs, named)

    @property
    def original_name(self) -> str:
        """The name of the module's class."""
        return type(self._graphs.function).__name__


class RecursiveScriptModule(Recorded, Module):
    """The result of load(): one graph, for inputs of the recorded shapes."""

    def __init__(self, graph: Any) -> None:
        super().__init__()
        self.graph = graph

    def forward(self, *inputs: Any) -> Any:
        return self.graph(*inputs)


def trace(function: Any, inputs: tuple[Any, ...], check: bool) -> Any:
    graphs = _Graphs(function, inputs, check)
    return TopLevelTracedModule(graphs) if isinstance(function, Module) else ScriptFunction(graphs)
