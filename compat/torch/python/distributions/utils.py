"""torch.distributions.utils."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import lamella
import lamella.nn.functional as F
from lamella import Tensor

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcasts all values; numbers become tensors with the first tensor's dtype and device."""
    like: dict[str, Any] = {"dtype": lamella.get_default_dtype()}
    for value in values:
        if isinstance(value, Tensor):
            like = {"dtype": value.dtype, "device": value.device}
            break
        if not isinstance(value, Number) and not hasattr(value, "__torch_function__"):
            raise ValueError(
                f"broadcast_all: expected numbers and tensors, got {type(value).__name__}"
            )
    return lamella.broadcast_tensors(
        *(v if isinstance(v, Tensor) else lamella.tensor(v, **like) for v in values)
    )


def _parameters(*values: Any) -> tuple[Any, ...]:
    """The batch shape, () if all values are numbers, and the values, broadcast."""
    made = broadcast_all(*values)
    return (() if all(isinstance(v, Number) for v in values) else made[0].size(), *made)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Samples of the standard normal distribution."""
    return lamella.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamps probabilities to [eps, 1 - eps]."""
    eps = lamella.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Converts log odds, or unnormalised log probabilities, to probabilities."""
    return lamella.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Converts probabilities to log odds or log probabilities."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Builds lower triangular matrices from their elements in row order, from diagonal `diag`
    down."""
    count, size = vec.shape[-1], 0
    while sum(max(0, min(size, i + 1 + diag)) for i in range(size)) < count:
        size += 1
    rows, columns = lamella.tril_indices(size, size, diag).unbind(0)
    if rows.numel() != count:
        raise ValueError(f"vec_to_tril_matrix: expected the elements of a triangle, got {count}")
    flat = vec.new_zeros(vec.shape[:-1] + (size * size,))
    places = (rows * size + columns).expand(vec.shape)
    return flat.scatter(-1, places, vec).view(vec.shape[:-1] + (size, size))


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of lower triangles in row order, from diagonal `diag` down."""
    size = mat.shape[-1]
    rows, columns = lamella.tril_indices(size, size, diag).unbind(0)
    return mat[..., rows, columns]


class lazy_property:  # noqa: N801
    """A property that is computed once and then stored; gradients are enabled for it."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.__name__ = wrapped.__name__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return _LazyOfClass(self.wrapped)
        with lamella.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _LazyOfClass(lazy_property, property):
    """The value of a lazy property on the class."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)
