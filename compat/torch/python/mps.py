"""torch.mps: there is no Apple GPU device."""

from __future__ import annotations

from lamella.compat import cuda
from lamella.compat.cuda import device_count as device_count
from lamella.compat.cuda import is_available as is_available
from lamella.compat.cuda import manual_seed as manual_seed

__getattr__, __dir__ = cuda._as_for("mps")

current_allocated_memory = cuda._refusing("current_allocated_memory")
driver_allocated_memory = cuda._refusing("driver_allocated_memory")
recommended_max_memory = cuda._refusing("recommended_max_memory")
