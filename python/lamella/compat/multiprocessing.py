"""torch.multiprocessing: Python's multiprocessing.

Tensors go to other processes as copies, those of share_memory_() by their place in shared memory.
"""

from __future__ import annotations

import multiprocessing as _base
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from typing import Any


def get_all_sharing_strategies() -> set[str]:
    """The names that set_sharing_strategy() takes."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """file_system"""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Nothing to choose: shared memory has names in the system's files."""
    if new_strategy not in get_all_sharing_strategies():
        raise ValueError(
            "set_sharing_strategy: expected file_descriptor or file_system, got "
            f"{new_strategy!r}"
        )


class ProcessRaisedException(Exception):
    """A process of spawn() failed."""


ProcessExitedException = ProcessRaisedException


class ProcessContext:
    """The processes that start_processes() started."""

    def __init__(self, processes: list[Any]) -> None:
        self.processes = processes

    def pids(self) -> list[Any]:
        """Their numbers in the system."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits for all; ProcessRaisedException if one failed, and the others are ended then."""
        for process in self.processes:
            process.join(timeout)
        failed = [i for i, process in enumerate(self.processes) if process.exitcode]
        if failed:
            for process in self.processes:
                if process.is_alive():
                    process.terminate()
            code = self.processes[failed[0]].exitcode
            raise ProcessRaisedException(
                f"spawn: expected process {failed[0]} to end well, got the exit status {code}"
            )
        return all(process.exitcode == 0 for process in self.processes)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Calls fn(i, *args) in `nprocs` processes."""
    context = _base.get_context(start_method)
    processes = []
    for i in range(nprocs):
        process = context.Process(target=fn, args=(i, *args), daemon=daemon)  # type: ignore
        process.start()
        processes.append(process)
    started = ProcessContext(processes)
    if not join:
        return started
    started.join()
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """start_processes() with fresh interpreters."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
