"""lamella.classes: classes that libraries of operators registered, by namespace and name."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, Callable

from lamella import _C

if TYPE_CHECKING:
    from lamella._utils import LoadedLibrary

_PREFIX = "__torch__.torch.classes."


def _restored(namespace: str, name: str, state: Any) -> Any:
    return _C._operator(f"{namespace}::{name}", "__setstate__")(state)


def _method(name: str, operator: Any) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return operator(self, *args, **kwargs)

    method.__name__ = name
    return method


def _maker(operator: Any) -> Callable[..., Any]:
    def make(cls: type, *args: Any, **kwargs: Any) -> Any:
        return operator(*args, **kwargs)

    return make


def _reducer(namespace: str, name: str, state: Any) -> Callable[..., Any]:
    return lambda self: (_restored, (namespace, name, state(self)))


def _members(namespace: str, name: str) -> dict[str, Any]:
    qualified = f"{namespace}::{name}"
    methods = [overload for found, overload in _C._operator_names() if found == qualified]
    if not methods:
        raise AttributeError(f"lamella.classes: there is no class '{namespace}.{name}'")
    operators = {method: _C._operator(qualified, method) for method in methods}
    members: dict[str, Any] = {"__module__": f"lamella.classes.{namespace}", "__slots__": ()}
    for method, operator in operators.items():
        if method == "__init__":
            members["__new__"] = _maker(operator)
            members["__init__"] = lambda self, *args, **kwargs: None
        elif method == "__getstate__":
            members["__reduce__"] = _reducer(namespace, name, operator)
        elif method != "__setstate__":
            first = next(iter(operator._schema.arguments), None)
            of_self = first is not None and first.name == "self"
            members[method] = _method(method, operator) if of_self else staticmethod(operator)
    for method in methods:
        attribute, _, kind = method.rpartition("_")
        if attribute and kind == "getter":
            members[attribute] = property(members[method], members.get(f"{attribute}_setter"))
    return members


def python_class(qualified: str) -> type:
    """Makes the Python class for "__torch__.torch.classes.ns.Name". The extension caches it."""
    namespace, _, name = qualified[len(_PREFIX) :].rpartition(".")
    return type(name, (_C.ScriptObject,), _members(namespace, name))


class ClassNamespace:
    """The classes of one namespace."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        found: type = _C._script_class(f"{_PREFIX}{self._name}.{name}")
        setattr(self, name, found)
        return found

    def __repr__(self) -> str:
        return f"<lamella.classes.{self._name}>"


class Classes:
    """All namespaces of classes."""

    __name__ = "lamella.classes"

    def __getattr__(self, name: str) -> ClassNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        namespace = ClassNamespace(name)
        setattr(self, name, namespace)
        return namespace

    def load_library(self, path: str | PathLike[str]) -> LoadedLibrary:
        """Loads a shared library of operators and classes; see lamella.load_library()."""
        from lamella._utils import load_library

        return load_library(path)


classes = Classes()
