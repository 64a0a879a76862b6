"""GraphModule of torch.fx: a module whose forward is the generated code of a graph."""

from __future__ import annotations

import builtins
import copy
import linecache
from typing import Any

from lamella import Tensor
from lamella.compat.fx.graph import Graph, _is_function
from lamella.nn import Module, Parameter

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_count = 0


class _CodeOnlyModule(Module):
    """A module with the attributes of another one."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _home(module: Module, path: str) -> tuple[Any, str]:
    """The module that owns the last name of a path; missing modules on the way are created."""
    *parents, name = path.split(".")
    for parent in parents:
        if not isinstance(getattr(module, parent, None), Module):
            setattr(module, parent, Module())
        module = getattr(module, parent)
    return module, name


def _assign_attr(value: Any, module: Module, path: str) -> None:
    """Sets an attribute of a module by its path; tensors become buffers."""
    home, name = _home(module, path)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        if name not in home._buffers and hasattr(home, name):
            delattr(home, name)
        home.register_buffer(name, value)
    else:
        setattr(home, name, value)


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Copies the attribute at a path to another module; submodules that exist there are kept."""
    *parents, name = target.split(".")
    owner: Any = from_module
    for parent in parents:
        owner = getattr(owner, parent, None)
        if owner is None:
            return
    if not hasattr(owner, name):
        return
    home, _ = _home(to_module, target)
    if isinstance(getattr(home, name, None), Module) and not isinstance(
        getattr(owner, name), Tensor
    ):
        return
    persistent = name not in getattr(owner, "_non_persistent_buffers_set", ())
    _assign_attr(getattr(owner, name), to_module, target)
    if not persistent:
        home._non_persistent_buffers_set.add(name)


class GraphModule(Module):
    """A module whose forward is generated from a graph.

    root: a module, or a dictionary of values by path; the attributes that the graph uses are
    copied.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # forward belongs to the class, so each GraphModule has its own class.
        for kind in cls.__mro__:
            name = kind.__qualname__.rpartition(".")[2]
            if name != "GraphModuleImpl":
                return super().__new__(type("GraphModuleImpl", (kind,), {"__doc__": cls.__doc__}))
        raise AssertionError("GraphModule: expected a class")

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = root.training
        targets = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        for target in sorted(dict.fromkeys(targets), key=lambda path: path.count(".")):
            if isinstance(root, Module):
                _copy_attr(root, self, target)
            elif target not in root:
                raise RuntimeError(
                    f"GraphModule: expected 'root' to have the target {target} of the graph"
                )
            else:
                _assign_attr(root[target], self, target)
        self.meta: dict[str, Any] = dict(getattr(root, "meta", None) or {})
        if graph._tracer_cls is not None and "<locals>" in graph._tracer_cls.__qualname__:
            graph._tracer_cls = None  # pickle cannot find a local class
        self._tracer_cls, self._tracer_extras = graph._tracer_cls, graph._tracer_extras
        self.graph = graph

    # The global names of the code, including those of its functions.
    _names: dict[str, Any]
    _called: list[str]

    @property
    def graph(self) -> Graph:
        """The graph. Call recompile() after changing it."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"GraphModule: expected 'graph' to be a Graph, got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source code of forward."""
        return self._code

    def recompile(self) -> Any:
        """Regenerates forward from the graph; returns its code and names."""
        global _count
        import torch

        written = self._graph.python_code("self")
        self._code = written.src
        names = {**written.globals, "torch": torch}
        # Skips the leading calls of wrap(), which matter only if the code is traced as a module.
        body = self._code[self._code.index("\ndef ") :]
        _count += 1
        path = f"<eval_with_key>.{_count}"
        linecache.cache[path] = (len(body), None, body.splitlines(True), path)
        exec(compile(body, path, "exec"), names)
        own, run = self._graph._codegen, names["forward"]
        type(self)._names = names
        functions = (n.target for n in self._graph.nodes if n.op == "call_function")
        type(self)._called = [
            *(name for name, value in written.globals.items() if _is_function(name, value)),
            *{f.__name__ for f in functions if vars(builtins).get(f.__name__) is f is not getattr},
        ]
        plain = type(own).__name__ == "CodeGen"

        def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
            return own.process_outputs(run(module, *own.process_inputs(*args), **kwargs))

        setattr(type(self), "forward", run if plain else forward)  # noqa: B010
        return written

    def add_submodule(self, target: str, m: Module) -> bool:
        """Adds a module at a path; False if something else is in the way."""
        *parents, name = target.split(".")
        home: Any = self
        for parent in parents:
            if not hasattr(home, parent):
                home.add_module(parent, Module())
            home = getattr(home, parent)
            if not isinstance(home, Module):
                return False
        home.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Removes the module at a path; False if there is none."""
        parent, _, name = target.rpartition(".")
        try:
            home = self.get_submodule(parent)
        except AttributeError:
            return False
        if not isinstance(getattr(home, name, None), Module):
            return False
        delattr(home, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Removes the modules that no node calls or reads."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used |= {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
                if node.op == "call_module":
                    inner = self.get_submodule(node.target).named_modules()
                    used |= {f"{node.target}.{name}" for name, _ in inner if name}
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **_: Any) -> str:
        """The code as a class with forward; printed unless print_output is False."""
        body = "".join(f"    {line}\n" if line.strip() else "\n" for line in self.code.splitlines())
        text = f"class {type(self).__name__}(torch.nn.Module):\n{body}"
        if print_output:
            print(text)
        return text

    def __deepcopy__(self, memo: Any) -> GraphModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        own = {key: value for key, value in vars(self).items() if key != "_graph"}
        held = _CodeOnlyModule(copy.deepcopy(own, memo))
        GraphModule.__init__(made, held, copy.deepcopy(self._graph, memo), type(self).__name__)
        for key, value in vars(held).items():
            if key not in vars(made):
                vars(made)[key] = value
        return made

    def __copy__(self) -> GraphModule:
        return GraphModule(self, self.graph, type(self).__name__)

    def __reduce__(self) -> Any:
        own = {key: value for key, value in vars(self).items() if key not in ("_graph", "_code")}
        return _rebuild, (own, self._graph, type(self).__name__)

    def __str__(self) -> str:
        note = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__str__()}\n{self._code}\n{note}"


def _rebuild(own: dict[str, Any], graph: Graph, name: str) -> GraphModule:
    return GraphModule(_CodeOnlyModule(own), graph, name)
