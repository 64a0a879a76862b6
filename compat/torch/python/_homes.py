"""__module__ of classes: libraries compare it with PyTorch's module names."""

from __future__ import annotations

import sys

import lamella


def name_modules() -> None:
    """Sets __module__ of the classes of lamella.nn, and of parameters, to torch.nn's modules."""
    for kind in vars(lamella.nn).values():
        if isinstance(kind, type) and kind.__module__.startswith("lamella.nn."):
            module = sys.modules[kind.__module__]
            kind.__module__ = kind.__module__.replace("lamella", "torch", 1)
            sys.modules.setdefault(kind.__module__, module)
