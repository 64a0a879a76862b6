"""The job of many processes: joining and leaving it, its groups of ranks, and work in progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import lamella
from lamella import Tensor


class ReduceOp:
    """How the values of all ranks become one."""

    SUM = "sum"
    AVG = "mean"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    RedOpType = str


class ProcessGroup:
    """Some ranks of the job, in an order. Its number is what the operators take."""

    def __init__(self, number: int) -> None:
        self.number = number

    def rank(self) -> int:
        return int(ops().rank(self.number))

    def size(self) -> int:
        return int(ops().size(self.number))

    def __repr__(self) -> str:
        return f"<lamella process group {self.number}: ranks {get_process_group_ranks(self)}>"


class GroupMember:
    """WORLD is the group of all ranks; new_group gives NON_GROUP_MEMBER to whoever is not in it."""

    WORLD = ProcessGroup(0)
    NON_GROUP_MEMBER = None


class group(GroupMember):  # noqa: N801
    """PyTorch's other name for the same."""


class Work:
    """A collective that was begun. Its tensors may not be touched before wait() has returned."""

    def __init__(
        self, number: int, keep: tuple[Tensor, ...] = (), after: Callable[[], None] | None = None
    ) -> None:
        self._number: int | None = number
        self._keep = keep
        self._after = after

    def wait(self) -> bool:
        """Returns when the results are there."""
        if self._number is not None:
            number, self._number = self._number, None
            ops().wait(number)
            if self._after is not None:
                self._after()
            self._keep = ()
        return True

    def is_completed(self) -> bool:
        """Whether wait() would return at once."""
        return self._number is None or ops().test(self._number)

    def __del__(self) -> None:
        # The memory of a work that nobody waited for would be written after its end.
        if self._number is not None and is_initialized():
            self.wait()


# lamella.ops.dist, once it is loaded.
loaded: Any = None


def _library() -> str:
    from lamella.utils import library_paths

    return os.path.join(library_paths()[0], "liblamella_mpi.so")


def is_available() -> bool:
    """Whether liblamella_mpi.so was built, which needs MPI's headers."""
    return loaded is not None or os.path.exists(_library())


is_mpi_available = is_available


def is_nccl_available() -> bool:
    """Whether collectives take CUDA tensors: liblamella_nccl.so was built, and a GPU is here."""
    return is_available() and not ops().obstacle("cuda")


def ops() -> Any:
    """lamella.ops.dist, loaded at first use."""
    global loaded
    if loaded is None:
        if not is_available():
            raise RuntimeError(
                "lamella.distributed: liblamella_mpi.so is not there; it is built where MPI is "
                "installed (Debian: libopenmpi-dev)"
            )
        lamella.load_library(_library())
        loaded = lamella.ops.dist
    return loaded


def number_of(given: ProcessGroup | None) -> int:
    return 0 if given is None else given.number


# ---- The job ----


def init_process_group(
    backend: str = "mpi", init_method: str | None = None, *, debug: bool | None = None
) -> None:
    """Joins the job that mpirun, or another starter of MPI's programs, began.

    backend: "mpi", which takes tensors of the CPU, and CUDA tensors where NCCL is; "nccl" is the
    same, and an error where it is not. init_method: None or "env://", as MPI knows by itself how
    ranks meet. debug: the ranks compare each collective before they call it (also by
    LAMELLA_DISTRIBUTED_DEBUG=1).
    """
    if backend not in ("mpi", "nccl", "cpu:mpi,cuda:nccl"):
        raise ValueError(
            "init_process_group: expected 'backend' to be 'mpi', 'nccl' or 'cpu:mpi,cuda:nccl', "
            f"got {backend!r}"
        )
    if init_method not in (None, "env://"):
        raise ValueError(
            "init_process_group: expected 'init_method' to be None or 'env://', "
            f"got {init_method!r}"
        )
    if is_initialized():
        return
    if backend != "mpi" and (obstacle := ops().obstacle("cuda")):
        raise RuntimeError(f"init_process_group: expected NCCL, got none: {obstacle}")
    ops().init(debug)
    _watch()


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Waits for all ranks and ends the job. Groups end with it."""
    if group is None or group.number == 0:
        _end()


_watching = False


def _watch() -> None:
    """An exception that nobody catches ends the job on all ranks; so does an early end."""
    global _watching
    if _watching:
        return
    _watching = True
    import atexit
    import faulthandler
    import signal

    earlier = sys.excepthook

    def end_job(
        kind: type[BaseException], value: BaseException, trace: TracebackType | None
    ) -> None:
        earlier(kind, value, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        place = ""
        while trace is not None:
            code = trace.tb_frame.f_code
            place = f" ({code.co_filename}:{trace.tb_lineno})"
            trace = trace.tb_next
        if is_initialized():
            ops().abort(f"{kind.__name__}: {value}"[:160] + place)

    sys.excepthook = end_job
    atexit.register(_end)
    try:  # the line that this rank was in when it was told to end
        faulthandler.register(signal.SIGTERM, all_threads=False, chain=True)
    except (AttributeError, ValueError, OSError, RuntimeError):
        pass  # standard error is no file


def _end() -> None:
    if is_initialized():
        ops().finalize()


def is_initialized() -> bool:
    """Whether the job was started in this process."""
    return loaded is not None and bool(loaded.is_initialized())


def get_backend(group: ProcessGroup | None = None) -> str:
    """ "mpi"."""
    return "mpi"


def get_rank(group: ProcessGroup | None = None) -> int:
    """This rank's number in the group, -1 outside of it."""
    return int(ops().rank(number_of(group)))


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many ranks the group has."""
    return int(ops().size(number_of(group)))


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """The group's ranks by their numbers in the group of all."""
    return list(ops().group_ranks(number_of(group)))


def new_group(ranks: Sequence[int] | None = None) -> ProcessGroup | None:
    """A group of some ranks. The ranks in it call this in the same order; others may."""
    if ranks is None:
        return GroupMember.WORLD
    made = ProcessGroup(ops().new_group(list(ranks)))
    return made if made.rank() >= 0 else GroupMember.NON_GROUP_MEMBER
