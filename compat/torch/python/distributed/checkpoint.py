"""torch.distributed.checkpoint: Lamella's own, and stand-ins for names that it lacks."""

from __future__ import annotations

from lamella.compat import _hollow
from lamella.compat._fallback import names_of

_TAIL = "distributed.checkpoint"

__getattr__, __dir__ = names_of(_TAIL, lambda name: _hollow.member(_TAIL, name))
