"""Gradient clipping."""

from __future__ import annotations

from collections.abc import Iterable

import lamella
from lamella import Tensor

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


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
    norm_type = float(norm_type)  # accepts "inf"
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not tensors:
        return lamella.tensor(0.0)
    with lamella.no_grad():
        # The norm of the norms is the norm of all, except for p = 0, which counts elements.
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
    """Scales the gradients by max_norm / total_norm if that is below 1."""
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
    """Scales the gradients so that their norm is at most max_norm; returns the norm before."""
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clamps each element of the gradients to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    with lamella.no_grad():
        for grad in _grads(parameters):
            grad.detach().clamp_(min=-clip_value, max=clip_value)
