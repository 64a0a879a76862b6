"""torch.distributed.nn: differentiable collectives, as those of lamella.distributed are."""

from __future__ import annotations

from lamella.compat._fallback import names_of

__getattr__, __dir__ = names_of("distributed")
