"""Operators for neural networks: those declared for this module, and, under PyTorch's names and
argument orders, those that it shares with the package."""

from __future__ import annotations

import sys
from typing import Any

import lamella
from lamella import _C

globals().update(_C._functions("nn"))

# Functions of these modules replace the operators of the same name.
from lamella.nn.functional_activations import *  # noqa: E402, F403
from lamella.nn.functional_attention import *  # noqa: E402, F403
from lamella.nn.functional_dropout import *  # noqa: E402, F403
from lamella.nn.functional_layers import *  # noqa: E402, F403
from lamella.nn.functional_losses import *  # noqa: E402, F403
from lamella.nn.functional_pooling import *  # noqa: E402, F403

# Names that are the same function in the package.
_OF_PACKAGE = (
    "avg_pool1d celu_ channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d cosine_similarity hardshrink pairwise_distance pdist "
    "pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ selu_ sigmoid tanh threshold_"
)


def __dir__() -> list[str]:
    return sorted({*globals(), *_OF_PACKAGE.split()})


def __getattr__(name: str) -> Any:
    if name == "__all__":
        names = {*globals(), *_OF_PACKAGE.split()} - {"Any"}
        values = {n: globals()[n] if n in globals() else getattr(lamella, n) for n in names}
        return sorted(n for n, value in values.items() if n[0] != "_" and callable(value))
    found = None if name.startswith("_") else getattr(lamella, name, None)
    if found is None or not callable(found):
        from lamella._missing import missing

        raise missing(__name__, name)
    return found


sys.modules[__name__].__class__ = _C._Package
del sys
