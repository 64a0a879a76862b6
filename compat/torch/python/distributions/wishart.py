"""The Wishart distribution."""

from __future__ import annotations

import math
from typing import Any

import lamella
from lamella import Tensor
from lamella.compat.distributions import constraints
from lamella.compat.distributions.continuous import Chi2
from lamella.compat.distributions.distribution import ExponentialFamily
from lamella.compat.distributions.multivariate import _OfCovariance


class Wishart(_OfCovariance, ExponentialFamily):
    """Sums of `df` outer products of normal vectors, sampled by Bartlett's decomposition."""

    arg_constraints: Any = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = self._given(
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        if len(given) != 1 or given[0][1].dim() < 2:
            raise ValueError(
                "Wishart: expected a matrix as one of covariance_matrix, precision_matrix and "
                "scale_tril"
            )
        ((name, matrix),) = given
        df = lamella.as_tensor(df, dtype=matrix.dtype)
        batch = lamella.broadcast_shapes(matrix.shape[:-2], df.shape)
        event = matrix.shape[-2:]
        if bool(df.le(event[-1] - 1).any().item()):
            raise ValueError(f"Wishart: expected 'df' to be greater than {event[-1] - 1}, got {df}")
        self.df = df.expand(batch)
        self.arg_constraints = {
            **type(self).arg_constraints,
            "df": constraints.greater_than(event[-1] - 1),
        }
        setattr(self, name, matrix.expand(batch + (-1, -1)))
        super().__init__(batch, event, validate_args=validate_args)
        self._factor(name, matrix)
        self._dist_chi2 = self._squares()

    def _squares(self) -> Chi2:
        less = lamella.arange(self._event_shape[-1], dtype=self.df.dtype)
        return Chi2(self.df.unsqueeze(-1) - less.expand(self._batch_shape + (-1,)))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Wishart:
        made: Wishart = self._like(Wishart, _instance, batch_shape)
        made.df = self.df.expand(made._batch_shape)
        made.arg_constraints = self.arg_constraints
        made._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        made._dist_chi2 = made._squares()
        return made

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        """With the natural parameters -V^-1 / 2 and (df - p - 1) / 2."""
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        found: Tensor = -half * lamella.linalg.slogdet(-x)[1] + lamella.mvlgamma(half, p)
        return found

    mean = property(lambda self: self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = lamella.where(factor <= 0, math.nan, factor)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view(self._batch_shape + (1, 1)) * (v.pow(2) + outer)

    def _draw(self, sample_shape: Any) -> Tensor:
        size = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed(dim1=-2, dim2=-1)
        rows, columns = lamella.tril_indices(size, size, offset=-1).unbind(0)
        below = lamella.randn(
            (*tuple(sample_shape), *self._batch_shape, size * (size - 1) // 2), dtype=noise.dtype
        )
        noise[..., rows, columns] = below
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        if max_try_correction is None:
            max_try_correction = 3 if self._event_shape[-1] > 3 else 10
        batch = [-1 - d for d in range(len(self._batch_shape))]

        def over_batch(found: Tensor) -> Tensor:
            return found.amax(batch) if batch else found

        sample = self._draw(sample_shape)
        # In the first check PyTorch redraws the positive definite samples, afterwards the others.
        # The same is done here, so that equal seeds give equal samples.
        again = over_batch(self.support.check(sample))
        for _ in range(max_try_correction):
            if not again.any():
                break
            drawn = self._draw(again[again].shape)
            sample[again] = drawn
            again[again.clone()] = over_batch(~self.support.check(drawn))
        return sample

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        nu, p = self.df, self._event_shape[-1]
        solved = lamella.cholesky_solve(value, self._unbroadcasted_scale_tril)
        return (
            -nu * (p * math.log(2.0) / 2 + self._half_log_det())
            - lamella.mvlgamma(nu / 2, p)
            + (nu - p - 1) / 2 * lamella.linalg.slogdet(value).logabsdet
            - solved.diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        steps = 0.5 * lamella.arange(p, dtype=nu.dtype)
        digamma = lamella.digamma((nu / 2).unsqueeze(-1) - steps).sum(-1)
        return (
            (p + 1) * (p * math.log(2.0) / 2 + self._half_log_det())
            + lamella.mvlgamma(nu / 2, p)
            - (nu - p - 1) / 2 * digamma
            + nu * p / 2
        )
