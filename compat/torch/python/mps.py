"""torch.mps: there is no Apple GPU device."""

from __future__ import annotations

from lamella.compat import _no_cuda

__getattr__, __dir__ = _no_cuda._as_for("mps")

current_allocated_memory = _no_cuda._refusing("current_allocated_memory")
driver_allocated_memory = _no_cuda._refusing("driver_allocated_memory")
recommended_max_memory = _no_cuda._refusing("recommended_max_memory")
