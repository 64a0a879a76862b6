"""Helpers of gradcheck(): tensors as vectors of real coordinates, and random tensors."""

from __future__ import annotations

from typing import Any

import lamella
from lamella import Tensor


def random_gradient(output: Tensor, apart: bool) -> Tensor:
    shape = tuple(output.shape)
    made = lamella.empty(shape, dtype=output.dtype, device=output.device)
    # Draws as many numbers as PyTorch's gradgradcheck, so that later draws of a program match its.
    (lamella.view_as_real(made) if made.is_complex() else made).uniform_(-1, 1)
    if apart and made.numel() > 1:
        made = made.repeat_interleave(2, dim=-1)[..., ::2]
    return made.requires_grad_()


def tuple_of(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def of_values(func: Any, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The function and its inputs with the values of sparse tensors in place of these."""
    sparse: dict[int, Any] = {
        i: x
        for i, x in enumerate(inputs)
        if isinstance(x, Tensor) and x.layout != lamella.strided and x.requires_grad
    }
    if not sparse:
        return func, inputs

    def function(*given: Any) -> Any:
        found = func(*(sparse[i]._with(x) if i in sparse else x for i, x in enumerate(given)))
        dense = tuple(y.to_dense() if isinstance(y, Tensor) else y for y in tuple_of(found))
        return dense if isinstance(found, (tuple, list)) else dense[0]

    values = (
        x._stored.detach().clone().requires_grad_() if i in sparse else x
        for i, x in enumerate(inputs)
    )
    return function, tuple(values)


def differentiable(outputs: Any) -> tuple[Tensor, ...]:
    return tuple(y for y in tuple_of(outputs) if isinstance(y, Tensor) and y.requires_grad)


def is_continuous(tensor: Any) -> bool:
    return isinstance(tensor, Tensor) and (tensor.is_floating_point() or tensor.is_complex())


def coordinates(tensor: Tensor) -> Tensor:
    """The tensor as a vector of real numbers; see Note [Complex numbers are pairs]."""
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = lamella.view_as_real(tensor.clone() if tensor.is_conj() else tensor)
    return tensor.reshape(-1).to(lamella.float64)


def from_coordinates(vector: Tensor, like: Tensor) -> Tensor:
    """The tensor with the shape and dtype of `like` that has these coordinates."""
    if not like.is_complex():
        return vector.to(like.dtype).reshape(like.shape)
    return lamella.view_as_complex(vector.reshape((*like.shape, 2))).to(like.dtype)


def kind(tensor: Tensor) -> str:
    return f"{list(tensor.shape)} of {tensor.dtype}"


def with_kinds(outputs: tuple[Any, ...], kinds: dict[int, str]) -> tuple[Any, ...]:
    """The outputs, checked to have the kinds that they had before the inputs were moved."""
    for i, before in kinds.items():
        after = kind(outputs[i]) if i < len(outputs) else "no such output"
        if after != before:
            raise AssertionError(
                f"gradcheck: expected output {i} to keep its shape and dtype when the inputs are "
                f"moved, got {before} and {after}"
            )
    return outputs


def count(tensor: Tensor) -> int:
    return tensor.numel() * (2 if tensor.is_complex() else 1)


def basis(tensor: Tensor, place: int) -> Tensor:
    vector = lamella.zeros(count(tensor), dtype=lamella.float64)
    vector[place] = 1
    return from_coordinates(vector, tensor)


def clone(tensor: Tensor) -> Tensor:
    return tensor.detach().clone(memory_format=lamella.preserve_format)


def make_undefined() -> Any:
    class UndefinedGradient(lamella.autograd.Function):
        """The identity, whose backward returns None for all gradients."""

        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            return tuple(t.view_as(t) for t in tensors)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return (None,) * len(grads)

    return UndefinedGradient


def directions(inputs: list[Tensor], outputs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Random unit vectors with positive coordinates, from a separate generator."""
    generator = lamella.Generator().manual_seed(0)

    def direction(tensor: Tensor) -> Tensor:
        vector = lamella.rand(count(tensor), dtype=lamella.float64, generator=generator)
        length = float(vector.norm()) if vector.numel() else 1.0
        return vector / (length or 1.0)

    return [direction(x) for x in inputs], [direction(y) for y in outputs]
