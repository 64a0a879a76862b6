"""torch.fx.passes.reinplace: reinplace(), which makes operators of a graph write in place."""

from __future__ import annotations

import operator
from typing import Any

import lamella
from lamella import Tensor
from lamella.compat.fx.graph_module import GraphModule
from lamella.compat.fx.interpreter import Interpreter
from lamella.compat.fx.node import Node
from lamella.utils._pytree import tree_leaves

# What writes a part of a tensor in a copy of it, and the view that is the part.
_VIEW_OF = {
    getattr(lamella.ops.aten, f"{name}_scatter").default: getattr(
        getattr(lamella.ops.aten, name), overload
    )
    for name, overload in (
        ("diagonal", "default"),
        ("select", "int"),
        ("slice", "Tensor"),
        ("as_strided", "default"),
    )
}


class _Results(Interpreter):
    """Runs a graph and keeps all results, so that no two of them have the same memory by chance."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.of: dict[Node, Any] = {}

    def run_node(self, n: Node) -> Any:
        """Runs one node."""
        self.of[n] = super().run_node(n)
        return self.of[n]


def _places(value: Any) -> set[int]:
    return {t.untyped_storage().data_ptr() for t in tree_leaves(value) if isinstance(t, Tensor)}


def _layout(value: Tensor) -> Any:
    return value.shape, value.stride(), value.storage_offset()


def _in_place(target: Any) -> Any:
    """The operator that writes the result of `target` into its first argument, or None."""
    schema = target._schema
    if any(result.alias_info is not None for result in schema.returns):
        return None
    space, _, name = schema.name.partition("::")
    packet = getattr(getattr(lamella.ops, space), f"{name}_", None)
    kinds = [str(argument.type) for argument in schema.arguments]
    for overload in packet.overloads() if packet is not None else ():
        found = getattr(packet, overload)
        if [str(argument.type) for argument in found._schema.arguments] == kinds:
            return found
    return None


def _holds(self: Any, made: Any) -> bool:
    """Whether a tensor has memory of the result's size and dtype, each element once."""
    if not isinstance(made, Tensor):
        return True
    overlaps = any(size > 1 and step == 0 for size, step in zip(self.shape, self.stride()))
    return self.numel() == made.numel() and self.dtype == made.dtype and not overlaps


class _Pass:
    def __init__(self, gm: GraphModule, inputs: tuple[Any, ...]) -> None:
        runner = _Results(gm)
        with lamella.no_grad():
            runner.run(*(x.clone() if isinstance(x, Tensor) else x for x in inputs))
        self.graph, self.made = gm.graph, runner.of
        self.order = {node: i for i, node in enumerate(gm.graph.nodes)}
        self.users: dict[int, set[Node]] = {}  # by memory
        for node, value in self.made.items():
            if node.op != "output":
                for place in _places(value):
                    self.users.setdefault(place, set()).add(node)
        self.given = set().union(
            *(_places(self.made[node]) for node in gm.graph.nodes if node.op == "placeholder")
        )
        self.needless: set[Node] = set()

    def join(self, one: Node, other: Node) -> None:
        """Notes that the results of two nodes share memory now."""
        places = _places(self.made[one]) | _places(self.made[other])
        together = set().union(*(self.users[place] for place in places))
        self.users.update(dict.fromkeys(places, together))

    def read_later(self, aliases: set[Node], at: int) -> set[Node]:
        return {
            user
            for alias in aliases
            for user in alias.users
            if self.order.get(user, -1) > at and (user not in aliases or user.op == "output")
        }

    def restores(self, scatter: Node, aliases: set[Node]) -> bool:
        """Whether a scatter writes a view among `aliases` into the tensor that it is a view of."""
        view = _VIEW_OF.get(scatter.target)
        if view is None:
            return False
        base: Any = self.made[scatter.args[0]]
        part = _layout(view(base, *scatter.args[2:], **scatter.kwargs))
        for alias in aliases:
            source: Any = alias.args[0] if alias.args else None
            if alias.target is operator.getitem:
                source = source.args[0]
            if not isinstance(source, Node) or not isinstance(self.made[alias], Tensor):
                continue
            if source in aliases:
                if (_layout(self.made[source]), _layout(self.made[alias])) == (_layout(base), part):
                    return True
        return False

    def change(self, node: Node) -> None:
        """Makes a node write its first argument, if that is as good."""
        schema = node.target._schema
        if not schema.arguments or str(schema.arguments[0].type) != "Tensor":
            return
        first: Any = node.args[0]
        resizes = schema.name == "aten::resize"
        if not resizes and not _holds(self.made[first], self.made[node]):
            return
        places = _places(self.made[first])
        if places & self.given or sum(each is first for each in node.args) > 1:
            return
        aliases = set().union(*(self.users[place] for place in places))
        later = self.read_later(aliases, self.order[node])
        restored = {user for user in later if self.restores(user, aliases)}
        if later != restored:
            return
        if node.target in _VIEW_OF and node not in self.needless:
            with self.graph.inserting_before(node):
                view = _VIEW_OF[node.target]
                part = self.graph.call_function(view, (first, *node.args[2:]), node.kwargs)
                self.graph.call_function(lamella.ops.aten.copy_.default, (part, node.args[1]))
            self.needless.add(node)
        else:
            found = _in_place(node.target)
            if found is None:
                return
            node.target = found
        self.join(first, node)
        self.needless |= restored
        for old in (node, *restored):
            new: Any = old.args[0]
            after = [user for user in old.users if self.order.get(user, -1) > self.order[node]]
            for user in after:
                user.replace_input_with(old, new)
                if _places(self.made[user]) == _places(self.made[old]):
                    self.join(new, user)


def reinplace(gm: GraphModule, *sample_args: Any) -> GraphModule:
    """Makes operators of a graph without writes write their first argument, where neither it nor a
    view of it is an input or is read afterwards, and removes the scatters that this makes
    needless. The graph runs once with copies of sample_args, to see which results share memory."""
    work = _Pass(gm, sample_args)
    for node in list(gm.graph.nodes):
        if node.op == "call_function" and hasattr(node.target, "_schema"):
            work.change(node)
    for node in sorted(work.needless, key=lambda node: -work.order[node]):
        gm.graph.erase_node(node)
    gm.recompile()
    return gm
