"""torch.nn: lamella.nn, and DataParallel."""

from __future__ import annotations

from typing import Any

from lamella.compat._fallback import names_of


def _more(name: str) -> Any:
    if name in ("DataParallel", "DistributedDataParallel"):
        from lamella.compat.nn import parallel

        return parallel.DataParallel if name == "DataParallel" else None
    return None


__getattr__, __dir__ = names_of("nn", _more)
