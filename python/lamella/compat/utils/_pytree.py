"""torch.utils._pytree: lamella.utils._pytree, and names for annotations."""

from __future__ import annotations

from typing import Any

from lamella.compat._fallback import names_of

PyTree = Any
Context = Any

__getattr__, __dir__ = names_of("utils._pytree")
