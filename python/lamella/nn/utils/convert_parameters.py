"""Parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

import lamella
from lamella import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


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
