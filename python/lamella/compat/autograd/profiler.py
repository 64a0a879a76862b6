"""torch.autograd.profiler: lamella.profiler, and names of PyTorch's."""

from __future__ import annotations

from typing import Any

from lamella.compat._fallback import names_of
from lamella.compat.profiler import kineto_available as kineto_available
from lamella.compat.profiler import profile as profile
from lamella.profiler import Event as FunctionEvent  # noqa: F401
from lamella.profiler import key_averages as EventList  # noqa: F401
from lamella.profiler import record_function as record_function

__getattr__, __dir__ = names_of("profiler")


class emit_nvtx:
    """RuntimeError: there is no GPU."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("emit_nvtx: expected a CUDA device, found none")


emit_itt = emit_nvtx
