"""torch.distributed: lamella.distributed over MPI, and the backends that there are not."""

from __future__ import annotations

import datetime
from typing import Any

import lamella.distributed
from lamella.compat._fallback import names_of

__getattr__, __dir__ = names_of("distributed")


default_pg_timeout = datetime.timedelta(minutes=30)


class ReduceOp(lamella.distributed.ReduceOp):
    """How the values of all ranks become one; the last four are names that no collective takes."""

    BAND, BOR, BXOR, PREMUL_SUM = "band", "bor", "bxor", "premul_sum"


reduce_op = ReduceOp


class Backend(str):
    """The name of a backend."""

    GLOO, NCCL, MPI, UCC, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "undefined"


def _get_default_group() -> Any:
    """The group of all ranks."""
    import lamella.distributed

    return lamella.distributed.group.WORLD


def get_global_rank(group: Any, group_rank: int) -> int:
    """The rank in the job of one in a group."""
    return lamella.distributed.get_process_group_ranks(group)[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in a group of one in the job; ValueError if it is not in the group."""
    return lamella.distributed.get_process_group_ranks(group).index(global_rank)


_get_global_rank = get_global_rank


def is_nccl_available() -> bool:
    """False."""
    return False


is_gloo_available = is_ucc_available = is_torchelastic_launched = is_nccl_available


class TCPStore:
    """RuntimeError: MPI's processes need no store."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"{type(self).__name__}: expected a job that mpirun began")


class FileStore(TCPStore):
    """RuntimeError: MPI's processes need no store."""


Store = HashStore = PrefixStore = TCPStore


class GradBucket:
    """RuntimeError: gradients travel without buckets."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("GradBucket: expected no buckets; gradients travel one by one")
