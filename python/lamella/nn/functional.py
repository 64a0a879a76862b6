"""Operators for neural networks: those declared for this module, and, under PyTorch's names and
argument orders, those that it shares with the package."""

from __future__ import annotations

import sys
from typing import Any

import lamella
from lamella import _C

globals().update(_C._functions("nn"))

# Some have the names of operators, in whose place they stand.
from lamella.nn.functional_activations import *  # noqa: E402, F403
from lamella.nn.functional_attention import *  # noqa: E402, F403
from lamella.nn.functional_dropout import *  # noqa: E402, F403
from lamella.nn.functional_layers import *  # noqa: E402, F403
from lamella.nn.functional_losses import *  # noqa: E402, F403
from lamella.nn.functional_rarer import *  # noqa: E402, F403


def __getattr__(name: str) -> Any:
    # relu_, tanh, sigmoid, ...: the same function as in the package.
    found = None if name.startswith("_") else getattr(lamella, name, None)
    if found is None or not callable(found):
        raise AttributeError(f"module 'lamella.nn.functional' has no attribute '{name}'")
    return found


sys.modules[__name__].__class__ = _C._Package
del sys
