"""The job of several processes: joining and leaving it, groups of ranks, and pending work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any

import lamella
from lamella import Tensor


class ReduceOp:
    """Names of the reductions of the values of all ranks."""

    SUM = "sum"
    AVG = "mean"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    RedOpType = str


class ProcessGroup:
    """An ordered group of ranks of the job, which operators take by its number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def rank(self) -> int:
        return int(ops().rank(self.number))

    def size(self) -> int:
        return int(ops().size(self.number))

    def __repr__(self) -> str:
        return f"<lamella process group {self.number}: ranks {get_process_group_ranks(self)}>"


class GroupMember:
    """WORLD is the group of all ranks; new_group() returns NON_GROUP_MEMBER to other ranks."""

    WORLD = ProcessGroup(0)
    NON_GROUP_MEMBER = None


class group(GroupMember):  # noqa: N801
    """PyTorch's other name for GroupMember."""


class Work:
    """A started collective. Its tensors must not be used before wait() has returned."""

    def __init__(
        self, number: int, keep: tuple[Tensor, ...] = (), after: Callable[[], None] | None = None
    ) -> None:
        self._number: int | None = number
        self._keep = keep
        self._after = after

    def wait(self) -> bool:
        """Waits until the results are complete."""
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
        # Without waiting, MPI could write to the tensors after they are freed.
        if self._number is not None and is_initialized():
            self.wait()


# lamella.ops.dist, once it is loaded.
loaded: Any = None


def _library() -> str:
    from lamella._paths import library_paths

    return os.path.join(library_paths()[0], "liblamella_mpi.so")


def is_available() -> bool:
    """Whether liblamella_mpi.so was built, which needs MPI's headers."""
    return loaded is not None or os.path.exists(_library())


is_mpi_available = is_available


def is_nccl_available() -> bool:
    """Whether collectives take CUDA tensors: liblamella_nccl.so was built, and there is a GPU."""
    return is_available() and not ops().obstacle("cuda")


def ops() -> Any:
    """lamella.ops.dist, loaded on first use."""
    global loaded
    if loaded is None:
        if not is_available():
            raise RuntimeError(
                "lamella.distributed: liblamella_mpi.so is missing; it is built if MPI is "
                "installed (Debian: libopenmpi-dev)"
            )
        lamella.load_library(_library())
        loaded = lamella.ops.dist
    return loaded


def number_of(given: ProcessGroup | None) -> int:
    return 0 if given is None else given.number


# ---- The job ----


_BACKENDS = ("mpi", "gloo", "nccl", "cpu:mpi,cuda:nccl", "cpu:gloo,cuda:nccl")
_backend = "mpi"
# The stand-ins on rank 0 of a job that mpirun did not start: Note [Ranks that start by themselves].
_stand_ins: Any = None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    *,
    debug: bool | None = None,
) -> None:
    """Joins the job that mpirun, or another MPI launcher, started, or the job of the processes that
    use the same init_method.

    backend: "mpi" and "gloo" take CPU tensors, and CUDA tensors if NCCL is available; "nccl" is the
    same, but an error without NCCL. init_method: for processes that mpirun did not start, which
    must be on one machine: "env://" (MASTER_ADDR and MASTER_PORT from the environment, and RANK and
    WORLD_SIZE unless given), "tcp://host:port" or "file:///path"; or `store`, a shared store. A
    process without any of these is a job of one rank. timeout: the limit for meeting, by default 30
    minutes. debug: the ranks compare the arguments of each collective before they run it (also set
    by LAMELLA_DISTRIBUTED_DEBUG=1). group_name, pg_options and device_id are ignored.
    """
    global _backend, _stand_ins
    if backend not in (None, *_BACKENDS):
        raise ValueError(
            f"init_process_group: expected 'backend' to be {', '.join(map(repr, _BACKENDS))} or "
            f"None, got {backend!r}"
        )
    if is_initialized():
        return
    if backend is not None and "nccl" in backend and (obstacle := ops().obstacle("cuda")):
        raise RuntimeError(f"init_process_group: expected NCCL, got none: {obstacle}")
    ops()
    from lamella.distributed import _meeting

    told = init_method is not None or store is not None or rank >= 0 or "RANK" in os.environ
    if told and not _meeting.was_started_by_mpi():
        rank = _meeting.number_from(rank, "RANK")
        world_size = _meeting.number_from(world_size, "WORLD_SIZE")
        if not 0 <= rank < world_size:
            raise ValueError(
                f"init_process_group: expected 'rank' from 0 to {world_size - 1}, got {rank}"
            )
        if world_size > 1:
            limit = timeout or timedelta(minutes=30)
            store = store or _meeting.store_of(init_method, rank, world_size, limit)
            earlier = dict(os.environ)
            _stand_ins = _meeting.meet(store, rank, world_size, limit)
            try:
                ops().init(debug)
            finally:
                # Processes that this one starts must not inherit the environment of a rank.
                for name in set(os.environ) - set(earlier):
                    del os.environ[name]
                os.environ.update(earlier)
    if not is_initialized():
        ops().init(debug)
    _watch()
    for name, wanted, got in (
        ("world_size", world_size, get_world_size()),
        ("rank", rank, get_rank()),
    ):
        if wanted >= 0 and wanted != got:
            raise ValueError(
                f"init_process_group: expected '{name}' to be mpirun's, {got}, got {wanted}"
            )
    _backend = backend or "mpi"


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Waits for all ranks and ends the job, with all its groups. Ignored for other groups."""
    if group is None or group.number == 0:
        _end()


_watching = False


def _watch() -> None:
    """Installs handlers: an uncaught exception aborts the job on all ranks, and the job ends when
    the interpreter exits."""
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
    try:  # prints the traceback of this rank when the job is terminated
        faulthandler.register(signal.SIGTERM, all_threads=False, chain=True)
    except (AttributeError, ValueError, OSError, RuntimeError):
        pass  # standard error is not a file


def _end() -> None:
    global _stand_ins
    if is_initialized():
        ops().finalize()
    if _stand_ins is not None:
        stand_ins, _stand_ins = _stand_ins, None
        stand_ins.close()


def is_initialized() -> bool:
    """Whether this process has joined a job."""
    return loaded is not None and bool(loaded.is_initialized())


def get_backend(group: ProcessGroup | None = None) -> str:
    """The `backend` argument of init_process_group(), by default "mpi"."""
    return _backend


def get_rank(group: ProcessGroup | None = None) -> int:
    """The rank of this process in the group, -1 if it is not a member."""
    return int(ops().rank(number_of(group)))


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of ranks of the group."""
    return int(ops().size(number_of(group)))


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """The ranks in the job of the members of the group, in the group's order."""
    return list(ops().group_ranks(number_of(group)))


