"""torch.mtia: there is no such device."""

from __future__ import annotations

from lamella.compat import _no_cuda

__getattr__, __dir__ = _no_cuda._as_for("mtia")
