"""Nodes of a torch.fx graph: each is one call, with nodes and constants as arguments."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Iterator
from typing import Any

from lamella._ops import ops

Target = Any  # a callable, or the name of a method, module or attribute
Argument = Any  # a node, a constant, or a tuple, list, dict or slice of them

OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root")
_impure: set[Any] = set()


def has_side_effect(fn: Any) -> Any:
    """Protects calls of a function from dead-code elimination; returns the function."""
    _impure.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Any], Any]) -> Any:
    """`a` with fn applied to each leaf of its tuples, lists, dictionaries and slices."""
    if isinstance(a, tuple):
        entries = [map_aggregate(entry, fn) for entry in a]
        return type(a)(*entries) if hasattr(a, "_fields") else tuple(entries)
    if isinstance(a, list):
        return [map_aggregate(entry, fn) for entry in a]
    if isinstance(a, dict):
        return {key: map_aggregate(entry, fn) for key, entry in a.items()}
    if isinstance(a, slice):
        return slice(*(map_aggregate(entry, fn) for entry in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Any]) -> Any:
    """`a` with each node replaced by fn(node)."""
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


def qualified_name(function: Any) -> str:
    """A function's dotted name: torch's for Lamella's functions, "_operator.add" for operators."""
    if getattr(builtins, getattr(function, "__name__", ""), None) is function:
        return f"builtins.{function.__name__}"
    import torch

    name = function.__name__
    if isinstance(function, (type(ops.aten.add), type(ops.aten.add.Tensor))):
        return f"torch.ops.{function}"
    for place in ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special"):
        home = torch
        for part in place.split(".")[1:]:
            home = getattr(home, part)
        if getattr(home, name, None) is function:
            return f"{place}.{name}"
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"{function.__objclass__.__module__}.{function.__qualname__}"
    module = getattr(function, "__module__", None) or "torch"
    module = module.replace("lamella.compat", "torch", 1).replace("lamella", "torch", 1)
    return f"{module}.{name}"


class Node:
    """One call: `op` is one of OPS, `target` the callee, `args` and `kwargs` the arguments."""

    def __init__(
        self,
        graph: Any,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in OPS:
            raise AssertionError(f"Node: expected 'op' to be one of {', '.join(OPS)}, got {op}")
        if callable(target) != (op == "call_function"):
            wanted = "a callable" if op == "call_function" else "a name"
            raise ValueError(
                f"Node: expected 'target' of {op} to be {wanted}, got {type(target).__name__}"
            )
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type, self.meta = return_type, {}  # type: ignore[var-annotated]
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._set(args, kwargs)

    def _set(self, args: Any, kwargs: Any) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def uses(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args = map_arg(tuple(args), uses)
        self._kwargs = map_arg(dict(kwargs), uses)

    args = property(lambda self: self._args, lambda self, args: self._set(args, self._kwargs))
    kwargs = property(lambda self: self._kwargs, lambda self, kw: self._set(self._args, kw))
    next = property(lambda self: self._next)
    prev = property(lambda self: self._prev)
    all_input_nodes = property(lambda self: list(self._input_nodes))
    stack_trace = property(lambda self: self.meta.get("stack_trace"))

    def __repr__(self) -> str:
        return self.name

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"Node: expected no iteration over '{self.name}'")

    def prepend(self, x: Node) -> None:
        """Moves `x`, a node of the same graph, directly before this one."""
        if x is self:
            return
        x._unlink()
        x._prev, x._next = self._prev, self
        self._prev._next = self._prev = x

    def append(self, x: Node) -> None:
        """Moves `x`, a node of the same graph, directly after this one."""
        if x is not self:
            self._next.prepend(x) if self._next is not x else None

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replaces the positional argument `idx`."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Inserts a positional argument before `idx`."""
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replaces or adds the argument `key`."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replaces `old_input` in the arguments by `new_input`."""
        swap = lambda node: new_input if node is old_input else node  # noqa: E731
        self._set(map_arg(self.args, swap), map_arg(self.kwargs, swap))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Replaces this node by `replace_with` in its users for which delete_user_cb(user) is true;
        returns these users."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        users = [user for user in self.users if delete_user_cb(user)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    def is_impure(self, impure_random: bool = True) -> bool:
        """True if the node has side effects."""
        if self.op == "call_function":
            return self.target in _impure
        return self.op in ("placeholder", "output")

    def format_node(self, *_: Any, **__: Any) -> str:
        """The node as one line of text."""
        if self.op == "output":
            said = f" -> {type_name(self.type)}" if self.type else ""
            return f"return{said} {self.args[0]}"
        said = f"{type_name(self.type)} " if self.type else ""
        head = f"%{self.name} : {said}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            return f"{head}[target={self.target}]" + (
                f"(default={self.args[0]})" if self.args else ""
            )
        if self.op == "get_attr":
            return f"{head}[target={self.target}]"
        target = self.target
        if not isinstance(target, str):
            target = qualified_name(target).replace("_operator.", "operator.")
        return f"{head}[target={target}](args = {_text(self.args)}, kwargs = {_text(self.kwargs)})"


def type_name(kind: Any) -> str:
    """The name of a type in an annotation."""
    if not isinstance(kind, type):
        return str(kind)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__.replace('lamella', 'torch', 1)}.{kind.__qualname__}"


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        inner = ", ".join(map(_text, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_text(entry)}" for key, entry in value.items()) + "}"
    return f"%{value.name}" if isinstance(value, Node) else str(value)
