"""Runs torch.fx graphs node by node, and transforms them into new graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lamella.compat.fx.graph import Graph
from lamella.compat.fx.graph_module import GraphModule
from lamella.compat.fx.node import Node, map_arg
from lamella.compat.fx.proxy import Proxy, TracerBase
from lamella.nn import Module


class Interpreter:
    """Runs the graph of a module; subclasses override what a node of each kind does."""

    def __init__(
        self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.graph = graph if graph is not None else module.graph
        self.submodules = dict(module.named_modules())
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())
        self.garbage_collect_values = garbage_collect_values

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """The graph's result for the arguments.

        initial_env: values of nodes that need not run.
        """
        self.env = dict(initial_env or {})
        given = self.graph.process_inputs(*args) if enable_io_processing else args
        self.args_iter = iter(given)
        last: dict[Node, list[Node]] = {}
        if self.garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in seen:
                        seen.add(used)
                        last.setdefault(node, []).append(used)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self.run_node(node)
            for used in last.get(node, ()):
                del self.env[used]
            if node.op == "output":
                out = self.env[node]
                return self.graph.process_outputs(out) if enable_io_processing else out
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """run(), which also clears the list of arguments."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """Computes a node's value."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument, or the parameter's default."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"run: expected an argument for '{target}', got none") from None

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The attribute of the module at a path."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the module at a path."""
        return self.submodules[target](*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The graph's result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module at a path. RuntimeError if it is not there."""
        value: Any = self.module
        for part in target.split("."):
            if not hasattr(value, part):
                raise RuntimeError(f"fetch_attr: expected the module to have '{target}'")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values of a node's arguments."""
        return self.map_nodes_to_values((n.args, n.kwargs), n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """`args` with each node replaced by its value."""
        return map_arg(args, self.env.__getitem__)


class _Appending(TracerBase):
    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def _leaf(self, a: Any) -> Any:
        return super()._leaf(a) if isinstance(a, (Proxy, Node)) else a


class Transformer(Interpreter):
    """Creates a new graph: the methods turn each node into proxies of new nodes."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph(tracer_cls=module.graph._tracer_cls)
        self.tracer = _Appending(self.new_graph)
        self.tracer.root = module  # type: ignore[attr-defined]

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """Adds a parameter to the new graph."""
        return Proxy(self.new_graph.placeholder(target, default_value=(*args, ...)[0]), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """Adds a read of an attribute to the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Adds a module call to the new graph."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Adds a function call to the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Returns a GraphModule of the new graph."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            strip = lambda value: value.node if isinstance(value, Proxy) else value  # noqa: E731
            from lamella.compat.fx.node import map_aggregate

            node = self.new_graph.output(map_aggregate(result, strip))
            node.type = self.graph.output_node().type
        assert isinstance(self.module, Module)
        return GraphModule(self.module, self.new_graph)
