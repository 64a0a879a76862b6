"""Multivariate normal distributions, and correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import lamella
from lamella import Size, Tensor
from lamella.compat.distributions import constraints
from lamella.compat.distributions.dirichlet import Beta
from lamella.compat.distributions.distribution import Distribution
from lamella.compat.distributions.utils import lazy_property


def _batch_mv(mat: Tensor, vec: Tensor) -> Tensor:
    return lamella.matmul(mat, vec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(triangle: Tensor, x: Tensor) -> Tensor:
    """The squared norms of triangle⁻¹ x."""
    solved = lamella.linalg.solve_triangular(triangle, x.unsqueeze(-1), upper=False)
    return solved.squeeze(-1).pow(2).sum(-1)


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    factor = lamella.linalg.cholesky(precision.flip((-2, -1)))
    inverse = factor.flip((-2, -1)).transpose(-2, -1)
    eye = lamella.eye(precision.shape[-1], dtype=precision.dtype)
    return lamella.linalg.solve_triangular(inverse, eye, upper=False)


class _OfCovariance(Distribution):
    """The base of distributions of a matrix or its inverse or its Cholesky factor."""

    _unbroadcasted_scale_tril: Tensor

    @staticmethod
    def _given(**matrices: Any) -> list[tuple[str, Any]]:
        return [(name, matrix) for name, matrix in matrices.items() if matrix is not None]

    def _factor(self, name: str, matrix: Tensor) -> None:
        """Sets the Cholesky factor of covariance_matrix from the matrix of this name."""
        if name == "covariance_matrix":
            matrix = lamella.linalg.cholesky(matrix)
        elif name == "precision_matrix":
            matrix = _precision_to_scale_tril(matrix)
        self._unbroadcasted_scale_tril = matrix

    def _wide(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of covariance_matrix."""
        return self._wide(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance, or the scale of matrices."""
        factor = self._unbroadcasted_scale_tril
        return self._wide(lamella.matmul(factor, factor.mT))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of covariance_matrix."""
        return self._wide(lamella.cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(_OfCovariance):
    """Multivariate normal with mean and covariance, precision, or Cholesky factor of the
    covariance."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
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
        if loc.dim() < 1 or len(given) != 1:
            raise ValueError(
                "MultivariateNormal: expected a vector 'loc', and one of covariance_matrix, "
                "precision_matrix and scale_tril"
            )
        ((name, matrix),) = given
        if matrix.dim() < 2:
            raise ValueError(f"MultivariateNormal: expected '{name}' to have two dimensions")
        batch = lamella.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch + (-1, -1)))
        self.loc = loc.expand(batch + (-1,))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._factor(name, matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._like(MultivariateNormal, _instance, batch_shape)
        shape = made._batch_shape + self._event_shape
        made.loc = self.loc.expand(shape)
        made._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(made, name, getattr(self, name).expand(shape + self._event_shape))
        return made

    mean = property(lambda self: self.loc)
    mode = mean

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = lamella.empty(shape, dtype=self.loc.dtype, device=self.loc.device).normal_()
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        squares = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        count = self._event_shape[0]
        return -0.5 * (count * math.log(2 * math.pi) + squares) - self._half_log_det()

    def entropy(self) -> Tensor:
        count = self._event_shape[0]
        entropy = 0.5 * count * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy


class LowRankMultivariateNormal(Distribution):
    """Multivariate normal with covariance cov_factor cov_factorᵀ + diag(cov_diag)."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        sizes = (cov_factor.shape[-2:-1], cov_diag.shape[-1:], loc.shape[-1:])
        if loc.dim() < 1 or cov_factor.dim() < 2 or len(set(map(tuple, sizes))) > 1:
            raise ValueError(
                "LowRankMultivariateNormal: expected a vector 'loc', a matrix 'cov_factor' and a "
                "vector 'cov_diag' of one size"
            )
        batch = lamella.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        event = loc.shape[-1:]
        self.loc = loc.expand(batch + event)
        self.cov_diag = cov_diag.expand(batch + event)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = self._capacitance()
        super().__init__(batch, event, validate_args=validate_args)

    def _capacitance(self) -> Tensor:
        factor = self._unbroadcasted_cov_factor
        scaled = factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        eye = lamella.eye(factor.shape[-1], dtype=factor.dtype)
        return lamella.linalg.cholesky(lamella.matmul(scaled, factor) + eye)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._like(LowRankMultivariateNormal, _instance, batch_shape)
        shape = made._batch_shape + self._event_shape
        made.loc, made.cov_diag = self.loc.expand(shape), self.cov_diag.expand(shape)
        made.cov_factor = self.cov_factor.expand(shape + self.cov_factor.shape[-1:])
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(made, name, getattr(self, name))
        return made

    mean = property(lambda self: self.loc)
    mode = mean

    @lazy_property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return squares.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        matrix = lamella.matmul(factor, factor.mT) + self._unbroadcasted_cov_diag.diag_embed()
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return lamella.linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return lamella.cholesky_inverse(self.scale_tril)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        inner = shape[:-1] + self.cov_factor.shape[-1:]
        eps_w = lamella.empty(inner, dtype=self.loc.dtype).normal_()
        eps_d = lamella.empty(shape, dtype=self.loc.dtype).normal_()
        spread = _batch_mv(self._unbroadcasted_cov_factor, eps_w)
        return self.loc + spread + self._unbroadcasted_cov_diag.sqrt() * eps_d

    def _log_det(self) -> Tensor:
        inner = 2 * self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return inner + self._unbroadcasted_cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        diff = value - self.loc
        factor, diag = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        inner = _batch_mv(factor.mT / diag.unsqueeze(-2), diff)
        squares = (diff.pow(2) / diag).sum(-1) - _batch_mahalanobis(self._capacitance_tril, inner)
        count = self._event_shape[0]
        return -0.5 * (count * math.log(2 * math.pi) + self._log_det() + squares)

    def entropy(self) -> Tensor:
        count = self._event_shape[0]
        entropy = 0.5 * (count * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, by the onion method (Lewandowski et al. 2009)."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError(f"LKJCholesky: expected 'dim' to be 2 or more, got {dim}")
        self.dim = dim
        self.concentration = (
            lamella.as_tensor(concentration, dtype=lamella.get_default_dtype())
            if (not isinstance(concentration, Tensor))
            else concentration
        )
        shape = self.concentration.size()
        super().__init__(shape, Size((dim, dim)), validate_args)
        self._beta = self._make_beta()

    def _make_beta(self) -> Beta:
        marginal = self.concentration + 0.5 * (self.dim - 2)
        offset = lamella.arange(self.dim - 1, dtype=self.concentration.dtype)
        offset = lamella.cat([offset.new_zeros((1,)), offset])
        first = offset + 0.5
        second = marginal.unsqueeze(-1) - 0.5 * offset
        return Beta(first, second)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = self._like(LKJCholesky, _instance, batch_shape)
        made.dim = self.dim
        made.concentration = self.concentration.expand(made._batch_shape)
        made._beta = made._make_beta()
        return made

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with lamella.no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            u = lamella.randn(self._extended_shape(sample_shape), dtype=y.dtype).tril(-1)
            rows = u / u.norm(dim=-1, keepdim=True)
            rows = lamella.cat([lamella.zeros_like(rows[..., :1, :]), rows[..., 1:, :]], -2)
            w = y.sqrt() * rows
            rest = (1 - (w**2).sum(-1)).clamp(min=lamella.finfo(w.dtype).tiny).sqrt()
            return w + rest.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = lamella.arange(2, self.dim + 1)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = (order * diagonal.log()).sum(-1)
        less = self.dim - 1
        alpha = self.concentration + 0.5 * less
        denominator = lamella.lgamma(alpha) * less
        numerator = lamella.mvlgamma(alpha - 0.5, less)
        return unnormalized - (0.5 * less * math.log(math.pi) + numerator - denominator)
