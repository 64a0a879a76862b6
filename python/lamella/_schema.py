"""Operator schemas in Python: strings with attributes for the parsed parts."""

from __future__ import annotations

import functools
from typing import Any

from lamella import _C

__all__ = ["AliasInfo", "Argument", "FunctionSchema"]


class AliasInfo:
    """The sets of tensors that an argument or a return may share memory with."""

    def __init__(self, before: list[str], after: list[str], is_write: bool) -> None:
        self.before_set = set(before)
        self.after_set = set(after)
        self.is_write = is_write

    def __repr__(self) -> str:
        return f"AliasInfo({self.before_set}, {self.after_set}, is_write={self.is_write})"


class Argument:
    """One argument or return of a schema."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.name: str
        self.type: str
        self._default: bool
        self.default_value: Any
        self.kwarg_only: bool
        self.is_out: bool
        self.name, self.type, self._default, self.default_value, self.kwarg_only, self.is_out = (
            parts[:6]
        )
        self.alias_info = None if parts[6] is None else AliasInfo(*parts[6])

    def has_default_value(self) -> bool:
        return self._default

    @property
    def is_write(self) -> bool:
        return self.alias_info is not None and self.alias_info.is_write

    def __repr__(self) -> str:
        return f"Argument({self.type} {self.name})"


class FunctionSchema(str):
    """The text of a schema: `aten::add.Tensor(Tensor self, Tensor other, ...) -> Tensor`."""

    @functools.cached_property
    def _parts(self) -> tuple[Any, ...]:
        parts: tuple[Any, ...] = _C._schema_parts(str(self))
        return parts

    @property
    def name(self) -> str:
        text: str = self._parts[0]
        return text

    @property
    def overload_name(self) -> str:
        text: str = self._parts[1]
        return text

    @functools.cached_property
    def arguments(self) -> list[Argument]:
        return [Argument(parts) for parts in self._parts[2]]

    @functools.cached_property
    def returns(self) -> list[Argument]:
        return [Argument(parts) for parts in self._parts[3]]

    @property
    def is_mutable(self) -> bool:
        written: bool = self._parts[4]
        return written
