"""Modules of networks that are written in C++, as modules of Python: torch.nn.cpp."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from typing import Any

from lamella import Tensor
from lamella.nn import Module


class _Entries(UserDict):
    """The entries that a module of C++ has now, by name."""

    def __init__(self, read: Callable[[], dict[str, Any]]) -> None:
        self._read = read

    @property
    def data(self) -> dict[str, Any]:  # type: ignore[override]
        # Kept, because modules tell entries apart by their ids.
        self._kept = self._read()
        return self._kept

    def __setitem__(self, name: str, value: Tensor) -> None:
        if name not in self.data:
            raise KeyError(f"Module: expected a name that the C++ class registers, got '{name}'")
        self.data[name].data = value


class _Named(dict):
    """Members by name. Iteration gives pairs of a name and a member, and so does a number."""

    def __getitem__(self, key: Any) -> Any:
        return list(self.items())[key] if isinstance(key, int) else super().__getitem__(key)

    def __iter__(self) -> Any:
        return iter(self.items())


def _as(kind: Any, name: str) -> Any:
    """Module's method `name`, with a result of this kind in place of an iterator."""
    found = getattr(Module, name)
    return lambda self, *args, **kwargs: kind(found(self, *args, **kwargs))


class ModuleWrapper(Module):
    """A module that holds one of C++, whose methods are its own.

    What the C++ object registers later is seen here too.
    """

    parameters = _as(list, "parameters")
    buffers = _as(list, "buffers")
    children = _as(list, "children")
    modules = _as(list, "modules")
    named_parameters = _as(_Named, "named_parameters")
    named_buffers = _as(_Named, "named_buffers")
    named_children = _as(_Named, "named_children")
    named_modules = _as(_Named, "named_modules")

    def __init__(self, cpp_module: Any) -> None:
        super().__init__()
        # By the object of C++, which has one object of Python while that is kept.
        parts: dict[Any, ModuleWrapper] = {}

        def read_modules() -> dict[str, ModuleWrapper]:
            found = cpp_module.modules()
            for part in found.values():
                if part not in parts:
                    parts[part] = ModuleWrapper(part)
            return {name: parts[part] for name, part in found.items()}

        self.__dict__.update(
            cpp_module=cpp_module,
            _parameters=_Entries(cpp_module.parameters),
            _buffers=_Entries(cpp_module.buffers),
            _modules=_Entries(read_modules),
        )

    def __getattr__(self, name: str) -> Any:
        if name in self._parameters or name in self._buffers or name in self._modules:
            return super().__getattr__(name)
        return getattr(self.cpp_module, name)

    @property
    def training(self) -> bool:
        return self.cpp_module.training

    @training.setter
    def training(self, mode: bool) -> None:
        self.cpp_module.train(mode)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.cpp_module.forward(*args, **kwargs)

    def clone(self) -> ModuleWrapper:
        """A copy with its own parameters and buffers."""
        made = type(self).__new__(type(self))
        ModuleWrapper.__init__(made, self.cpp_module.clone())
        return made

    def __repr__(self) -> str:
        return self.cpp_module.name()


def wrapper(name: str, cpp_class: Any) -> type[ModuleWrapper]:
    """The class of modules that hold one of `cpp_class`, from whose arguments they are made."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        ModuleWrapper.__init__(self, cpp_class(*args, **kwargs))

    return type(name, (ModuleWrapper,), {"__init__": __init__, "__module__": cpp_class.__module__})
