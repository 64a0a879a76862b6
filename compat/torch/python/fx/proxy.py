"""Proxies of torch.fx: stand-ins for values that record operations on them in a graph."""

from __future__ import annotations

import dataclasses
import dis
import functools
import operator
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from lamella import Tensor
from lamella.compat.fx.graph import Graph
from lamella.compat.fx.node import Argument, Node, Target, has_side_effect, map_aggregate


class TraceError(ValueError):
    """The error for code that cannot be traced."""


class TracerBase:
    """The base of tracers: creates nodes and proxies."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a node to the tracer's graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """A proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Adds a node for a call with proxies; returns its proxy."""
        given, named = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, given, named, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """Converts a value with proxies to a node's argument. NotImplementedError for other
        objects."""
        return map_aggregate(a, self._leaf)

    def _leaf(self, a: Any) -> Argument:
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, range):
            return range(*map(self.create_arg, (a.start, a.stop, a.step)))
        if a is None or a is ... or isinstance(a, (str, int, float, bool, complex, Node)):
            return a
        if callable(a) or type(a).__module__.split(".")[0] in ("torch", "lamella", "enum"):
            return a
        if hasattr(type(a), "__members__"):
            return a
        if dataclasses.is_dataclass(a):
            named = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), named)
        raise NotImplementedError(
            f"create_arg: expected what a graph can hold, got {type(a).__name__}"
        )

    def to_bool(self, obj: Proxy) -> bool:
        """Called if a branch depends on a proxy: TraceError."""
        raise TraceError(
            f"'{obj.node}': expected no decision by a value, which a trace does not have"
        )

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called if a proxy is iterated over: TraceError, except for unpacking into names."""
        count = _unpacked(sys._getframe(2))
        if count is None:
            raise TraceError(
                f"'{obj.node}': expected no loop over a value, whose length a trace does not know"
            )
        return (operator.getitem(obj, i) for i in range(count))

    def keys(self, obj: Proxy) -> Any:
        """Called for obj.keys(), and for unpacking a proxy into keyword arguments."""
        return Attribute(obj, "keys")()


def _unpacked(frame: FrameType) -> int | None:
    """The number of names into which the frame's current instruction unpacks a value."""
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
            return int(instruction.arg or 0)
    return None


class GraphAppendingTracer(TracerBase):
    """A tracer that appends to an existing graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """Stands for a node's value; operations on it become nodes of the graph."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.node = node
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        if name in ("node", "tracer", "__deepcopy__", "__fx_create_arg__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            f"'{self.node}': expected no len() of it, unless torch.fx.wrap('len') makes it a node"
        )

    def __hash__(self) -> int:
        return id(self)

    def keys(self) -> Any:
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        tracers: list[TracerBase] = []
        map_aggregate(
            (args, kwargs), lambda v: tracers.append(v.tracer) if isinstance(v, Proxy) else None
        )
        name = getattr(orig_method, "__name__", "")
        method = not hasattr(orig_method, "__module__") or vars(Tensor).get(name) is orig_method
        kind, target = ("call_method", name) if method else ("call_function", orig_method)
        return tracers[0].create_proxy(kind, target, args, kwargs)


class Attribute(Proxy):
    """A proxy's attribute: it becomes a node when it is used as a value, but not when it is
    called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            args = (self.root, self.attr)
            self._node = self.tracer.create_proxy("call_function", getattr, args, {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


_REFLECTED = "add floordiv mul mod sub truediv lshift rshift and_ or_ xor getitem matmul pow"
_MAGIC = "eq ne lt gt le ge pos neg invert"


def _magic(name: str, reflected: bool) -> Callable[..., Any]:
    function = getattr(operator, name)

    def member(self: Proxy, *args: Any) -> Any:
        given = (args[0], self) if reflected else (self, *args)
        return self.tracer.create_proxy("call_function", function, given, {})

    return member


for _name in f"{_REFLECTED} {_MAGIC}".split():
    setattr(Proxy, f"__{_name.strip('_')}__", _magic(_name, False))
for _name in _REFLECTED.split():
    setattr(Proxy, f"__r{_name.strip('_')}__", _magic(_name, True))


def asking(function: Callable[..., Any]) -> Callable[..., Any]:
    """A wrapper of the function: a call with a proxy becomes a node."""

    @functools.wraps(function)
    def asked(*args: Any, **kwargs: Any) -> Any:
        found = _first((*args, *kwargs.values()))
        if found is None:
            return function(*args, **kwargs)
        return found.tracer.create_proxy("call_function", asked, args, kwargs)

    return asked


def _first(values: Any) -> Proxy | None:
    for value in values:
        if isinstance(value, Proxy):
            return value
        if isinstance(value, (tuple, list)):
            found = _first(value)
            if found is not None:
                return found
    return None


# Functions of torch that are implemented in Python and take tensors.
_PYTHON = (
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cdist "
    "chain_matmul einsum meshgrid nonzero norm numel tensordot unique "
    "unique_consecutive vander _assert"
)


def ask_functions_in_python() -> None:
    """Makes functions that are implemented in Python accept proxies: they read shapes, which
    proxies lack, before they call an operator."""
    import torch

    functional = torch.nn.functional
    names = [(torch, name) for name in _PYTHON.split()]
    names += [(functional, name) for name in dir(functional) if not name.startswith("_")]
    for module, name in names:
        function = getattr(module, name)
        if hasattr(function, "__code__") and not hasattr(function, "__wrapped__"):
            asks = asking(function)
            asks.__module__ = "torch" if module is torch else "torch.nn.functional"
            setattr(module, name, asks)
    has_side_effect(torch._assert)


ask_functions_in_python()
