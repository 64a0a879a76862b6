"""torch._VF: the operators that torch.nn calls by this name."""

from __future__ import annotations

from typing import Any

import lamella


def __getattr__(name: str) -> Any:
    return getattr(lamella, name)
