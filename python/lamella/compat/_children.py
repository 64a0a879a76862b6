"""PyTorch's module names in processes that a program spawns, before its own modules are there."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from multiprocessing import spawn
from typing import Any

# What a fresh interpreter is told first. Lamella may be where only this program's path leads.
_CODE = "import sys; sys.path[:] = {!r}; from lamella import compat; compat.install()"


class _Installed:
    """Installs where it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return exec, (_CODE.format(sys.path),)


_plain = spawn.get_preparation_data


@functools.wraps(_plain)
def _with_names(name: str) -> dict[str, Any]:
    return {"lamella": _Installed(), **_plain(name)}


def install() -> None:
    """Lets processes that are spawned from now on install first."""
    spawn.get_preparation_data = _with_names


def uninstall() -> None:
    """They do not any more."""
    spawn.get_preparation_data = _plain
