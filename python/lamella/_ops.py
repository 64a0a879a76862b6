"""lamella.ops: every registered operator as lamella.ops.<namespace>.<name>[.<overload>]."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

from lamella import _C

if TYPE_CHECKING:
    from lamella._utils import LoadedLibrary


class OpNamespace:
    """The operators of one namespace."""

    _name: str

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name
        self.__dict__["__name__"] = f"lamella.ops.{name}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            packet = _C._operator(f"{self._name}::{name}")
        except RuntimeError as error:
            # The error lists similar names.
            raise AttributeError(str(error)) from None
        setattr(self, name, packet)
        return packet

    def __dir__(self) -> list[str]:
        prefix = self._name + "::"
        names = {name for name, _ in _C._operator_names() if name.startswith(prefix)}
        return sorted(name[len(prefix) :] for name in names)

    def __iter__(self) -> Iterator[str]:
        return iter(dir(self))

    def __repr__(self) -> str:
        return f"<lamella.ops.{self._name}: {len(dir(self))} operators>"


class Ops:
    """All namespaces of operators."""

    __name__ = "lamella.ops"

    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        namespace = OpNamespace(name)
        setattr(self, name, namespace)
        return namespace

    def __dir__(self) -> list[str]:
        return sorted({name.partition("::")[0] for name, _ in _C._operator_names()})

    def __iter__(self) -> Iterator[str]:
        return iter(dir(self))

    def load_library(self, path: str | PathLike[str]) -> LoadedLibrary:
        """Loads a shared library of operators; see lamella.load_library()."""
        from lamella._utils import load_library

        return load_library(path)

    def __repr__(self) -> str:
        return f"<lamella.ops: {', '.join(dir(self))}>"


ops = Ops()


def __getattr__(name: str) -> Any:
    if name in ("OpOverload", "OpOverloadPacket"):
        packet = ops.aten.add
        return type(packet.Tensor if name == "OpOverload" else packet)
    raise AttributeError(f"module 'lamella._ops' has no attribute '{name}'")
