"""The modules that classes say they are from: libraries choose what to do by it."""

from __future__ import annotations

import sys

import lamella


def name_modules() -> None:
    """Lets the classes of lamella.nn, and parameters, say that they are from torch.nn."""
    for kind in vars(lamella.nn).values():
        if isinstance(kind, type) and kind.__module__.startswith("lamella.nn."):
            module = sys.modules[kind.__module__]
            kind.__module__ = kind.__module__.replace("lamella", "torch", 1)
            sys.modules.setdefault(kind.__module__, module)
