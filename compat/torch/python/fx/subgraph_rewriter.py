"""Replaces parts of torch.fx graphs that match a pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lamella.compat.fx._symbolic_trace import symbolic_trace
from lamella.compat.fx.graph import Graph
from lamella.compat.fx.graph_module import GraphModule, _copy_attr
from lamella.compat.fx.node import Node, map_arg
from lamella.nn import Module

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """One match that was replaced."""

    anchor: Node  # the node that matches the pattern's result
    nodes_map: dict[Node, Node]  # from nodes of the pattern to nodes of the graph


def _graph_of(what: Any) -> tuple[Graph, Module | None]:
    if isinstance(what, Graph):
        return what, what.owning_module
    if isinstance(what, GraphModule):
        return what.graph, what
    traced = symbolic_trace(what)
    return traced.graph, traced


class _Matching:
    """One attempt to match: maps nodes of the pattern to nodes of the graph."""

    def __init__(self, pattern: Graph) -> None:
        self.found: dict[Node, Any] = {}
        self.pattern = pattern

    def same(self, wanted: Any, got: Any) -> bool:
        """True if a node's argument matches the pattern's."""
        if isinstance(wanted, Node):
            if wanted in self.found:
                return self.found[wanted] is got
            if wanted.op == "placeholder":  # any value
                self.found[wanted] = got
                return True
            return isinstance(got, Node) and self.node(wanted, got)
        if isinstance(wanted, (tuple, list)):
            return (
                isinstance(got, (tuple, list))
                and len(wanted) == len(got)
                and all(map(self.same, wanted, got))
            )
        if isinstance(wanted, dict):
            return (
                isinstance(got, dict)
                and wanted.keys() == got.keys()
                and all(self.same(value, got[key]) for key, value in wanted.items())
            )
        if isinstance(wanted, slice):
            parts = ("start", "stop", "step")
            return isinstance(got, slice) and all(
                self.same(getattr(wanted, part), getattr(got, part)) for part in parts
            )
        return type(wanted) is type(got) and bool(wanted == got)

    def node(self, wanted: Node, got: Node) -> bool:
        if wanted.op != got.op or wanted.target != got.target:
            return False
        self.found[wanted] = got
        return self.same(wanted.args, got.args) and self.same(wanted.kwargs, got.kwargs)

    def is_closed(self, results: list[Node]) -> bool:
        """True if only the results are used outside of the matched part."""
        own = {got for wanted, got in self.found.items() if wanted.op != "placeholder"}
        inner = own - {self.found[result] for result in results if result.op != "placeholder"}
        return all(user in own for node in inner for user in node.users)


def _results(graph: Graph) -> list[Node]:
    nodes: list[Node] = []
    map_arg(graph.output_node().args[0], nodes.append)
    return nodes


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Replaces each part of gm's graph that matches `pattern` by `replacement`.

    pattern, replacement: functions with equally many parameters, which are traced, or graph
    modules. Matches do not overlap, and only their results may be used outside. Returns a Match for
    each replaced part. RuntimeError if the numbers of parameters or results differ.
    """
    wanted, _ = _graph_of(pattern)
    instead, home = _graph_of(replacement)
    parameters = list(wanted.find_nodes(op="placeholder"))
    given = list(instead.find_nodes(op="placeholder"))
    if len(parameters) != len(given):
        raise RuntimeError(
            f"replace_pattern: expected 'replacement' to have {len(parameters)} parameters as "
            f"'pattern' has, got {len(given)}"
        )
    results, outcome = _results(wanted), _results(instead)
    count = len(outcome)
    if len(results) != count:
        raise RuntimeError(
            f"replace_pattern: expected 'replacement' to have {len(results)} results as 'pattern' "
            f"has, got {count}"
        )
    graph = gm.graph
    matches: list[Match] = []
    taken: set[Node] = set()
    anchor = results[0] if results else None
    for node in list(graph.nodes):
        if anchor is None or anchor.op == "placeholder" or node._erased or node in taken:
            continue
        attempt = _Matching(wanted)
        if not attempt.node(anchor, node) or any(r not in attempt.found for r in results):
            continue
        part = {got for key, got in attempt.found.items() if key.op != "placeholder"}
        if part & taken or not attempt.is_closed(results):
            continue
        taken |= part
        matches.append(Match(anchor, attempt.found))
    place = {node: number for number, node in enumerate(graph.nodes)}
    changed: dict[Node, Any] = {}  # the replacement of each replaced node
    for match in matches:
        found = match.nodes_map
        values = {
            new: changed.get(found[old], found[old]) if isinstance(found[old], Node) else found[old]
            for old, new in zip(parameters, given)
        }
        last = max((found[result] for result in results), key=place.__getitem__)
        first = next((node for node in graph.nodes if node in last.users), last)
        with graph.inserting_before(first if len(results) == 1 else last):
            graph.graph_copy(instead, values)
        for old, new in zip(results, outcome):
            changed[found[old]] = values[new]
            found[old].replace_all_uses_with(values[new])
        part = {found[key] for key in found if key.op != "placeholder"}
        for old in sorted(part, key=place.__getitem__, reverse=True):
            graph.erase_node(old)
    if home is not None:
        for node in graph.nodes:
            if node.op in ("call_module", "get_attr"):
                _copy_missing(home, gm, node.target)
    gm.recompile()
    return matches


def _copy_missing(source: Module, module: Module, target: str) -> None:
    """Copies an attribute that the replacement uses and the module lacks."""
    value: Any = module
    for part in target.split("."):
        if not hasattr(value, part):
            return _copy_attr(source, module, target)
        value = getattr(value, part)
    return None
