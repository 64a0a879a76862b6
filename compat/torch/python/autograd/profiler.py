"""torch.autograd.profiler: lamella.profiler, and PyTorch's names for it."""

from __future__ import annotations

from lamella.compat._fallback import names_of
from lamella.compat._profile_events import EventList as EventList
from lamella.compat._profile_events import FunctionEvent as FunctionEvent
from lamella.compat._profile_events import FunctionEventAvg as FunctionEventAvg
from lamella.compat.profiler import OldProfile as profile  # noqa: F401
from lamella.compat.profiler import kineto_available as kineto_available
from lamella.profiler import record_function as record_function

__getattr__, __dir__ = names_of("profiler")


class emit_nvtx:
    """RuntimeError if enabled, because there is no GPU; else a context that does nothing."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        if enabled:
            raise RuntimeError(f"{type(self).__name__}: expected a CUDA device, found none")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


class emit_itt(emit_nvtx):
    """The same as emit_nvtx(), for another tool."""
