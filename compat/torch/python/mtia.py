"""torch.mtia: there is no such device."""

from __future__ import annotations

from lamella.compat import _no_cuda
from lamella.compat._no_cuda import device_count as device_count
from lamella.compat._no_cuda import is_available as is_available
from lamella.compat._no_cuda import manual_seed_all as manual_seed_all

__getattr__, __dir__ = _no_cuda._as_for("mtia")
