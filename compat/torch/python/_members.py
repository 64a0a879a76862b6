"""torch.nn.utils._named_member_accessor: access to a module's tensors by dotted names."""

from __future__ import annotations

from typing import Any

from lamella import Tensor
from lamella.nn import Module

_MISSING = object()


def _check(op: str, module: Any, name: str, tensor: Any) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{op}: expected 'module' to be a Module, got {type(module).__name__}")
    if tensor is not None and tensor is not _MISSING and not isinstance(tensor, Tensor):
        raise TypeError(f"{op}: expected '{name}' to be a Tensor, got {type(tensor).__name__}")
    if not name or "." in name:
        raise KeyError(f"{op}: expected the name of an attribute, got {name!r}")


def set_tensor(module: Module, name: str, tensor: Tensor | None) -> None:
    """Replaces a parameter, a buffer or an attribute by a tensor."""
    _check("set_tensor", module, name, tensor)
    for entries in (module._parameters, module._buffers):
        if name in entries:
            entries[name] = tensor
            return
    setattr(module, name, tensor)


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Like set_tensor(), but returns the former value. AttributeError if there is none."""
    _check("swap_tensor", module, name, tensor)
    for entries in (module._parameters, module._buffers):
        if name in entries:
            before = entries[name]
            if tensor is _MISSING:
                del entries[name]
            else:
                entries[name] = tensor
            return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{type(module).__name__} has no attribute '{name}'")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before


class NamedMemberAccessor:
    """Reads and writes the tensors of a module and of its submodules."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def get_submodule(self, name: str) -> Module:
        """The module with this dotted name."""
        return self.module.get_submodule(name)

    def _home(self, name: str) -> tuple[Module, str]:
        path, _, last = name.rpartition(".")
        return self.get_submodule(path), last

    def get_tensor(self, name: str) -> Any:
        """The tensor with this dotted name."""
        module, last = self._home(name)
        return getattr(module, last)

    def set_tensor(self, name: str, value: Any) -> None:
        """Replaces the tensor with this dotted name."""
        set_tensor(*self._home(name), value)

    def del_tensor(self, name: str) -> None:
        """Deletes the tensor with this dotted name."""
        swap_tensor(*self._home(name), _MISSING)

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Replaces the tensor with this dotted name and returns the former one."""
        return swap_tensor(*self._home(name), value, allow_missing)

    def get_tensors(self, names: Any) -> list[Any]:
        """The tensors with these names."""
        return [self.get_tensor(name) for name in names]

    def set_tensors_dict(self, named_tensors: dict[str, Any]) -> None:
        """Replaces the tensors with these names."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def swap_tensors_dict(
        self, named_tensors: dict[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Replaces the tensors with these names; returns the former ones, and the names that were
        missing."""
        before, missing = {}, []
        for name, value in named_tensors.items():
            before[name] = self.swap_tensor(name, value, allow_missing)
            if before[name] is _MISSING:
                missing.append(name)
        return before, missing
