"""The error for a name that a module lacks: it says where the name is, or which name is near."""

from __future__ import annotations

import importlib.util
import opcode
import sys
from collections.abc import Callable
from typing import Any


class MissingName(AttributeError):
    """hasattr() creates such errors without reading their text, so the search for the nearest name
    waits until the text is read."""

    def __init__(self, describe: Callable[[], str]) -> None:
        super().__init__()
        self._describe = describe

    def __str__(self) -> str:
        return self._describe()

    # Tracebacks show it as the plain error.
    __module__ = "builtins"
    __qualname__ = "AttributeError"

    def __reduce__(self) -> Any:
        return AttributeError, (str(self),)


def suggest(module: str) -> None:
    """Makes the module raise such errors. Type checkers, which take a module that defines
    __getattr__() to have every name, do not see it."""
    sys.modules[module].__dict__["__getattr__"] = lambda name: _raise(module, name)


def _raise(module: str, name: str) -> None:
    raise missing(module, name, depth=3)


# What there is in place of a module of PyTorch's.
_INSTEAD = {
    "lamella.onnx": "programs are exported as HLO: lamella.hlo.from_trace(lamella.trace(f, x))",
}


def missing(module: str, name: str, depth: int = 2) -> AttributeError | ImportError:
    """The error for `module` without `name`, to be raised by the module's __getattr__(), which
    is `depth - 1` calls above."""

    def describe() -> str:
        said = f"module '{module}' has no attribute '{name}'"
        instead = _INSTEAD.get(f"{module}.{name}")
        if instead:
            return f"{said}; {instead}"
        is_package = hasattr(sys.modules[module], "__path__")
        if is_package and importlib.util.find_spec(f"{module}.{name}") is not None:
            return f"{said} until 'import {module}.{name}'"
        place = _find_in_compat(module, name)
        if place:
            return f"{said}; it is in '{place}'"
        import difflib

        near = difflib.get_close_matches(name, dir(sys.modules[module]), 1)
        return f"{said}; the nearest is '{near[0]}'" if near else said

    # `from module import name` would replace the text of an AttributeError by its own.
    frame = sys._getframe(depth)
    if frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == opcode.opmap["IMPORT_FROM"]:
        return ImportError(describe(), name=name)
    return MissingName(describe)


def _find_in_compat(module: str, name: str) -> str | None:
    """The module of lamella.compat that is `name` or holds it, where it mirrors `module`."""
    place = "lamella.compat" + module.removeprefix("lamella")
    for candidate in (f"{place}.{name}", place):
        try:
            found = importlib.import_module(candidate)
        except ImportError:
            continue
        if candidate != place or name in vars(found):
            return candidate
    return None
