"""torch.amp: lamella.amp, and GradScaler."""

from __future__ import annotations

from lamella.amp import autocast as autocast
from lamella.compat._fallback import names_of
from lamella.compat.amp.grad_scaler import GradScaler as GradScaler

__getattr__, __dir__ = names_of("amp")
