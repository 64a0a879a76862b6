"""Divergences between distributions of different families.

KL(p || q) = -H(p) - E[log q(x)] for x of p. The expectation needs only a few moments of p: of x, x
squared, log x, log(1 - x) and exp(-x / s). It is infinite if p has values outside q's support.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import lamella
from lamella import Tensor
from lamella.compat.distributions.continuous import Exponential, Gamma, Laplace, Normal, Uniform
from lamella.compat.distributions.continuous_bernoulli import ContinuousBernoulli
from lamella.compat.distributions.dirichlet import Beta
from lamella.compat.distributions.discrete import Bernoulli, Binomial, Poisson
from lamella.compat.distributions.distribution import ExponentialFamily
from lamella.compat.distributions.kl import register_kl
from lamella.compat.distributions.transformed import Gumbel, Pareto
from lamella.compat.distributions.utils import _sum_rightmost, euler_constant

# ---- Moments of p ----


def _log_of_uniform(low: Tensor, high: Tensor) -> Tensor:
    """E[log x] for x uniform between two numbers, with 0 log 0 = 0."""
    return (high.xlogy(high) - low.xlogy(low)) / (high - low) - 1


_MEAN_LOG: dict[type, Callable[[Any], Tensor]] = {
    Exponential: lambda p: -euler_constant - p.rate.log(),
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: _log_of_uniform(p.low, p.high),
}
_MEAN_LOG_REST: dict[type, Callable[[Any], Tensor]] = {
    Beta: lambda p: p.concentration0.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Uniform: lambda p: _log_of_uniform(1 - p.high, 1 - p.low),
}
# E[exp(-(x - loc) / scale)]
_MEAN_EXP: dict[type, Callable[[Any, Tensor, Tensor], Tensor]] = {
    Exponential: lambda p, loc, s: (loc / s).exp() * p.rate / (p.rate + s.reciprocal()),
    Gamma: lambda p, loc, s: (
        loc / s - p.concentration * (1 + (p.rate * s).reciprocal()).log()
    ).exp(),
    Normal: lambda p, loc, s: ((loc - p.loc) / s + 0.5 * (p.scale / s).square()).exp(),
    Uniform: lambda p, loc, s: (
        s / (p.high - p.low) * (((loc - p.low) / s).exp() - ((loc - p.high) / s).exp())
    ),
}


def _moment(table: dict[type, Any], p: Any) -> Any:
    return next(table[kind] for kind in type(p).__mro__ if kind in table)


# ---- E[log q(x)] by the family of q ----


def _mean_log(p: Any) -> Any:
    return _moment(_MEAN_LOG, p)(p)


_EXPECTED: dict[type, Callable[[Any, Any], Tensor]] = {
    Exponential: lambda p, q: q.rate.log() - q.rate * p.mean,
    Gamma: lambda p, q: (
        q.concentration * q.rate.log()
        - q.concentration.lgamma()
        + (q.concentration - 1) * _mean_log(p)
        - q.rate * p.mean
    ),
    Beta: lambda p, q: (
        (q.concentration1 - 1) * _mean_log(p)
        + (q.concentration0 - 1) * _moment(_MEAN_LOG_REST, p)(p)
        + (q.concentration1 + q.concentration0).lgamma()
        - q.concentration1.lgamma()
        - q.concentration0.lgamma()
    ),
    Normal: lambda p, q: (
        -0.5
        * (
            (2 * math.pi * q.scale.square()).log()
            + (p.variance + (p.mean - q.loc).square()) / q.scale.square()
        )
    ),
    Gumbel: lambda p, q: (
        -q.scale.log() - (p.mean - q.loc) / q.scale - _moment(_MEAN_EXP, p)(p, q.loc, q.scale)
    ),
    Pareto: lambda p, q: (q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(p)),
    Uniform: lambda p, q: -(q.high - q.low).log(),
    ContinuousBernoulli: lambda p, q: (p.mean * q.logits + lamella.log1p(-q.probs) + q._log_norm()),
    Poisson: lambda p, q: p.probs * q.rate.log() - q.rate,  # x is 0 or 1, so log x! is 0
}

# ---- Infinite where p has values outside q's support ----

_OUTSIDE: dict[str, Callable[[Any, Any], Any]] = {
    "": lambda p, q: False,
    "below zero": lambda p, q: p.low < 0,
    "outside of one": lambda p, q: (p.low < 0) | (p.high > 1),
    "outside of uniform": lambda p, q: (q.low > 0) | (q.high < 1),
    "below scale": lambda p, q: (p.low if isinstance(p, Uniform) else p.scale) < q.scale,
    "no mean": lambda p, q: p.alpha <= 1,
    "no variance": lambda p, q: p.alpha <= 2,
}

_RULES: tuple[tuple[type, type, str], ...] = (
    (Bernoulli, Poisson, ""),
    (Beta, ContinuousBernoulli, ""),
    (Beta, Exponential, ""),
    (Beta, Gamma, ""),
    (Beta, Normal, ""),
    (Beta, Uniform, "outside of uniform"),
    (ContinuousBernoulli, ContinuousBernoulli, ""),
    (ContinuousBernoulli, Exponential, ""),
    (ContinuousBernoulli, Normal, ""),
    (ContinuousBernoulli, Uniform, "outside of uniform"),
    (Exponential, Gumbel, ""),
    (Exponential, Normal, ""),
    (Gamma, Exponential, ""),
    (Gamma, Gumbel, ""),
    (Gamma, Normal, ""),
    (Gumbel, Normal, ""),
    (Laplace, Normal, ""),
    (Normal, Gumbel, ""),
    (Pareto, Exponential, "no mean"),
    (Pareto, Gamma, "no mean"),
    (Pareto, Normal, "no variance"),
    (Pareto, Pareto, "below scale"),
    (Uniform, Beta, "outside of one"),
    (Uniform, ContinuousBernoulli, "outside of one"),
    (Uniform, Exponential, "below zero"),
    (Uniform, Gamma, "below zero"),
    (Uniform, Gumbel, ""),
    (Uniform, Pareto, "below scale"),
)
# Always infinite: every p of these has values outside q's support.
_INFINITE: tuple[tuple[type, tuple[type, ...]], ...] = (
    (Beta, (Pareto,)),
    (ContinuousBernoulli, (Pareto,)),
    (Exponential, (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gamma, (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gumbel, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Laplace, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Normal, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Pareto, (Beta, ContinuousBernoulli, Uniform)),
    (Poisson, (Bernoulli, Binomial)),
)


def _finite(expected: Any, outside: Any) -> Any:
    def function(p: Any, q: Any) -> Tensor:
        found: Tensor = -p.entropy() - expected(p, q)
        where = outside(p, q)
        return found if where is False else lamella.where(where, math.inf, found)

    return function


def _infinite(p: Any, q: Any) -> Tensor:
    return lamella.full_like(p.mean, math.inf)


for _p, _q, _outside in _RULES:
    register_kl(_p, _q)(_finite(_EXPECTED[_q], _OUTSIDE[_outside]))
for _p, _others in _INFINITE:
    for _q in _others:
        register_kl(_p, _q)(_infinite)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Tensor:
    """By the log normalisers and their gradients (Bregman divergence)."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"kl_divergence: no rule for {type(p).__name__} and {type(q).__name__}"
        )
    mine = [parameter.detach().requires_grad_() for parameter in p._natural_params]
    normalizer = p._log_normalizer(*mine)
    gradients = lamella.autograd.grad(normalizer.sum(), mine, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for own, theirs, gradient in zip(mine, q._natural_params, gradients):
        part = (theirs - own) * gradient
        result = result - _sum_rightmost(part, len(q.event_shape))
    found: Tensor = result
    return found
