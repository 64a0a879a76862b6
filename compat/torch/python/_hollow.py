"""Stand-ins for modules of PyTorch that Lamella lacks but that programs import.

Libraries ask whether an object is a DTensor or a GraphModule, and import strategies that they may
never use. Their names can be imported: the classes have no instances, and calling one of the
names raises an error that says what Lamella offers instead.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from lamella.compat._names import HOLLOW, PART_OF


class _Config:
    """A configuration object: it stores its arguments, as attributes if they have names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.__dict__.update(kwargs)


def _says(tail: str, name: str) -> str:
    from lamella.compat._absent import PAGE, sentence

    said = sentence(tail) or "nothing stands for it"
    return f"torch.{tail}.{name}: Lamella has none; {said} (absent names: {PAGE})"


def _refuse(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """RuntimeError: the class has no instances."""
    raise RuntimeError(_says(cls.__module__.removeprefix("torch."), cls.__name__))


def _no() -> bool:
    """False."""
    return False


class _HollowType(type):
    """The metaclass of stand-in classes. An upper-case attribute is a string of its own name."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("_") or not name.isupper():
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")
        return f"{cls.__name__}.{name}"


def member(tail: str, name: str) -> Any:
    """The stand-in for torch.`tail`.`name`, or None if the name is not in HOLLOW."""
    sign = HOLLOW.get(tail, {}).get(name)
    if sign is None:
        return None
    if name.lstrip("_")[0].isupper():
        # One class may be listed under several modules.
        root = tail.split(".")[0]
        home = next(m for m in HOLLOW if m.split(".")[0] == root and name in HOLLOW[m])
        if home != tail:
            return getattr(module(home), name)
        if sign == "!":
            return type(name, (RuntimeError,), {"__module__": f"torch.{tail}"})
        if sign == "()":
            return _HollowType(name, (_Config,), {"__module__": f"torch.{tail}"})
        return _HollowType(name, (), {"__module__": f"torch.{tail}", "__new__": _refuse})

    if sign == "?":
        return _no
    if sign == "@":
        return lambda *arguments, **options: lambda function: function

    def function(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_says(tail, name))

    function.__name__ = function.__qualname__ = name
    function.__module__ = f"torch.{tail}"
    return function


class _Hollow(ModuleType):
    """The stand-in for a module: the names of one entry of HOLLOW."""

    def __getattr__(self, name: str) -> Any:
        tail = self.__name__.removeprefix("torch.")
        found = None if name.startswith("__") else member(tail, name)
        if found is None and f"{tail}.{name}" in HOLLOW:
            found = module(f"{tail}.{name}")
        if found is None and f"{tail}.{name}" in PART_OF:
            found = importlib.import_module(f"torch.{tail}.{name}")
        if found is None:
            from lamella.compat._absent import missing

            raise missing(f"{tail}.{name}", dir(self))
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *HOLLOW[self.__name__.removeprefix("torch.")]})


_made: dict[str, ModuleType] = {}


class _Switches(ModuleType):
    """Settings of PyTorch's compilers: values are stored, and nothing reads them."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in _GROUPS:
            return False
        setattr(self, name, _Switches(f"{self.__name__}.{name}"))
        return getattr(self, name)

    @contextlib.contextmanager
    def patch(self, changes: Any = None, value: Any = None, **more: Any) -> Iterator[None]:
        """A context, and a decorator, that sets some of the settings temporarily."""
        if isinstance(changes, str):
            changes = {changes: value}
        changes = {**(changes or {}), **more}
        before = {name: getattr(self, name) for name in changes}
        self.__dict__.update(changes)
        try:
            yield
        finally:
            self.__dict__.update(before)


# Settings that are groups of further settings.
_GROUPS = frozenset("aot_inductor cpp cuda halide rocm trace triton".split())


def module(tail: str) -> ModuleType:
    """The stand-in for torch.`tail`, with the names of HOLLOW."""
    if tail not in _made:
        kind = _Switches if tail.endswith(".config") else _Hollow
        _made[tail] = kind(f"torch.{tail}", "Names that are absent here.")
        _made[tail].__path__ = []
    return _made[tail]
