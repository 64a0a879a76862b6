"""torch.multiprocessing: Python's multiprocessing.

Tensors are sent to other processes as copies; those of share_memory_() share their memory.
"""

from __future__ import annotations

import contextlib
import multiprocessing as _base
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from typing import Any


def get_all_sharing_strategies() -> set[str]:
    """The names that set_sharing_strategy() accepts."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """file_system"""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Does nothing: shared memory always uses named files."""
    if new_strategy not in get_all_sharing_strategies():
        raise ValueError(
            "set_sharing_strategy: expected file_descriptor or file_system, got "
            f"{new_strategy!r}"
        )


class ProcessException(Exception):
    """The failure of a process of start_processes(). error_index: its index; pid: its process
    id."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid, self.pid = msg, error_index, pid, pid


class ProcessRaisedException(ProcessException):
    """The process raised an exception; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """The process exited with exit_code, or was ended by the signal signal_name."""

    def __init__(
        self, msg: str, error_index: int, pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def _call(fn: Callable[..., Any], i: int, args: tuple[Any, ...], told: str) -> None:
    """Runs in the process. Writes the traceback of an exception to the file `told`."""
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent ends as well
    except Exception:
        with open(told, "w", encoding="utf-8") as file:
            file.write(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes that start_processes() started."""

    def __init__(self, processes: list[Any], told: list[str]) -> None:
        self.processes = processes
        self._told = told

    def pids(self) -> list[Any]:
        """The process ids."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits up to `timeout` seconds for a process to end. True if all have succeeded. After a
        failure, the others are terminated, and killed after grace_period seconds."""
        running = {p.sentinel: p for p in self.processes if p.exitcode is None}
        for sentinel in _base.connection.wait(list(running), timeout) if running else ():
            running[sentinel].join()
        failed = [i for i, process in enumerate(self.processes) if process.exitcode]
        if failed:
            self._end(grace_period)
            raise self._error(failed[0])
        if any(process.exitcode is None for process in self.processes):
            return False
        self._forget()
        return True

    def _end(self, grace_period: float | None) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(30 if grace_period is None else grace_period)
            if process.is_alive():
                process.kill()
                process.join()

    def _error(self, i: int) -> ProcessException:
        process = self.processes[i]
        with open(self._told[i], encoding="utf-8") as file:
            text = file.read()
        self._forget()
        if text:
            return ProcessRaisedException(f"spawn: process {i} failed\n{text}", i, process.pid)
        code = process.exitcode
        name = signal.Signals(-code).name if code < 0 else None
        how = f"by the signal {name}" if name else f"with the exit status {code}"
        return ProcessExitedException(f"spawn: process {i} ended {how}", i, process.pid, code, name)

    def _forget(self) -> None:
        for path in self._told:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)


SpawnContext = ProcessContext


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
    processes, told = [], []
    for i in range(nprocs):
        handle, path = tempfile.mkstemp(prefix="lamella-process-")
        os.close(handle)
        told.append(path)
        process = context.Process(target=_call, args=(fn, i, args, path), daemon=daemon)  # type: ignore
        process.start()
        processes.append(process)
    started = ProcessContext(processes, told)
    if not join:
        return started
    while not started.join():
        pass
    return None


# Fresh interpreters are the default.
spawn = start_processes
