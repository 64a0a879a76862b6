"""Symbolic tracing of torch.fx: runs a module or function with proxies."""

from __future__ import annotations

import builtins
import copy
import functools as functools
import inspect
import math
from collections.abc import Callable
from types import FunctionType as FunctionType
from types import ModuleType
from typing import Any

from lamella import Tensor
from lamella._C import ScriptObject as ScriptObject
from lamella.compat.fx import _wrapped
from lamella.compat.fx import wrap as wrap
from lamella.compat.fx._compatibility import compatibility as compatibility
from lamella.compat.fx.graph import Graph
from lamella.compat.fx.graph_module import GraphModule
from lamella.compat.fx.node import Argument, has_side_effect
from lamella.compat.fx.proxy import Proxy as Proxy
from lamella.compat.fx.proxy import TracerBase, _first
from lamella.nn import Module, Parameter, Sequential

# Tracers of other libraries patch and call these names.
_orig_module_call, _orig_module_getattr = Module.__call__, Module.__getattr__

_tracing = 0


def is_fx_tracing() -> bool:
    """True while a tracer is running."""
    return _tracing > 0


is_fx_symbolic_tracing = is_fx_tracing


def _noting(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        found = _first((*args, *kwargs.values()))
        if found is None:
            return function(*args, **kwargs)
        return found.tracer.create_proxy("call_function", function, args, kwargs)

    return called


class _Placeholder:
    def __repr__(self) -> str:
        return "PH"


# A placeholder in concrete_args: the argument stays symbolic.
PH = _Placeholder()


class ProxyableClassMeta(type):
    """The metaclass of classes whose construction from proxies, during tracing, becomes a call
    node."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found = _first((*args, *kwargs.values()))
        if found is None or _tracing == 0:
            return super().__call__(*args, **kwargs)
        return found.tracer.create_proxy("call_function", cls, args, kwargs)


def _assert_is_none(value: Any, text: str) -> None:
    if value is not None:
        raise AssertionError(text)


has_side_effect(_assert_is_none)


def _with_variables(function: Any, count: int) -> Any:
    """The function with *args and **kwargs turned into two plain parameters of these names."""
    code = function.__code__
    made = FunctionType(
        code.replace(
            co_argcount=count,
            co_posonlyargcount=0,
            co_kwonlyargcount=0,
            co_flags=code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
        ),
        function.__globals__,
        function.__name__,
        None,
        function.__closure__,
    )
    return functools.update_wrapper(made, function)


class _Patcher:
    """Patches values during tracing and restores them afterwards."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], Any]] = []

    def patch(self, home: dict[str, Any], name: str, value: Any, deduplicate: bool = True) -> None:
        """Sets a value in a namespace."""
        if name in home:
            self.undo.append(lambda old=home[name]: home.__setitem__(name, old))  # type: ignore[misc]
        else:
            self.undo.append(lambda: home.pop(name, None))
        home[name] = value

    def patch_method(self, home: Any, name: str, value: Any, deduplicate: bool = True) -> None:
        """Sets a method of a class."""
        if name in vars(home):
            self.undo.append(lambda old=vars(home)[name]: setattr(home, name, old))  # type: ignore[misc]
        else:
            self.undo.append(lambda: delattr(home, name))
        setattr(home, name, value)

    def __enter__(self) -> _Patcher:
        return self

    def __exit__(self, *_: Any) -> None:
        while self.undo:
            self.undo.pop()()


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Patches the functions that wrap() registered."""
    for home, name in reversed(_wrapped):
        original = home.get(name, getattr(builtins, name, None))
        if original is not None:
            patcher.patch(home, name, _noting(original))


def _autowrap_check(patcher: _Patcher, home: dict[str, Any], function_ids: set[int]) -> None:
    """Patches the functions of a namespace that are wrapped automatically."""
    for name, value in list(home.items()):
        if not name.startswith("__") and id(value) in function_ids:
            patcher.patch(home, name, _noting(value))


class Tracer(TracerBase):
    """Builds the graph of a module; calls of modules from torch.nn stay calls of modules."""

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._autowrap_search = list(autowrap_modules)
        functions = [
            function
            for module in autowrap_modules
            for name, function in vars(module).items()
            if not name.startswith("_") and callable(function) and not isinstance(function, type)
        ]
        self._autowrap_functions = (*functions, *autowrap_functions)  # held: ids must stay valid
        self._autowrap_function_ids = set(map(id, self._autowrap_functions))
        self.param_shapes_constant = param_shapes_constant
        self.root: Module = Module()
        self.module_stack: dict[str, Any] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """True for modules whose calls become nodes: those of torch.nn except Sequential."""
        package = m.__module__.split(".")[:2]
        return package in (["torch", "nn"], ["lamella", "nn"]) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The dotted name of a module in the root module. NameError if it is not part of it."""
        for name, module in self.root.named_modules(remove_duplicate=False):
            if module is mod:
                return name
        raise NameError(f"path_of_module: expected a module of the root, got {type(mod).__name__}")

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The result of a module call: a node, or the result of tracing its forward."""
        name = self.path_of_module(m)
        if not self.is_leaf_module(m, name):
            return forward(*args, **kwargs)
        return self.create_proxy("call_module", name, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """The value of a module's attribute: a node if it is a parameter of the root module."""
        buffers = self.proxy_buffer_attributes and isinstance(attr_val, Tensor)
        if not isinstance(attr_val, Parameter) and not buffers:
            return attr_val
        name = self._name_of(attr_val)
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
        return parameter_proxy_cache[name]

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = type(self).__new__(type(self))
        for name, value in vars(self).items():  # modules cannot be copied deeply
            kept = name in ("_autowrap_search", "_autowrap")
            vars(made)[name] = copy.copy(value) if kept else copy.deepcopy(value, memo)
        return made

    def _name_of(self, value: Tensor) -> str | None:
        for entries in (self.root.named_parameters(), self.root.named_buffers()):
            for name, entry in entries:
                if entry is value:
                    return name
        return None

    def _leaf(self, a: Any) -> Argument:
        if isinstance(a, Tensor):
            name = self._name_of(a)
            if name is None:
                name = next((n for n, v in vars(self.root).items() if v is a), None)
            if name is None:
                count = 0
                while hasattr(self.root, f"_tensor_constant{count}"):
                    count += 1
                name = f"_tensor_constant{count}"
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        if isinstance(type(a), ProxyableClassMeta):
            count = 0
            kept = f"_{type(a).__name__}_constant_"
            while hasattr(self.root, f"{kept}{count}"):
                count += 1
            setattr(self.root, f"{kept}{count}", a)
            return self.create_node("get_attr", f"{kept}{count}", (), {})
        return super()._leaf(a)

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """The function, and its arguments: placeholders, or the values in concrete_args."""
        fixed = concrete_args or {}
        function = inspect.unwrap(root_fn)
        kinds = function.__annotations__ if hasattr(function, "__annotations__") else {}
        parameters = list(inspect.signature(function).parameters.values())
        stars: dict[Any, str] = {
            inspect.Parameter.VAR_POSITIONAL: "*",
            inspect.Parameter.VAR_KEYWORD: "**",
        }
        with_stars = any(parameter.kind in stars for parameter in parameters)
        if with_stars:  # as in the order of a function's local variables
            parameters.sort(key=lambda parameter: parameter.kind in stars)
        args: list[Any] = []
        if is_module:
            if not parameters or parameters[0].kind in stars:
                raise RuntimeError(
                    f"trace: expected '{function.__name__}' to have a parameter of its own for the "
                    "module, got it as a part of *args"
                )
            args, parameters = [self.root], parameters[1:]
        named: dict[str, Any] = {}
        for parameter in parameters:
            name = parameter.name
            default = () if parameter.default is parameter.empty else (parameter.default,)
            if name in fixed and fixed[name] is not PH:
                value = self._fixed(name, fixed[name], len(args) - is_module, default)
            else:
                target = stars.get(parameter.kind, "") + name
                kind = kinds.get(name)
                kind = None if isinstance(kind, str) else kind
                value = self.create_proxy("placeholder", target, default, {}, type_expr=kind)
            if parameter.kind is parameter.KEYWORD_ONLY and not with_stars:
                named[name] = value
            else:
                args.append(value)
        if with_stars:
            return _with_variables(function, len(args)), args
        if named:
            return lambda *given: root_fn(*given, **named), args
        return root_fn, args

    def _fixed(self, name: str, value: Any, place: int, default: tuple[Any, ...]) -> Any:
        """The value. The graph keeps the argument, and checks that it equals the value."""
        import torch

        given = self.create_proxy("placeholder", f"{name}_{place}", default, {})
        text = f"{name} has been specialized to have value {value} but got another value"
        if isinstance(value, (bool, int, float)):
            torch._assert(given == value, text)
        elif value is None:
            self.create_proxy("call_function", _assert_is_none, (given, text), {})
        return value

    def trace(
        self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
    ) -> Graph:
        """The graph of a module's forward or of a function.

        concrete_args: values for parameters, by name.
        """
        global _tracing
        if isinstance(root, Module):
            name = getattr(self, "traced_func_name", "forward")
            if not hasattr(type(root), name):
                raise AssertionError(
                    f"trace: expected {type(root).__name__} to have 'traced_func_name', got {name}"
                )
            self.root, function = root, getattr(type(root), name)
        else:
            self.root, function = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        function, args = self.create_args_for_root(
            function, isinstance(root, Module), concrete_args
        )
        cache: dict[str, Any] = {}
        find, call = Module.__getattribute__, _orig_module_call

        def look_up(module: Module, attribute: str) -> Any:
            value = find(module, attribute)
            if isinstance(value, Tensor) and not attribute.startswith("_tensor_constant"):
                return self.getattr(attribute, value, cache)
            return value

        def call_module(module: Module, *args: Any, **kwargs: Any) -> Any:
            if _first((*args, *kwargs.values())) is None and not self._has(module):
                return call(module, *args, **kwargs)

            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(module, *args, **kwargs)

            home = getattr(module.forward, "__globals__", {})
            _autowrap_check(patcher, home, self._autowrap_function_ids)
            return self.call_module(module, forward, args, kwargs)

        _tracing += 1
        with _Patcher() as patcher:
            patcher.patch_method(Module, "__getattribute__", look_up)
            patcher.patch_method(Module, "__call__", call_module)
            _patch_wrapped_functions(patcher)
            for traced in self.root.modules():
                if isinstance(traced, GraphModule):  # its code is traced like a module's
                    for name in traced._called:
                        called = {**vars(builtins), **traced._names}[name]
                        patcher.patch(traced._names, name, _noting(called))
            homes = [vars(module) for module in self._autowrap_search]
            for home in (*homes, getattr(inspect.unwrap(function), "__globals__", {})):
                _autowrap_check(patcher, home, self._autowrap_function_ids)
            try:
                result = function(*args)
                kind = getattr(function, "__annotations__", {}).get("return")
                self.create_node(
                    "output",
                    "output",
                    (self.create_arg(result),),
                    {},
                    type_expr=None if isinstance(kind, str) else kind,
                )
            finally:
                _tracing -= 1
        return self.graph

    def _has(self, module: Module) -> bool:
        return any(module is other for other in self.root.modules())


def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """Traces a module or function into a GraphModule."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
