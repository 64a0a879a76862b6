"""Networks: modules and parameters, their first values, and the operators they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamella.nn import functional as functional
from lamella.nn import init as init
from lamella.nn import modules as modules
from lamella.nn import utils as utils
from lamella.nn.modules import *  # noqa: F403
from lamella.nn.parameter import Buffer as Buffer
from lamella.nn.parameter import Parameter as Parameter
from lamella.nn.parameter import UninitializedBuffer as UninitializedBuffer
from lamella.nn.parameter import UninitializedParameter as UninitializedParameter

if TYPE_CHECKING:
    from lamella.nn import attention as attention
    from lamella.nn import common_types as common_types
    from lamella.nn import grad as grad
    from lamella.nn import parallel as parallel


def __getattr__(name: str) -> Any:
    from importlib import import_module
    from importlib.util import find_spec

    if name == "__all__":
        return _public()
    if not name.startswith("_") and find_spec(f"lamella.nn.{name}") is not None:
        return import_module(f"lamella.nn.{name}")
    found = getattr(modules, name, None)
    if found is None:
        from lamella._missing import missing

        raise missing(__name__, name)
    globals()[name] = found
    return found


def _public() -> list[str]:
    """The names that `from lamella.nn import *` imports: classes and public submodules."""
    beside = ("functional", "init", "modules", "parameter", "utils")
    names = {name for name in __dir__() if not name.startswith("_")} - {"Any"}
    values = {n: globals()[n] if n in globals() else __getattr__(n) for n in sorted(names)}
    return [name for name, value in values.items() if isinstance(value, type) or name in beside]


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(modules)})
