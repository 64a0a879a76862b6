"""torch._python_dispatcher: lamella.PythonDispatcher with PyTorch's names and order of keys."""

from __future__ import annotations

from collections.abc import Sequence

from lamella import PythonDispatcher as _Dispatcher
from lamella.compat._dispatcher import _registrations, _rows, key_of

__all__ = ["PythonDispatcher"]


class PythonDispatcher(_Dispatcher):
    """The tables that a set of registrations gives an operator."""

    runtime_keys = (
        "CPU",
        "XLA",
        "Lazy",
        "FPGA",
        "AutogradOther",
        "AutogradCPU",
        "AutogradXLA",
        "AutogradLazy",
    )
    supported_keys = runtime_keys + _Dispatcher.alias_keys

    def register(self, dispatchKeys: Sequence[str]) -> None:  # noqa: N803
        """Registers a kernel for each key."""
        if len(set(dispatchKeys)) != len(dispatchKeys):
            raise RuntimeError(
                f"Overriden is not allowed: expected each key once, got {dispatchKeys}"
            )
        if {"CompositeImplicitAutograd", "CompositeExplicitAutograd"} <= set(dispatchKeys):
            raise RuntimeError(
                "Registration to both CompositeImplicitAutograd and CompositeExplicitAutograd is "
                "not allowed."
            )
        for key in dispatchKeys:
            if key not in self.supported_keys:
                raise RuntimeError(
                    f"{key} is not supported, please select a dispatch key in "
                    f"{list(self.supported_keys)}."
                )

            def kernel(x: object) -> object:
                return x

            kernel.__name__ = f"fn_{key}"
            self._library.impl(self.name, kernel, key_of(key))

    def dispatchTable(self) -> str:  # noqa: N802
        """The run-time keys: which kernel serves each one, and why it does."""
        rows = {
            key: f"{'' if kernel.startswith('registered at') else kernel} [{way}]".lstrip()
            for key, kernel, way in _rows(f"{self.namespace}::{self.name}")
        }
        table = [(key, rows[key]) for key in self.runtime_keys if key in rows]
        return self._table("Computed Dispatch Table", table)

    def registrations(self) -> str:
        """What was registered, aliases included."""
        rows = [
            ({"Vulkan": "FPGA"}.get(key, key) + ("[alias]" if alias else ""), name)
            for key, alias, name, *_ in _registrations(f"{self.namespace}::{self.name}")
        ]
        return self._table("Registered Kernels", rows)