def rank_in(
    group: ProcessGroup | None, op: str, name: str, rank: int | None, in_group: int | None = None
) -> int:
    """The rank in the group: `in_group` if given, else that of `rank`, a rank in the job. Errors
    name the operator `op` and its arguments, which are `name` and 'group_' + `name`."""
    if in_group is not None:
        if rank is not None:
            raise ValueError(
                f"{op}: expected '{name}' or 'group_{name}', got both, {rank} and {in_group}"
            )
        return in_group
    if group is None or group.number == 0:
        return rank or 0
    ranks = get_process_group_ranks(group)
    if rank is None:
        return 0
    if rank not in ranks:
        raise ValueError(f"{op}: expected '{name}' to be a rank of the group {ranks}, got {rank}")
    return ranks.index(rank)


def named_rank_in(
    group: ProcessGroup | None, op: str, name: str, rank: int | None, in_group: int | None
) -> int:
    if rank is None and in_group is None:
        raise ValueError(f"{op}: expected '{name}' to be a rank, got None")
    return rank_in(group, op, name, rank, in_group)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in the group of a rank of the job."""
    return rank_in(group, "get_group_rank", "global_rank", global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the job of a rank of the group."""
    ranks = get_process_group_ranks(group)
    if not 0 <= group_rank < len(ranks):
        raise ValueError(
            f"get_global_rank: expected a number from 0 to {len(ranks) - 1}, got {group_rank}"
        )
    return ranks[group_rank]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank of this process on its machine, from the environment that its launcher set."""
    for name in ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"):
        if name in os.environ:
            return int(os.environ[name])
    if fallback_rank is None:
        raise RuntimeError("get_node_local_rank: expected LOCAL_RANK in the environment")
    return fallback_rank


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> ProcessGroup | None:
    """A group of the given ranks, in the order of the job, or of the list if not sort_ranks.

    The members must call this in the same order; other ranks may call it. The other arguments are
    ignored."""
    if ranks is None:
        return GroupMember.WORLD
    made = ProcessGroup(ops().new_group(sorted(ranks) if sort_ranks else list(ranks)))
    return made if made.rank() >= 0 else GroupMember.NON_GROUP_MEMBER


def new_subgroups(
    group_size: int | None = None, group: ProcessGroup | None = None, timeout: Any = None
) -> tuple[ProcessGroup | None, list[ProcessGroup | None]]:
    """Splits a group into groups of group_size consecutive ranks; returns this rank's group and the
    list of all."""
    count = get_world_size(group)
    size = count if group_size is None else group_size
    if size <= 0 or count % size != 0:
        raise ValueError(
            f"new_subgroups: expected 'group_size' to divide the {count} ranks, got {size}"
        )
    ranks = get_process_group_ranks(group)
    made = [new_group(ranks[at : at + size]) for at in range(0, count, size)]
    return made[get_rank(group) // size], made
