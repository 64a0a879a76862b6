"""torch.distributed.nn: collectives with gradients, which those of lamella.distributed have."""

from __future__ import annotations

from lamella.compat._fallback import names_of

__getattr__, __dir__ = names_of("distributed")
