"""Installs PyTorch's module names in processes that multiprocessing spawns."""

from __future__ import annotations

import multiprocessing.forkserver
import multiprocessing.spawn
import os
from typing import Any

import lamella

_command_line = multiprocessing.spawn.get_command_line
_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(lamella.__file__)))


def _with_names(**arguments: Any) -> list[str]:
    """The command of a spawned process, extended to install the names first."""
    command = _command_line(**arguments)
    if "-c" in command:
        at = command.index("-c") + 1
        command[at] = (
            f"import sys; sys.path.append({_FOLDER!r}); import lamella.compat._installed; "
            + command[at]
        )
    return command


def install() -> None:
    """Extends the commands of processes that are spawned from here on."""
    multiprocessing.spawn.get_command_line = _with_names
    multiprocessing.forkserver.set_forkserver_preload(["lamella.compat._installed", "__main__"])


def uninstall() -> None:
    """Undoes install()."""
    multiprocessing.spawn.get_command_line = _command_line
    multiprocessing.forkserver.set_forkserver_preload(["__main__"])
