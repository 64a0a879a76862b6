"""torch.distributions.kl: Kullback-Leibler divergences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor
from lamella.compat.distributions.compound import Independent, TransformedDistribution
from lamella.compat.distributions.continuous import (
    Cauchy,
    Exponential,
    Gamma,
    Laplace,
    Normal,
    Uniform,
)
from lamella.compat.distributions.dirichlet import Beta, Dirichlet
from lamella.compat.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    OneHotCategorical,
    Poisson,
)
from lamella.compat.distributions.distribution import Distribution
from lamella.compat.distributions.multivariate import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    _batch_mahalanobis,
)
from lamella.compat.distributions.transformed import Gumbel, HalfNormal, LogNormal
from lamella.compat.distributions.utils import _sum_rightmost, euler_constant

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Any:
    """A decorator that registers the function for two types of distributions."""
    if not (isinstance(type_p, type) and isinstance(type_q, type)):
        raise TypeError(f"register_kl: expected types, got {type_p} and {type_q}")

    def register(function: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = function
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """KL(p || q), of the batch shape, by the rule for the most specific types."""
    best: Any = None
    for (kind_p, kind_q), function in _KL_REGISTRY.items():
        if isinstance(p, kind_p) and isinstance(q, kind_q):
            far = type(p).__mro__.index(kind_p), type(q).__mro__.index(kind_q)
            if best is None or far < best[0]:
                best = far, function
    if best is None:
        raise NotImplementedError(
            f"kl_divergence: no rule for {type(p).__name__} and {type(q).__name__}"
        )
    return best[1](p, q)


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(LogNormal, LogNormal)
@register_kl(HalfNormal, HalfNormal)
def _of_normals(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    softplus = lamella.nn.functional.softplus
    t1 = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    t2 = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return t1 + t2


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return lamella.where(p.total_count > q.total_count, math.inf, kl)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    t = p.probs * (p.logits - q.logits)
    t = lamella.where((q.probs == 0).expand_as(t), math.inf, t)
    return lamella.where((p.probs == 0).expand_as(t), 0.0, t).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - lamella.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return lamella.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    scale = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    t3 = scale * lamella.exp(-distance / p.scale)
    return -scale.log() + distance / q.scale + t3 - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    t1 = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return t1 - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    scale = p.scale / q.scale
    at_q, at_p = q.loc / q.scale, p.loc / q.scale
    t1 = scale.log() + at_q - at_p
    t3 = lamella.exp(at_q + (1 + scale).lgamma() - at_p)
    return -t1 + scale * euler_constant + t3 - (1 + euler_constant)


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    t1 = q.concentration * (p.rate / q.rate).log()
    t2 = lamella.lgamma(q.concentration) - lamella.lgamma(p.concentration)
    t3 = (p.concentration - q.concentration) * lamella.digamma(p.concentration)
    return t1 + t2 + t3 + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    sum_p = p.concentration1 + p.concentration0
    sum_q = q.concentration1 + q.concentration0
    t1 = q.concentration1.lgamma() + q.concentration0.lgamma() + sum_p.lgamma()
    t2 = p.concentration1.lgamma() + p.concentration0.lgamma() + sum_q.lgamma()
    t3 = (p.concentration1 - q.concentration1) * p.concentration1.digamma()
    t4 = (p.concentration0 - q.concentration0) * p.concentration0.digamma()
    return t1 - t2 + t3 + t4 + (sum_q - sum_p) * sum_p.digamma()


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    sum_p, sum_q = p.concentration.sum(-1), q.concentration.sum(-1)
    t1 = sum_p.lgamma() - sum_q.lgamma()
    t2 = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    t3 = p.concentration - q.concentration
    t4 = p.concentration.digamma() - sum_p.digamma().unsqueeze(-1)
    return t1 - t2 + (t3 * t4).sum(-1)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _multivariate(p: Any, q: Any) -> Tensor:
    return _gaussians(p.loc, p.scale_tril, q.loc, q.scale_tril)


def _gaussians(loc_p: Tensor, factor_p: Tensor, loc_q: Tensor, factor_q: Tensor) -> Tensor:
    count = loc_p.shape[-1]
    half = factor_q.diagonal(dim1=-2, dim2=-1).log() - factor_p.diagonal(dim1=-2, dim2=-1).log()
    solved = lamella.linalg.solve_triangular(factor_q, factor_p, upper=False)
    trace = solved.pow(2).sum((-2, -1))
    distance = _batch_mahalanobis(factor_q, loc_q - loc_p)
    return half.sum(-1) + 0.5 * (trace + distance - count)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: expected as many reinterpreted dimensions")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: expected the same transforms")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Tensor:
    spread = p.high - p.low
    t1 = (math.sqrt(math.pi * 2) * q.scale / spread).log()
    t3 = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return t1 + 0.5 * (spread.pow(2) / 12 + t3) / q.scale.pow(2)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    t1 = -q.concentration * lamella.log(ratio)
    return (
        t1
        + ratio
        + q.concentration.lgamma()
        + q.concentration * euler_constant
        - (1 + euler_constant)
    )


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    off = (p.loc - q.loc) / p.scale
    t1 = (p.scale / q.scale).log()
    t2 = math.sqrt(2 / math.pi) * lamella.exp(-0.5 * off.pow(2)) + off * lamella.erf(
        math.sqrt(0.5) * off
    )
    return -t1 + (p.scale * t2) / q.scale - (0.5 * (1 + math.log(0.5 * math.pi)))
