"""torch.xpu: there is no such device."""

from __future__ import annotations

from lamella.compat import cuda
from lamella.compat.cuda import device_count as device_count
from lamella.compat.cuda import is_available as is_available
from lamella.compat.cuda import manual_seed_all as manual_seed_all

__getattr__, __dir__ = cuda._as_for("xpu")
