"""torch.distributed: lamella.distributed over MPI, and the backends that there are not."""

from __future__ import annotations

from lamella.compat._fallback import names_of

__getattr__, __dir__ = names_of("distributed")


class Backend(str):
    """The name of a backend."""

    GLOO, NCCL, MPI, UCC, UNDEFINED = "gloo", "nccl", "mpi", "ucc", "undefined"


def is_nccl_available() -> bool:
    """False."""
    return False


is_gloo_available = is_ucc_available = is_torchelastic_launched = is_nccl_available
