"""Graphs of torch.fx: a list of nodes, and the code of the Python function that they form."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lamella.compat.fx.node import Argument, Node, Target, map_arg, qualified_name, type_name

# Calls of functions of the module operator are written as Python expressions.
_BINARY = {
    **dict(add="+", sub="-", mul="*", truediv="/", floordiv="//", mod="%", matmul="@", pow="**"),
    **dict(and_="&", or_="|", xor="^", lshift="<<", rshift=">>"),
    **dict(eq="==", ne="!=", lt="<", le="<=", gt=">", ge=">="),
}
_FORMATS = {name: f"{{}} {sign} {{}}" for name, sign in _BINARY.items()}
_FORMATS |= {"getitem": "{}[{}]", "pos": "+{}", "neg": "-{}", "invert": "~{}"}
# Statements that update their first operand in place.
_WRITES = {f"i{name.strip('_')}": f"{{}} {sign}= {{}}" for name, sign in list(_BINARY.items())[:12]}
_WRITES["setitem"] = "{}[{}] = {}"


class PythonCode(NamedTuple):
    """The code of a function, and the global names that it uses."""

    src: str
    globals: dict[str, Any]


class CodeGen:
    """Generates the code of a graph; subclasses may change arguments and results."""

    def process_inputs(self, *args: Any) -> Any:
        """Converts the arguments of a call to the values of the placeholders."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Converts the output node's value to the result of the graph module."""
        return outputs


class _Names:
    """Allocates valid and unique Python names."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.counts: dict[str, int] = {}  # the last suffix used for each prefix

    def create(self, candidate: str) -> str:
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
        base, _, number = candidate.rpartition("_")
        if base and number.isdigit():
            count = int(number)
        else:
            base, count = candidate, self.counts.get(candidate, 0)
        name = candidate
        while name in self.taken or _is_reserved(name):
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        self.counts[base] = count
        return name


def _is_reserved(name: str) -> bool:
    """True if the name has a meaning in generated code."""
    own = ("inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree")
    return keyword.iskeyword(name) or hasattr(builtins, name) or name in own


def _candidate(target: Target) -> str:
    name = target.__name__ if callable(target) else str(target)
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    return re.sub("(?<=[a-z])([A-Z])", r"_\1", name).lower()


class _Nodes:
    """The nodes in order; nodes that are erased during the iteration are skipped."""

    def __init__(self, root: Node, backwards: bool = False) -> None:
        self.root, self.backwards = root, backwards

    def __iter__(self) -> Iterator[Node]:
        step = "_prev" if self.backwards else "_next"
        node = getattr(self.root, step)
        while node is not self.root:
            if not node._erased:
                yield node
            node = getattr(node, step)

    def __reversed__(self) -> _Nodes:
        return _Nodes(self.root, not self.backwards)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _InsertPoint:
    """Sets where a graph inserts nodes; leaving the context restores the former place."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        self.graph._insert = self.before


