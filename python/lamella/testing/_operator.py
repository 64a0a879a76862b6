"""Operator: the schema and the registered facts of an operator, for the checks."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from lamella import _C


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument or a return of a schema."""

    name: str
    type: str
    default: str | None
    kwarg_only: bool
    write: bool
    before: tuple[str, ...]  # the alias sets it is in when the call begins, and when it ends
    after: tuple[str, ...]

    @property
    def base(self) -> str:
        """The type without ?, [] and the length of a list: "Tensor", "int"."""
        return self.type.partition("?")[0].partition("[")[0].partition("(")[0]

    @property
    def is_tensor(self) -> bool:
        return self.base == "Tensor"

    @property
    def is_list(self) -> bool:
        return self.type.rstrip("?").endswith("]")

    @property
    def length(self) -> int | None:
        """N of `int[N]`."""
        found = re.search(r"\[(\d+)\]", self.type)
        return int(found.group(1)) if found else None

    @property
    def is_optional(self) -> bool:
        return self.type.endswith("?")

    @property
    def is_out(self) -> bool:
        return self.kwarg_only and self.write and self.is_tensor


def _argument(facts: dict[str, Any]) -> Argument:
    return Argument(**{**facts, "before": tuple(facts["before"]), "after": tuple(facts["after"])})


class Operator:
    """A registered operator. name: "mylib::norm"; overload may be empty."""

    def __init__(self, name: str, overload: str = "") -> None:
        self.facts = _C._operator_entry(name, overload)
        self.name = name
        self.overload = overload
        self.arguments = [_argument(a) for a in self.facts["arguments"]]
        self.returns = [_argument(r) for r in self.facts["returns"]]
        self.tags = set(self.facts["tags"])
        self.call: Callable[..., Any] = _C._operator(name, overload or "default")

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def namespace(self) -> str:
        return self.name.partition("::")[0]

    @property
    def short_name(self) -> str:
        return self.name.partition("::")[2]

    @property
    def outs(self) -> list[Argument]:
        return [a for a in self.arguments if a.is_out]

    @property
    def is_inplace(self) -> bool:
        """Whether it is named like an in-place operator and writes its first argument."""
        name = self.short_name
        return (
            name.endswith("_")
            and not name.endswith("__")
            and bool(self.arguments)
            and self.arguments[0].write
        )

    @property
    def is_functional(self) -> bool:
        return not any(a.write for a in self.arguments) and not any(r.after for r in self.returns)

    @property
    def is_composite(self) -> bool:
        return any(
            k["key"] == "CompositeImplicitAutograd" and not k["fallthrough"]
            for k in self.facts["kernels"]
        )

    def serves(self, backend: str) -> bool:
        """Whether there is a kernel for tensors of a backend: "CPU", "CUDA" or "Meta"."""
        return backend in self.facts["backends"]

    def functional(self) -> Operator | None:
        """The functional operator that this is the in-place or out form of; None without one."""
        base = self.short_name[:-1] if self.is_inplace else self.short_name
        own = [(a.name, a.type) for a in self.arguments if not a.is_out]
        for name, overload in _C._operator_names():
            if name != f"{self.namespace}::{base}":
                continue
            other = Operator(name, overload)
            if other.is_functional and [(a.name, a.type) for a in other.arguments] == own:
                return other
        return None


def defined_operators() -> list[tuple[str, str]]:
    """The names and overloads of all operators, in the order of their definition."""
    return list(_C._operator_names())


def operator_of(op: Any) -> Operator:
    """The Operator of an overload in lamella.ops, of a name that has only one overload, or of what
    lamella.library.custom_op() returned."""
    op = getattr(op, "_opoverload", op)
    name = getattr(op, "_operator_name", None)
    if name is None:
        raise TypeError(f"opcheck: expected 'op' to be an operator of lamella.ops, got {op!r}")
    overload = getattr(op, "_overloadname", None)
    if overload is None:
        overloads = [o for n, o in defined_operators() if n == name]
        if len(overloads) != 1:
            listed = ", ".join(o or "default" for o in overloads)
            raise ValueError(f"opcheck: expected 'op' to be one overload of {name}: {listed}")
        overload = overloads[0]
    return Operator(name, "" if overload == "default" else overload)
