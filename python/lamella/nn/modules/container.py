"""Modules that hold others, and lists and dictionaries of parameters."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import lamella
from lamella.nn.modules.module import Module
from lamella.nn.parameter import Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _place(name: str, index: Any, count: int) -> int:
    place = operator.index(index)
    if not -count <= place < count:
        raise IndexError(f"{name}: index {place} is out of range for {count} entries")
    return place % count


class _Numbered(Module):
    """Submodules under the names "0", "1", ..."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        return self._modules[self._get_abs_string_index(index)]

    def _part(self, index: slice) -> Any:
        raise NotImplementedError

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def _renumber(self, modules: Iterable[Any]) -> None:
        modules = list(modules)
        self._modules.clear()
        for module in modules:
            self.add_module(str(len(self._modules)), module)

    def _get_abs_string_index(self, index: Any) -> str:
        return list(self._modules)[_place(self._get_name(), index, len(self))]

    def __setitem__(self, index: Any, module: Module) -> None:
        self._modules[self._get_abs_string_index(index)] = module

    def __delitem__(self, index: Any) -> None:
        modules = list(self)
        if isinstance(index, slice):
            del modules[index]
        else:
            del modules[_place(self._get_name(), index, len(self))]
        self._renumber(modules)

    def append(self, module: Module) -> Any:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Adds modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Inserts a module before position `index`."""
        modules = list(self)
        if isinstance(self, Sequential) and not -len(modules) <= index <= len(modules):
            raise IndexError(
                f"insert: expected 'index' to be in [{-len(modules)}, {len(modules)}], got {index}"
            )
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: int | slice) -> Any:
        """Removes a module and returns it."""
        found = self[key]
        del self[key]
        return found


class Sequential(_Numbered):
    """Modules, each called with the result of the one before: Sequential(a, b), or of a dict."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], dict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def _part(self, index: slice) -> Sequential:
        return type(self)(dict(list(self._modules.items())[index]))

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)
        numbered = names == [str(i) for i in range(len(names))]
        if isinstance(index, slice):
            chosen = names[index]
        else:
            chosen = [self._get_abs_string_index(index)]
        for name in chosen:
            del self._modules[name]
        if numbered:
            self._renumber(self)

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            return NotImplemented
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            return NotImplemented
        return self.extend(list(other))

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*self._repeated(times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        return self.extend(self._repeated(times)[len(self) :])

    def _repeated(self, times: int) -> list[Module]:
        """The list of the modules repeated `times` times, not copied."""
        if not isinstance(times, int):
            raise TypeError(
                f"Sequential: expected to be repeated an int of times, got {type(times).__name__}"
            )
        if times <= 0:
            raise ValueError(f"Sequential: expected to be repeated at least once, got {times}")
        return list(self) * times

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_Numbered):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _part(self, index: slice) -> ModuleList:
        return type(self)(list(self)[index])

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __repr__(self) -> str:
        lines = []
        place = 0
        for text, run in groupby(map(repr, self)):
            count = len(list(run))
            places = f"{place}-{place + count - 1}" if count > 1 else f"{place}"
            times = f"{count} x " if count > 1 else ""
            lines.append(f"\n({places}): {times}{text}".replace("\n", "\n  "))
            place += count
        return f"{self._get_name()}({''.join(lines)}" + ("\n)" if lines else ")")


class ModuleDict(Module):
    """A dictionary of modules by name, in the order of insertion."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Removes a module and returns it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Pairs of name and module."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds modules from a dictionary or from pairs."""
        for name, module in dict(modules).items():
            self[name] = module


def _as_parameter(value: Any) -> Any:
    if isinstance(value, lamella.Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


class ParameterList(Module):
    """A list of parameters; plain tensors become parameters, other values are kept as they are."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(self._size))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(self._size))])
        return getattr(self, str(_place("ParameterList", index, self._size)))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_place("ParameterList", index, self._size)), _as_parameter(value))

    def append(self, value: Any) -> ParameterList:
        """Adds a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds values at the end."""
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join(
            _described(str(i), value, lambda tensor: tensor.dtype) for i, value in enumerate(self)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList: a list of parameters cannot be called")


class ParameterDict(Module):
    """A dictionary of parameters; plain tensors become parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, key, _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def items(self) -> Any:
        """Pairs of name and parameter."""
        return [(key, self[key]) for key in self._keys]

    def values(self) -> Any:
        """The parameters."""
        return [self[key] for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter with a name, or `default`."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter with a name, which is `default` if it is new."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Removes a parameter and returns it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes the last parameter and returns its name and it."""
        if not self._keys:
            raise KeyError("popitem: expected the ParameterDict not to be empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Removes all parameters."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters."""
        return ParameterDict(dict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary with one value under all names."""
        return ParameterDict(dict.fromkeys(keys, default))

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __or__(self, other: Any) -> ParameterDict:
        made = self.copy()
        made.update(other.items())
        return made

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other.items())
        return self

    def update(self, parameters: Any) -> None:
        """Adds parameters from a dictionary or from pairs."""
        for name, value in dict(parameters).items():
            self[name] = value

    def extra_repr(self) -> str:
        return "\n".join(
            _described(key, value, lambda tensor: tensor.type()) for key, value in self.items()
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict: a dictionary of parameters cannot be called")


def _described(name: str, value: Any, kind: Callable[[lamella.Tensor], Any]) -> str:
    """The line of an entry in PyTorch's form; kind: how a tensor's type is named in it."""
    if not isinstance(value, lamella.Tensor):
        return f"  ({name}): Object of type: {type(value).__name__}"
    size = "x".join(map(str, value.shape))
    what = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  ({name}): {what} containing: [{kind(value)} of size {size}]"