class Graph:
    """A list of nodes in topological order: arguments of a node come before it."""

    def __init__(
        self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._names = _Names()
        self._codegen = CodeGen()
        self.owning_module, self._tracer_cls, self._tracer_extras = (
            owning_module,
            tracer_cls,
            tracer_extras,
        )

    nodes = property(lambda self: _Nodes(self._root))

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a node at the insertion point, which is the end by default."""
        name = self._names.create(name if name is not None else _candidate(target))
        node = Node(self, name, op, target, args or (), kwargs or {}, type_expr)
        self._insert(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Adds a parameter of the function."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Adds a read of an attribute of the owning module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """Adds a call of a module by its dotted name."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """Adds a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: Any = None,
        kwargs: Any = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Adds a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Adds the node that returns the result."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def output_node(self) -> Node:
        """The node that returns the result."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    def find_nodes(self, *, op: str, target: Target = None, sort: bool = True) -> list[Node]:
        """The nodes with this op, and with this target if one is given."""
        found = [node for node in self.nodes if node.op == op]
        return found if target is None else [node for node in found if node.target == target]

    def node_copy(
        self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x
    ) -> Node:
        """Copies a node of another graph; arg_transform(node) maps its arguments to this graph."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Copies the nodes of `g` except its output node; returns that node's mapped argument."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        made._codegen = self._codegen
        copies: dict[Node, Node] = {}
        for node in self.nodes:
            copies[node] = made.node_copy(node, lambda n: copies[n])
        return made

    def __reduce__(self) -> Any:
        order = list(self.nodes)
        place = {node: _Place(i) for i, node in enumerate(order)}
        rows = [
            (n.op, n.target, *map_arg((n.args, n.kwargs), place.__getitem__), n.name, n.type)
            for n in order
        ]
        return _of_rows, (rows,)

    def erase_node(self, to_erase: Node) -> None:
        """Removes a node. RuntimeError if it has users."""
        if to_erase.users:
            raise RuntimeError(
                f"erase_node: expected '{to_erase}' to have no users, got "
                f"{', '.join(map(str, to_erase.users))}"
            )
        if not to_erase._erased:
            to_erase._unlink()
            to_erase._set((), {})
            to_erase._erased = True

    def inserting_before(self, n: Node | None = None) -> Any:
        """Inserts new nodes before `n`, or at the beginning; usable as a context."""
        return _InsertPoint(self, self._root.append if n is None else n.prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """Inserts new nodes directly after `n`, or at the end; usable as a context."""
        return _InsertPoint(self, self._root.prepend if n is None else n.append)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Removes nodes without users; returns whether there were any."""
        before = len(self.nodes)
        for node in reversed(self.nodes):
            impure = is_impure_node(node) if is_impure_node else self._impure(node)
            if not node.users and not impure:
                self.erase_node(node)
        return len(self.nodes) < before

    def _impure(self, node: Node) -> bool:
        if node.op == "call_module" and self.owning_module is not None:
            return getattr(self.owning_module.get_submodule(node.target), "_is_impure", False)
        return node.is_impure()

    def lint(self) -> None:
        """RuntimeError if a node uses a later one, or if a name occurs twice."""
        seen: dict[Node, None] = {}
        names: set[str] = set()
        for node in self.nodes:
            for argument in node.all_input_nodes:
                if argument.graph is not self:
                    raise RuntimeError(
                        f"lint: expected the arguments of '{node}' to be nodes of this graph, got "
                        f"'{argument}' of another one"
                    )
                if argument not in seen:
                    raise RuntimeError(
                        f"lint: expected '{argument}' to come before '{node}', which uses it"
                    )
            if node.name in names:
                raise RuntimeError(f"lint: expected each name once, got '{node.name}' again")
            names.add(node.name)
            seen[node] = None
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                value = self.owning_module
                for part in node.target.split("."):
                    if not hasattr(value, part):
                        raise RuntimeError(
                            f"lint: expected the root to have '{node.target}', the target of "
                            f"'{node}', got {type(value).__name__} without '{part}'"
                        )
                    value = getattr(value, part)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Replaces the code generator."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """Converts the arguments of a call to the values of the placeholders."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Converts the output node's value to the result of a call."""
        return self._codegen.process_outputs(out)

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    def print_tabular(self) -> None:
        """Prints a row for each node."""
        head = ("opcode", "name", "target", "args", "kwargs")
        rows = [head, *((n.op, n.name, n.target, n.args, n.kwargs) for n in self.nodes)]
        texts = [[str(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*texts)]
        texts.insert(1, ["-" * width for width in widths])
        for row in texts:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())

    def python_code(self, root_module: str = "self", **_: Any) -> PythonCode:
        """The generated code of the function, a method if `root_module` is "self"."""
        names: dict[str, Any] = {}
        # Values are released after their last use.
        last: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(self.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    last.setdefault(node, []).append(used)
        parameters, body, result = ["self"], [], ""
        for node in self.nodes:
            gone = [*last.get(node, []), *([] if node.users or node.op == "output" else [node])]
            if node.op == "placeholder":
                plain = node.target.lstrip("*")
                said = f" : {_of_type(node.type, names)}" if node.type else ""
                default = f" = {_written(node.args[0], names)}" if node.args else ""
                parameters.append(f"{node.target}{said}{default}")
                if plain != node.name:
                    body.append(f"{node.name} = {plain}")
                continue
            if node.op == "output":
                said = f" -> {_of_type(node.type, names)}" if node.type else ""
                body.append(f"return {_written(node.args[0], names)}")
                result = said
                continue
            if not _is_operator(node, _WRITES):
                line = f"{node.name} = {_call(node, root_module, names)}"
            else:
                args = [_written(argument, names) for argument in node.args]
                line = f"{_WRITES[node.target.__name__].format(*args)};  {node.name} = {args[0]}"
            if gone:
                line += ";  " + " = ".join([*(n.name for n in gone), "None"])
            body.append(line)
        lines = "".join(f"    {line}\n" for line in body or ["pass"])
        head = "\n".join(
            f'torch.fx._symbolic_trace.wrap("{name}")'
            for name, value in names.items()
            if _is_function(name, value)
        )
        return PythonCode(
            f"\n{head}\n\ndef forward({', '.join(parameters)}){result}:\n{lines}    ", names
        )


def _is_function(name: str, value: Any) -> bool:
    return callable(value) and not isinstance(value, type) and name not in ("inf", "nan")


class _Place(int):
    """In pickles: a reference to a node, as its position in the graph."""


def _of_rows(rows: list[Any]) -> Graph:
    from lamella.compat.fx.node import map_aggregate

    made, nodes = Graph(), []  # type: ignore[var-annotated]
    find = lambda leaf: nodes[leaf] if isinstance(leaf, _Place) else leaf  # noqa: E731
    for op, target, args, kwargs, name, kind in rows:
        args, kwargs = map_aggregate(args, find), map_aggregate(kwargs, find)
        nodes.append(made.create_node(op, target, args, kwargs, name, kind))
    return made


def _global(value: Any, names: dict[str, Any]) -> str:
    """The expression for a function or type in the code; its value is added to `names`."""
    path = qualified_name(value)
    if path.startswith("builtins."):
        return path.removeprefix("builtins.")
    if path.startswith("torch."):
        import sys

        import torch

        found: Any = torch
        for part in path.split(".")[1:]:
            found = getattr(found, part, None)
        if found is value:
            names["torch"] = sys.modules["torch"]
            return path
    name = path.replace(".", "_").replace("<", "_").replace(">", "_")
    while names.get(name, value) is not value:
        name += "_1"
    names[name] = value
    return name


def _of_type(kind: Any, names: dict[str, Any]) -> str:
    if not isinstance(kind, type):
        return f'"{kind}"'
    name = type_name(kind)
    if kind.__module__ != "builtins":
        import torch

        if name.startswith("torch."):
            names["torch"] = torch
            return name
        names[name.replace(".", "_")] = kind
        return name.replace(".", "_")
    return name


def _written(value: Any, names: dict[str, Any]) -> str:
    """An argument as a Python expression."""
    if isinstance(value, Node):
        return value.name
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{_global(type(value), names)}({', '.join(_written(v, names) for v in value)})"
    if isinstance(value, tuple):
        inner = ", ".join(_written(v, names) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return f"[{', '.join(_written(v, names) for v in value)}]"
    if isinstance(value, dict):
        pairs = (f"{key!r}: {_written(entry, names)}" for key, entry in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, slice):
        parts = (_written(part, names) for part in (value.start, value.stop, value.step))
        return f"slice({', '.join(parts)})"
    if value is None or value is ... or isinstance(value, (bool, int, str, bytes, complex)):
        text = "Ellipsis" if value is ... else repr(value)
        return text if type(value).__module__ == "builtins" else _kept(value, names)
    if isinstance(value, float):
        if value in (float("inf"), float("-inf")) or value != value:
            names.update(inf=float("inf"), nan=float("nan"))
        return repr(value)
    if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
        return _global(value, names)
    return _kept(value, names)


def _kept(value: Any, names: dict[str, Any]) -> str:
    """A name for an object without a Python expression; torch.float32 and the like keep theirs."""
    text = repr(value)
    if type(value).__name__ == "device" and text.startswith("device("):
        names["device"] = type(value)
        return text
    if re.fullmatch(r"torch(\.\w+)+", text):
        import torch

        names["torch"] = torch
        return text
    name = f"_{type(value).__name__}_{len(names)}"
    names[name] = value
    return name


def _is_operator(node: Node, formats: dict[str, str]) -> bool:
    home, name = (getattr(node.target, key, "") for key in ("__module__", "__name__"))
    return (
        node.op == "call_function" and home == "_operator" and name in formats and not node.kwargs
    )


def _call(node: Node, root: str, names: dict[str, Any]) -> str:
    """The Python expression or statement of a node."""
    args = [_written(argument, names) for argument in node.args]
    pairs = [f"{key} = {_written(value, names)}" for key, value in node.kwargs.items()]
    if node.op == "get_attr":
        return _attribute(root, node.target)
    if node.op == "call_module":
        return f"{_attribute(root, node.target)}({', '.join(args + pairs)})"
    if node.op == "call_method":
        first = args[0] if isinstance(node.args[0], Node) else f"({args[0]})"
        return f"{first}.{node.target}({', '.join(args[1:] + pairs)})"
    target = node.target
    if _is_operator(node, _FORMATS):
        return _FORMATS[target.__name__].format(*args)
    if target is getattr and len(args) == 2 and str(node.args[1]).isidentifier():
        return f"{args[0]}.{node.args[1]}"
    return f"{_global(target, names)}({', '.join(args + pairs)})"


def _attribute(root: str, path: str) -> str:
    text = root
    for part in path.split("."):
        text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
    return text
