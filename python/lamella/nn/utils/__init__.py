"""Gradients that are kept small, parameters as one vector, norms of weights, packed sequences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import lamella
from lamella import Tensor

if TYPE_CHECKING:
    from lamella.nn.utils import parametrizations as parametrizations
    from lamella.nn.utils import parametrize as parametrize
    from lamella.nn.utils import prune as prune
    from lamella.nn.utils import rnn as rnn
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

# Modules of this package, and functions of one of them, which are loaded when first asked for.
_MODULES = ("parametrizations", "parametrize", "prune", "rnn")
_FUNCTIONS = ("remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"lamella.nn.utils.{name}")
    if name in _FUNCTIONS:
        return getattr(import_module("lamella.nn.utils._norms"), name)
    raise AttributeError(f"module 'lamella.nn.utils' has no attribute '{name}'")


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module without values for its parameters: module_cls takes the argument `device`."""
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)


def _grads(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors together, as if they were one vector: a tensor without dimensions."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not tensors:
        return lamella.tensor(0.0)
    with lamella.no_grad():
        # The norm of the norms is the norm of all, for every p but 0 (a count, which adds up).
        norms = [tensor.detach().norm(norm_type) for tensor in tensors]
        device = norms[0].device
        stacked = lamella.stack([norm.to(device) for norm in norms])
        total = stacked.sum() if norm_type == 0 else stacked.norm(norm_type)
    if error_if_nonfinite and not bool(total.isfinite().item()):
        raise RuntimeError(
            f"clip_grad_norm_: expected the total norm of order {norm_type} to be finite, got "
            f"{total.item()}; with error_if_nonfinite=False the gradients are scaled all the same"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scales the gradients by max_norm / total_norm where that is below 1."""
    with lamella.no_grad():
        factor = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in _grads(parameters):
            grad.detach().mul_(factor.to(grad.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients so that their norm is at most max_norm; gives the norm from before."""
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Puts each element of the gradients into [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    with lamella.no_grad():
        for grad in _grads(parameters):
            grad.detach().clamp_(min=-clip_value, max=clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements, one tensor after the other."""
    return lamella.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes the parameters views of a vector's parts, as parameters_to_vector() orders them."""
    if not isinstance(vec, Tensor):
        raise TypeError(
            f"vector_to_parameters: expected 'vec' to be a Tensor, got {type(vec).__name__}"
        )
    place = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[place : place + count].view_as(parameter).detach()
        place += count
