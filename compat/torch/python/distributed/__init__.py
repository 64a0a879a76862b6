"""torch.distributed: lamella.distributed (ranks connected by MPI) under PyTorch's names."""

from __future__ import annotations

import datetime
import os
from typing import Any

import lamella.distributed
from lamella.compat._fallback import names_of
from lamella.distributed import is_available as is_gloo_available
from lamella.distributed._store import FileStore, HashStore, PrefixStore, Store, TCPStore

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore", "is_gloo_available"]

__getattr__, __dir__ = names_of("distributed")

default_pg_timeout = datetime.timedelta(minutes=30)


class ReduceOp(lamella.distributed.ReduceOp):
    """Reductions over ranks; no collective accepts the last four."""

    BAND, BOR, BXOR, PREMUL_SUM = "band", "bor", "bxor", "premul_sum"


reduce_op = ReduceOp


class Backend(str):
    """A backend's name."""

    GLOO, NCCL, MPI, UCC, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "undefined"


def _get_default_group() -> Any:
    """The group of all ranks."""
    import lamella.distributed

    return lamella.distributed.group.WORLD


def is_ucc_available() -> bool:
    """False."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether torch.distributed.run started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


class GradBucket:
    """RuntimeError: gradients are not grouped into buckets."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("GradBucket: expected no buckets; gradients travel one by one")
