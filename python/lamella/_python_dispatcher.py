"""PythonDispatcher: shows the dispatch table that registrations give an operator.

    dispatcher = lamella.PythonDispatcher()
    dispatcher.register(["CPU", "XLA", "AutogradCPU", "CompositeImplicitAutograd"])
    print(dispatcher.dispatchTable())

Each PythonDispatcher defines its own operator in the real registry and registers a kernel fn_<KEY>
for each key, so the tables are those that calls use.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from lamella import _C
from lamella.library import Library

__all__ = ["PythonDispatcher"]

_numbers = itertools.count()


def _kernel(key: str) -> Callable[..., Any]:
    def kernel(x: Any) -> Any:
        return x

    kernel.__name__ = f"fn_{key}"
    return kernel


class PythonDispatcher:
    """A new operator to register kernels for, with tables of the registrations and the kernels.

    It knows one or two backends of each kind: CPU, which Lamella implements; XLA and Lazy, which
    have their own autograd keys; and Vulkan, which shares AutogradOther with others.
    """

    namespace = "__test__"
    runtime_keys = (
        "CPU",
        "AutogradCPU",
        "Vulkan",
        "AutogradOther",
        "XLA",
        "AutogradXLA",
        "Lazy",
        "AutogradLazy",
    )
    alias_keys = ("CompositeExplicitAutograd", "Autograd", "CompositeImplicitAutograd")
    supported_keys = runtime_keys + alias_keys

    def __init__(self) -> None:
        self.name = f"foo{next(_numbers)}"
        self._library = Library(self.namespace, "FRAGMENT")
        self._library.define(f"{self.name}(Tensor x) -> Tensor")
        self._op: Any = _C._operator(f"{self.namespace}::{self.name}", "default")

    def keys(self) -> list[str]:
        """The dispatch keys that kernels can be registered for."""
        return list(self.supported_keys)

    def register(self, dispatchKeys: Sequence[str]) -> None:  # noqa: N803
        """Registers a kernel for each key."""
        twice = sorted({key for key in dispatchKeys if list(dispatchKeys).count(key) > 1})
        if twice:
            raise RuntimeError(f"register: expected each key once, got {', '.join(twice)} again")
        if {"CompositeImplicitAutograd", "CompositeExplicitAutograd"} <= set(dispatchKeys):
            raise RuntimeError(
                "register: expected one of CompositeImplicitAutograd and "
                "CompositeExplicitAutograd, got both"
            )
        for key in dispatchKeys:
            if key not in self.supported_keys:
                raise RuntimeError(
                    f"register: expected a key of {', '.join(self.supported_keys)}, got '{key}'"
                )
        for key in dispatchKeys:
            self._library.impl(self.name, _kernel(key), key)

    @staticmethod
    def _table(title: str, rows: Sequence[tuple[str, str]]) -> str:
        lines = [f"{key:<15} {kernel}" for key, kernel in rows]
        return "\n".join(["", title, f"{'key':<15} kernel", "-" * 27, *lines, ""])

    def _slots(self) -> list[tuple[str, str]]:
        rows = []
        for key, name, way, _ in _C._dispatch_slots(self._op):
            if way == "ambiguous autogradother":
                name = "ambiguous_autogradother"
            if way != "missing":
                rows.append((key, f"{name} [{way}]".lstrip()))
        return rows

    def rawRegistrations(self) -> str:  # noqa: N802
        """All registrations of the operator, with the source location of each."""
        lines = [f"name: {self.namespace}::{self.name}", f"schema: {self._op._schema}"]
        for key, alias, name, where, _ in _C._dispatch_registrations(self._op):
            lines.append(f"{key}{'[alias]' if alias else ''}: {name} :: registered at {where}")
        return "\n".join(lines) + "\n"

    def rawDispatchTable(self) -> str:  # noqa: N802
        """The kernel of every run-time key that has one."""
        return "".join(f"{key}: {kernel}\n" for key, kernel in self._slots())

    def registrations(self) -> str:
        """A table of what was registered, aliases included."""
        rows = [
            (key + ("[alias]" if alias else ""), name)
            for key, alias, name, _, _ in _C._dispatch_registrations(self._op)
        ]
        return self._table("Registered Kernels", rows)

    def dispatchTable(self) -> str:  # noqa: N802
        """A table of the run-time keys: which kernel serves each one, and why it does."""
        rows = [row for row in self._slots() if row[0] in self.runtime_keys]
        return self._table("Computed Dispatch Table", rows)
