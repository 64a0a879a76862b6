"""Layers, activations and losses. Rarely used ones are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamella.nn.modules.activation import *  # noqa: F403
from lamella.nn.modules.batchnorm import *  # noqa: F403
from lamella.nn.modules.container import *  # noqa: F403
from lamella.nn.modules.conv import *  # noqa: F403
from lamella.nn.modules.dropout import *  # noqa: F403
from lamella.nn.modules.linear import *  # noqa: F403
from lamella.nn.modules.module import *  # noqa: F403
from lamella.nn.modules.normalization import *  # noqa: F403

if TYPE_CHECKING:
    from lamella.nn.modules.adaptive import *  # noqa: F403
    from lamella.nn.modules.channelshuffle import *  # noqa: F403
    from lamella.nn.modules.data_parallel import *  # noqa: F403
    from lamella.nn.modules.distance import *  # noqa: F403
    from lamella.nn.modules.flatten import *  # noqa: F403
    from lamella.nn.modules.fold import *  # noqa: F403
    from lamella.nn.modules.instancenorm import *  # noqa: F403
    from lamella.nn.modules.lazy import *  # noqa: F403
    from lamella.nn.modules.loss import *  # noqa: F403
    from lamella.nn.modules.multihead import *  # noqa: F403
    from lamella.nn.modules.padding import *  # noqa: F403
    from lamella.nn.modules.pixelshuffle import *  # noqa: F403
    from lamella.nn.modules.pooling import *  # noqa: F403
    from lamella.nn.modules.rnn import *  # noqa: F403
    from lamella.nn.modules.sparse import *  # noqa: F403
    from lamella.nn.modules.syncbatchnorm import *  # noqa: F403
    from lamella.nn.modules.transformer import *  # noqa: F403
    from lamella.nn.modules.upsampling import *  # noqa: F403

# Modules that are searched for a name, in this order.
_LATER = (
    "flatten",
    "sparse",
    "instancenorm",
    "upsampling",
    "pixelshuffle",
    "pooling",
    "loss",
    "multihead",
    "transformer",
    "rnn",
    "padding",
    "channelshuffle",
    "distance",
    "fold",
    "lazy",
    "adaptive",
    "syncbatchnorm",
    "data_parallel",
)


def _public_names(file: str) -> dict[str, Any]:
    """The public names of a module of this package."""
    from importlib import import_module

    module = import_module(f"lamella.nn.modules.{file}")
    return {name: getattr(module, name) for name in module.__all__}


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        for file in _LATER:
            found = _public_names(file)
            globals().update(found)
            if name in found:
                return found[name]
    raise AttributeError(f"module 'lamella.nn' has no attribute '{name}'")


def __dir__() -> list[str]:
    for file in _LATER:
        globals().update(_public_names(file))
    return sorted(globals())
