"""Gradient clipping, parameters as one vector, norms of weights, packed sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lamella.nn.utils.clip_grad import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from lamella.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters

if TYPE_CHECKING:
    from lamella.nn.utils import parametrizations as parametrizations
    from lamella.nn.utils import parametrize as parametrize
    from lamella.nn.utils import prune as prune
    from lamella.nn.utils import rnn as rnn
    from lamella.nn.utils import stateless as stateless
    from lamella.nn.utils._norms import (
        remove_spectral_norm,
        remove_weight_norm,
        spectral_norm,
        weight_norm,
    )

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "remove_spectral_norm",
    "remove_weight_norm",
    "skip_init",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]

# Modules of this package, and functions of one of them, which are imported on first use.
_MODULES = ("parametrizations", "parametrize", "prune", "rnn", "stateless")
_FUNCTIONS = ("remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"lamella.nn.utils.{name}")
    if name in _FUNCTIONS:
        return getattr(import_module("lamella.nn.utils._norms"), name)
    from lamella._missing import missing

    raise missing(__name__, name)


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module with uninitialised parameters; module_cls must take the argument `device`."""
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
