"""torch.distributions.transforms: transforms of vectors, matrices, and parts of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import lamella
import lamella.nn.functional as F
from lamella import Size, Tensor
from lamella.compat.distributions import constraints
from lamella.compat.distributions.scalar_transforms import (  # noqa: F401
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    Transform,
    _clipped_sigmoid,
    _InverseTransform,
    _Plain,
    check_dims,
    identity_transform,
)
from lamella.compat.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = (
    "AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform "
    "CumulativeDistributionTransform ExpTransform IndependentTransform LowerCholeskyTransform "
    "PositiveDefiniteTransform PowerTransform ReshapeTransform SigmoidTransform SoftplusTransform "
    "TanhTransform SoftmaxTransform StackTransform StickBreakingTransform Transform "
    "identity_transform"
).split()


class SoftmaxTransform(_Plain):
    """From real vectors to probabilities; not bijective, since adding a constant changes
    nothing."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        check_dims(self, shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Plain):
    """From real vectors to probability vectors with one more entry, by stick breaking."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _offset(self, x: Tensor) -> Tensor:
        return x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)

    def _call(self, x: Tensor) -> Tensor:
        z = SigmoidTransform()(x - self._offset(x).log())
        return F.pad(z, [0, 1], value=1) * F.pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        cropped = y[..., :-1]
        rest = (1 - cropped.cumsum(-1)).clamp(min=lamella.finfo(y.dtype).tiny)
        return cropped.log() - rest.log() + self._offset(cropped).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offset(x).log()
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        check_dims(self, shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        check_dims(self, shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(_Plain):
    """From matrices to lower triangular ones with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """From matrices to positive definite ones."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(lamella.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """From real vectors to Cholesky factors of correlation matrices."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = lamella.tanh(x)
        eps = lamella.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r**2).sqrt().cumprod(-1)
        r = r + lamella.eye(r.shape[-1], dtype=r.dtype)
        return r * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = F.pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        rows = 1 - (y * y).cumsum(-1)
        stick = 0.5 * tril_matrix_to_vec(rows, diag=-2).log().sum(-1)
        tanh = -2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return stick + tanh

    def forward_shape(self, shape: Any) -> Any:
        check_dims(self, shape, 1)
        size = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != shape[-1]:
            raise ValueError(
                "CorrCholeskyTransform: expected as many numbers as a triangle below a diagonal "
                f"has, got {shape[-1]}"
            )
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Any) -> Any:
        check_dims(self, shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError(f"CorrCholeskyTransform: expected square matrices, got {list(shape)}")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class _PartsTransform(Transform):
    """The base: a transform for each part of a value along a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if cache_size:
            tseq = [part.with_cache(cache_size) for part in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms, self.dim = list(tseq), dim

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, values: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _check_size(self, value: Tensor, size: int) -> None:
        count = value.dim()
        if not -count <= self.dim < count or value.shape[self.dim] != size:
            raise AssertionError(
                f"{type(self).__name__}: expected a size of {size} in dimension {self.dim}, got "
                f"{list(value.shape)}"
            )

    bijective = property(lambda self: all(part.bijective for part in self.transforms))

    def _call(self, x: Tensor) -> Tensor:
        return self._join([t(v) for t, v in zip(self.transforms, self._parts(x))])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join([t.inv(v) for t, v in zip(self.transforms, self._parts(y))])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        rows = zip(self.transforms, self._parts(x), self._parts(y))
        return self._join([t.log_abs_det_jacobian(a, b) for t, a, b in rows])


class CatTransform(_PartsTransform):
    """A transform for each section along a dimension; `lengths` are the sections' sizes."""

    _arguments = "transforms dim lengths"

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Any = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    event_dim = property(lambda self: max(part.event_dim for part in self.transforms))
    length = property(lambda self: sum(self.lengths), doc="The sum of the lengths.")

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        self._check_size(value, self.length)
        return value.split(self.lengths, self.dim)

    def _join(self, values: list[Tensor]) -> Tensor:
        return lamella.cat(values, self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_PartsTransform):
    """A transform for each slice along a dimension."""

    _arguments = "transforms dim"

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        self._check_size(value, len(self.transforms))
        return value.unbind(self.dim)

    def _join(self, values: list[Tensor]) -> Tensor:
        return lamella.stack(values, self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """From values to their cumulative probabilities."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1
    _arguments = "distribution"

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
