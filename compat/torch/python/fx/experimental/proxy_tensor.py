"""torch.fx.experimental.proxy_tensor: make_fx(), which records the operators that a function
calls."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor
from lamella.compat import _hollow
from lamella.compat._subclasses import FakeTensor
from lamella.compat.fx.graph import Graph
from lamella.compat.fx.graph_module import GraphModule
from lamella.utils._python_dispatch import TorchDispatchMode
from lamella.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

_modes: list[_Recorder] = []
# The types of tensors that may be new to a trace.
_RECORDED = (Tensor, lamella.nn.Parameter, FakeTensor)


class _Recorder(TorchDispatchMode):
    """A mode that records each call of an operator as a node of a graph."""

    def __init__(self, graph: Graph, decompositions: dict[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self.graph = graph
        self.decompositions = decompositions
        self.nodes: dict[int, Any] = {}
        self.kept: list[Tensor] = []  # so that no two tensors of the trace share an id
        self.constants: dict[str, Tensor] = {}

    def note(self, tensor: Tensor, node: Any) -> None:
        """Remembers which node made a tensor."""
        self.nodes[id(tensor)] = node
        self.kept.append(tensor)
        node.meta.setdefault("val", tensor)

    def node_of(self, value: Any) -> Any:
        """The node of a tensor, one for a constant if none made it; other values are returned."""
        if not isinstance(value, Tensor):
            return value
        found = self.nodes.get(id(value))
        if found is None:
            kind = (
                "_param_constant"
                if isinstance(value, lamella.nn.Parameter)
                else ("_tensor_constant")
            )
            count = sum(name.startswith(kind) for name in self.constants)
            name = f"{kind}{count}"
            self.constants[name] = value
            found = self.graph.create_node("get_attr", name, (), {}, name=name)
            self.note(value, found)
        return found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if any(kind not in _RECORDED for kind in types) and not all(
            id(leaf) in self.nodes for leaf in tree_leaves((args, kwargs)) if type(leaf) in types
        ):
            return NotImplemented  # a subclass runs operators on its parts
        if func in self.decompositions:
            with self:
                made = self.decompositions[func](*args, **kwargs)
            if made is not NotImplemented:
                return made
        node_args, node_kwargs = tree_map(self.node_of, (tuple(args), dict(kwargs)))
        made = func(*args, **kwargs)
        node = self.graph.create_node(
            "call_function", func, node_args, node_kwargs, name=_node_name(func)
        )
        self._results(made, node)
        return made

    def _results(self, made: Any, node: Any) -> None:
        if isinstance(made, Tensor):
            self.note(made, node)
        elif isinstance(made, (tuple, list)):
            node.meta["val"] = made
            for i, each in enumerate(made):
                if isinstance(each, (Tensor, tuple, list)):
                    part = self.graph.create_node("call_function", operator.getitem, (node, i), {})
                    self._results(each, part)


def _node_name(func: Any) -> str:
    return str(func._opname) if hasattr(func, "_opname") else str(func.__name__)


def _argument_names(function: Callable[..., Any], flat: int, args: Any) -> list[str]:
    """The placeholders' names: those of the arguments, each with `_1`."""
    try:
        names = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        names = []
    if len(names) < len(args) or flat != len(args):
        return (
            [f"arg{i}_1" for i in range(flat)]
            if len(names) < len(args)
            else [f"{names[min(i, len(names) - 1)]}" for i in range(flat)]
        )
    return [f"{name}_1" for name in names[: len(args)]]


def make_fx(
    f: Callable[..., Any],
    decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    **options: Any,
) -> Callable[..., GraphModule]:
    """A function of the arguments of f that calls it and returns the operators that ran, as a
    GraphModule. Sizes are numbers in every mode."""
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"make_fx: unexpected tracing mode {tracing_mode!r}")

    def traced(*args: Any) -> GraphModule:
        flat, spec = tree_flatten(args)
        graph = Graph()
        recorder = _Recorder(graph, decomposition_table or {})
        given = []
        for value, name in zip(flat, _argument_names(f, len(flat), args)):
            node = graph.placeholder(name)
            if isinstance(value, Tensor):
                # An alias, so that a tensor that is given twice has two nodes.
                if value.is_leaf:
                    alias = value.detach().requires_grad_(value.requires_grad)
                else:
                    alias = value.view_as(value)  # what is no leaf may be written
                recorder.note(alias, node)
                value = alias
            given.append(value)
        _modes.append(recorder)
        try:
            with recorder:
                made = f(*tree_unflatten(given, spec))
        finally:
            _modes.pop()
        annotated = getattr(f, "__annotations__", {}).get("return")
        graph.output(tree_map(recorder.node_of, made), annotated)
        root = lamella.nn.Module()
        for name, value in recorder.constants.items():
            if isinstance(value, lamella.nn.Parameter):
                root.register_parameter(name, value)
            else:
                root.register_buffer(name, value)
        return GraphModule(root, graph)

    return traced


def get_proxy_mode() -> Any:
    """The mode of the innermost make_fx() that is tracing, or None."""
    return _modes[-1] if _modes else None


def __getattr__(name: str) -> Any:
    return getattr(_hollow.module("fx.experimental.proxy_tensor"), name)
